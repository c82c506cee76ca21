"""One linear reader of tags for all Sites; DOM parsers held 4 MiB of hostile markup for 50 to 120 s (TRAPS 31)."""

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import islice

from bookmark_appliance.lanes.entities import unescape
from bookmark_appliance.lanes.flatten import flatten

MAX_LINKS = 110_000
"""Chapter links. A page with more reads as one without any; 4 MiB hold about 100,000 plausible ones."""

MAX_TAGS = 1_000
"""Tags of one rare kind (`meta`, `link`, an element by its id) that are looked at, from the top of the page."""

MAX_ATTRIBUTES = 64
"""Attributes of one tag that are looked at."""

MAX_ADDRESS = 2_048
"""Characters of an attribute value that may still be an address or a name."""

_ATTRIBUTE = re.compile(r"""[\s/]*+([^\s/<>=]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s<>"'][^\s<>]*+)))?+""")
_TAG = re.compile(r"<([a-zA-Z][^\s/<>]*+)([^<>]*+)>")

# A set without a class like \s is one bit map, which halves the time of the patterns that see every link.
_SPACE = r" \t\n\r\f"
_CHAPTER_LINK = re.compile(
    rf"""<[aA][{_SPACE}/]++
    (?:
        (?!(?i:href)[{_SPACE}=]) [^{_SPACE}/<>=]++
        (?: \s*+=\s*+ (?: "[^"<>]*+" | '[^'<>]*+' | [^{_SPACE}<>"'][^{_SPACE}<>]*+ ) )?+
        [{_SPACE}/]*+
    )*+
    (?i:href)\s*+=\s*+
    ( "[^"<>]*chapter[^"<>]*+ | '[^'<>]*chapter[^'<>]*+ | [^{_SPACE}<>"']*chapter[^{_SPACE}<>]*+ )""",
    re.VERBOSE,
)
"""An anchor whose own `href` speaks of a chapter, in each of the three ways of quoting; the opening quote is kept."""


class Tag:
    """One start tag: its lower-case name, where it starts, where its content starts, its attributes."""

    def __init__(self, name: str, start: int, end: int, source: str, text: str = "") -> None:
        self.name = name.lower()
        self.start = start
        self.end = end
        self.text = text
        """Of a raw-text element (script, title, ...): what stands in it, as written."""
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


class Markup:
    """The text of one page. Nothing is worked out before it is asked for; nothing here raises."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _flattened(self) -> tuple[str, list[Tag]]:
        flat, spans = flatten(self.text)
        return flat, [
            Tag(
                span.name,
                span.start,
                span.tag_end,
                source=self.text[span.start + 1 + len(span.name) : span.tag_end - 1],
                text=self.text[span.tag_end : span.end],
            )
            for span in spans
        ]

    @property
    def flat(self) -> str:
        """The text with all that is not markup blanked, in place: each tag in it is exactly `<...>`."""
        return self._flattened[0]

    @property
    def raw_elements(self) -> list[Tag]:
        """Scripts, titles and other raw-text elements, in page order."""
        return self._flattened[1]

    @cached_property
    def metas(self) -> list[Tag]:
        """The `<meta>` tags, wherever they stand."""
        return list(self.tags("meta"))

    def tags(self, name: str, start: int = 0, end: int | None = None) -> Iterator[Tag]:
        """The start tags of that name between two positions, in page order, at most MAX_TAGS."""
        pattern = re.compile(rf"<(?=[{name[0]}{name[0].upper()}])((?i:{name}))(?=[\s/>])([^<>]*+)>")
        for match in islice(pattern.finditer(self.flat, start, self._end(end)), MAX_TAGS):
            yield self._tag(match)

    def tags_naming(self, word: str) -> Iterator[Tag]:
        """The start tags that have `word` somewhere in their attributes, in page order, at most MAX_TAGS."""
        flat = self.flat
        position = 0
        for _ in range(MAX_TAGS):
            found = flat.find(word, position)
            if found < 0:
                return
            start = flat.rfind("<", position, found)
            match = _TAG.match(flat, start) if start >= 0 else None
            if match and match.start(2) <= found < match.end():
                yield self._tag(match)
                position = match.end()
            else:
                position = found + len(word)

    def chapter_links(self, start: int = 0, end: int | None = None) -> str:
        """The decoded addresses of the anchors whose address holds the word `chapter`, in page order.

        Each stands behind a line break, and may have the attribute's opening quote before it: one pattern that begins
        with `own_link` reads 100,000 of them in half the time of a loop of matches.
        """
        addresses = _CHAPTER_LINK.findall(self.flat, start, self._end(end))
        if len(addresses) > MAX_LINKS:
            return ""
        lines = "\n".join(["", *addresses])
        if lines.count("\n") > len(addresses):
            # Browsers drop line breaks inside an address.
            lines = "\n".join(["", *(address.replace("\n", "") for address in addresses)])
        return unescape(lines)

    def _end(self, end: int | None) -> int:
        return len(self.flat) if end is None else end

    def _tag(self, match: re.Match[str]) -> Tag:
        return Tag(match[1], match.start(), match.end(), self.text[match.start(2) : match.end(2)])
