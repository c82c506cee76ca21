"""demonic: demonicscans.org, plain. `/manga/<slug>`; the address travels byte for byte (slugs are encoded thrice).

SITE-014 to SITE-018; the facts are those of docs/SITES.md.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from bookmark_appliance.chapter import NUMBER_PATTERN, highest_chapter
from bookmark_appliance.lanes.addresses import cover_address, meta_contents, own_link
from bookmark_appliance.lanes.entities import unescape
from bookmark_appliance.lanes.site import MissingSeries, Reading, Site
from bookmark_appliance.lanes.tags import Markup, Tag

_HOST = "demonicscans.org"
_CHAPTER = re.compile(
    rf"{own_link(_HOST)}/?chaptered\.php\?manga=([0-9]{{1,18}}+)&chapter=({NUMBER_PATTERN})", re.ASCII
)
_STATUS_PAIR = re.compile(
    r"<li(?:\s[^<>]*+)?>\s*+status\s*+:?+\s*+</li\s*+>\s*+<li(?:\s[^<>]*+)?>\s*+([a-z]++)\s*+</li", re.IGNORECASE
)
_MAX_NESTED = 50_000
"""Edges of elements inside the list block; a block with more runs to the end of the page."""


def read(series_url: str, markup: Markup) -> Reading:
    """What the page says of its one work: the address holds no numeric id, so the page has to tell it."""
    if _title(markup).startswith("error 404"):
        raise MissingSeries("the page is titled Error 404")
    block = next((tag for tag in markup.tags_naming("chapters-list") if tag.attribute("id") == "chapters-list"), None)
    start, end = (block.end, _end_of_element(markup, block)) if block else (0, 0)
    listed = _CHAPTER.findall(markup.chapter_links(start, end))
    found = [
        *_CHAPTER.findall(markup.chapter_links(0, start)),
        *listed,
        *_CHAPTER.findall(markup.chapter_links(end)),
    ]
    # Of equally frequent ids, most_common gives the first on the page.
    own = Counter(manga for manga, _ in listed or found).most_common(1)
    return Reading(
        latest=highest_chapter(digits for manga, digits in found if own and manga == own[0][0]),
        cover=cover_address(series_url, meta_contents(markup, "og:image")),
        completed={word.lower() for word in _STATUS_PAIR.findall(markup.flat)} == {"completed"},
        landmarks=block is not None,
    )


def _title(markup: Markup) -> str:
    titles: Iterator[str] = (element.text for element in markup.raw_elements if element.name == "title")
    return unescape(next(titles, "")[:200]).strip().lower()


def _end_of_element(markup: Markup, tag: Tag) -> int:
    edges = re.compile(rf"<(/?){re.escape(tag.name)}(?=[\s/>])", re.IGNORECASE)
    depth = 1
    for edge in islice(edges.finditer(markup.flat, tag.end), _MAX_NESTED):
        depth += -1 if edge[1] else 1
        if depth == 0:
            return edge.start()
    return len(markup.flat)


SITE = Site(name="demonic", host=_HOST, read=read)
