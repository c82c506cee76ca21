"""One linear reader of tags for all Sites (TRAPS 31: DOM parsers held 4 MiB of hostile markup for 50 to 120 seconds).

`Markup.flat` is the page with everything blanked, in place, in which a `<` or `>` is not markup: comments, the text of
scripts and other raw-text elements, templates, and quoted attribute values. It has the length of the page, so positions
carry over, and every tag in it is exactly `<...>`: small regular expressions find tags in it at the speed of C.

Links inside comments and templates are not the page's. `noscript` is read as markup: the Site has published it.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice

from bookmark_appliance.lanes.entities import unescape

MAX_BLANKED = 50_000
"""Comments, scripts and the like. A page with more is nobody's page and reads as empty; real ones have hundreds."""

MAX_LINKS = 110_000
"""Chapter links. A page with more reads as one without any; 4 MiB hold about 100,000 plausible ones."""

MAX_REFERENCES = 100_000
"""Character references decoded in chapter links, `&amp;` alone aside; an address beyond that is passed over."""

MAX_TAGS = 1_000
"""Tags of one rare kind (`meta`, `link`, an element by its id) that are looked at, from the top of the page."""

MAX_ATTRIBUTES = 64
"""Attributes of one tag that are looked at."""

MAX_ADDRESS = 2_048
"""Characters of an attribute value that may still be an address or a name."""

_RAW_TEXT = "script|style|textarea|title|xmp|iframe|noembed|noframes"

