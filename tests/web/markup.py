"""Answers read as a browser reads them: elements with their attributes and the text inside."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

_EMPTY = frozenset(("br", "circle", "img", "input", "link", "meta", "path", "use"))


@dataclass
class Element:
    """One element; `text` is all the text inside it, its white space squeezed."""

    tag: str
    attributes: dict[str, str]
    inside: list["Element"] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Of itself and everything inside."""
        return " ".join("".join(self.parts).split())

    def find(self, wanted: str) -> list["Element"]:
        """Those inside, in order: by a tag, by `.class`, by `#id`."""
        return [element for element in self.inside if element.is_a(wanted)]

    def one(self, wanted: str) -> "Element":
        """The only one."""
        (found,) = self.find(wanted)
        return found

    def is_a(self, wanted: str) -> bool:
        """Whether it is what `find` was asked for."""
        if wanted.startswith("."):
            return wanted[1:] in self.attributes.get("class", "").split()
        return self.attributes.get("id") == wanted[1:] if wanted.startswith("#") else self.tag == wanted


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attributes}) == len(attributes), f"an attribute twice: <{tag} {attributes}>"
        element = Element(tag, {name: value or "" for name, value in attributes})
        for outer in self.open:
            outer.inside.append(element)
        if tag not in _EMPTY:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in _EMPTY:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for outer in self.open:
            outer.parts.append(data)


def read(html: str) -> Element:
    """The whole answer as one element. Every tag must be closed by its own, in order."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == [reader.root], f"never closed: {[element.tag for element in reader.open[1:]]}"
    return reader.root