_INTERRUPTION = re.compile(
    rf"""<(?: !--
        | (?: {_RAW_TEXT} | template ) (?=[\s/>])
        | (?: [!?] | /(?![a-z]) ) [^<>]*+ <
        | /?[a-z][^<>]*?=\s*+ (?: "[^"<>]*+[<>] | '[^'<>]*+[<>] )
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""Where tags stop being plain: a comment, a raw-text element, a bogus comment around a `<`, a quoted `<` or `>`."""

_BOGUS_COMMENT = re.compile(r"<(?:[!?]|/(?![a-zA-Z]))")
_COMMENT_END = re.compile(r"--!?>")
_RAW_TEXT_END = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _RAW_TEXT.split("|")}
_TEMPLATE_EDGE = re.compile(r"<(/?)template(?=[\s/>])", re.IGNORECASE)
_WHOLE_TAG = re.compile(r"""</?([a-z][^\s/<>]*+)(?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+'|(?!["'])))*+>""", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""[\s/]*+([^\s/<>=]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s<>"'][^\s<>]*+)))?+""")
_CHAPTER_LINK = re.compile(
    r"""<a[\s/]++
    (?: (?!href[\s=]) [^\s/<>=]++ (?: \s*+=\s*+ (?: "[^"<>]*+" | '[^'<>]*+' | [^\s<>"'][^\s<>]*+ ) )?+ [\s/]*+ )*+
    href\s*+=\s*+
    (?: "([^"<>]*chapter[^"<>]*+)" | '([^'<>]*chapter[^'<>]*+)' | ([^\s<>"']*chapter[^\s<>]*+) )""",
    re.IGNORECASE | re.VERBOSE,
)
"""An anchor whose own `href` speaks of a chapter, in each of the three ways of quoting."""


class Tag:
    """One start tag: its lower-case name, where it starts, where its content starts, its attributes."""

    def __init__(self, name: str, start: int, end: int, source: str) -> None:
        self.name = name.lower()
        self.start = start
        self.end = end
        self._source = source

    @cached_property
    def _attributes(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for match in islice(_ATTRIBUTE.finditer(self._source), MAX_ATTRIBUTES):
            found.setdefault(match[1].lower(), match[2] or match[3] or match[4] or "")
        return found

    def attribute(self, name: str, limit: int = MAX_ADDRESS) -> str:
        """The decoded value, of equal names the first; `""` when it is missing or longer than `limit` characters."""
        raw = self._attributes.get(name, "")
        return unescape(raw) if len(raw) <= limit else ""


class RawElement(Tag):
    """A script, style, title or the like, with its `text` as written. Unclosed, it runs to the end of the page."""

    text = ""


class Markup:
    """The text of one page. Nothing is worked out before it is asked for; nothing here raises."""

    def __init__(self, text: str) -> None:
        self.text = text

    @property
    def flat(self) -> str:
        """The text with all that is not markup blanked; `""` for a page of nothing but interruptions."""
        return self._flattened[0]

    @property
    def raw_elements(self) -> list[RawElement]:
        """Scripts, titles and other raw-text elements, in page order."""
        return self._flattened[1]

    @cached_property
    def metas(self) -> list[Tag]:
        """The `<meta>` tags, wherever they stand."""
        return list(self.tags("meta"))

    def tags(self, name: str, start: int = 0, end: int | None = None) -> Iterator[Tag]:
        """The start tags of that name (a pattern) between two positions, in page order, at most MAX_TAGS."""
        return self._found(re.compile(rf"<({name})(?=[\s/>])([^<>]*+)>", re.IGNORECASE), start, end)

    def tags_naming(self, word: str) -> Iterator[Tag]:
        """The start tags that have `word` somewhere in their attributes, in page order, at most MAX_TAGS."""
        return self._found(re.compile(rf"<([a-zA-Z][^\s/<>]*+)([^<>]*{re.escape(word)}[^<>]*+)>"))

    def chapter_links(self, start: int = 0, end: int | None = None) -> list[str]:
        """The decoded addresses of the anchors whose address holds the word `chapter`, in page order, trimmed."""
        found = _CHAPTER_LINK.findall(self.flat, start, self._end(end))
        if len(found) > MAX_LINKS:
            return []
        return list(_decoded(double or single or bare for double, single, bare in found))

    def _found(self, pattern: re.Pattern[str], start: int = 0, end: int | None = None) -> Iterator[Tag]:
        for match in islice(pattern.finditer(self.flat, start, self._end(end)), MAX_TAGS):
            yield Tag(match[1], match.start(), match.end(), self.text[match.start(2) : match.end(2)])

    def _end(self, end: int | None) -> int:
        return len(self.flat) if end is None else end

    @cached_property
    def _flattened(self) -> tuple[str, list[RawElement]]:
        text = self.text
        kept: list[str] = []
        raw_elements: list[RawElement] = []
        position = 0
        while match := _INTERRUPTION.search(text, position):
            if len(kept) > 3 * MAX_BLANKED:
                return "", []
            start = match.start()
            tag = _WHOLE_TAG.match(text, start)
            tag_end = tag.end() if tag else start
            name = tag[1].lower() if tag and text[start + 1] != "/" else ""
            end = tag_end
            if name in _RAW_TEXT_END and tag:
                closing = _RAW_TEXT_END[name].search(text, tag_end)
                end = closing.start() if closing else len(text)
                element = RawElement(name, start, tag_end, text[start + 1 + len(name) : tag_end - 1])
                element.text = text[tag_end:end]
                raw_elements.append(element)
            elif not tag or name == "template":
                tag_end = start
                end = _end_of_unread(text, start, bool(tag))
            kept += (
                text[position:start],
                text[start:tag_end] and "<" + text[start + 1 : tag_end - 1].translate(_NO_BRACKETS) + ">",
                " " * (end - tag_end),
            )
            position = end
        kept.append(text[position:])
        return "".join(kept), raw_elements


_NO_BRACKETS = {ord("<"): " ", ord(">"): " "}


def _end_of_unread(text: str, start: int, template: bool) -> int:
    """Where the comment, the template or the unfinished tag that starts at `start` ends."""
    if template:
        depth = 0
        for edge in _TEMPLATE_EDGE.finditer(text, start):
            depth += -1 if edge[1] else 1
            if depth == 0:
                return edge.end()
        return len(text)
    if text.startswith("<!--", start):
        # From the first dash on, so that `<!-->` is empty.
        closing = _COMMENT_END.search(text, start + 2)
        return closing.end() if closing else len(text)
    if _BOGUS_COMMENT.match(text, start):
        return text.find(">", start) + 1 or len(text)
    return len(text)


def _decoded(addresses: Iterable[str]) -> Iterator[str]:
    references = 0
    for address in addresses:
        if "&" in address:
            if address.count("&amp;") != address.count("&"):
                references += address.count("&")
            if len(address) > MAX_ADDRESS or references > MAX_REFERENCES:
                continue
            address = unescape(address)
        yield address.strip()
