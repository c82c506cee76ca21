"""novelfull: novelfull.com, through the browser (the cleared page), over plain TLS where there is none.

SITE-027 to SITE-031, BRO-005, BRO-006; the facts are those of docs/SITES.md.
"""

import re
from collections.abc import Iterator
from itertools import islice
from urllib.parse import unquote

from bookmark_appliance.chapter import NUMBER_PATTERN, highest_chapter
from bookmark_appliance.lanes.addresses import cover_address, meta_contents, own_link, own_prefix
from bookmark_appliance.lanes.site import NOTHING_READ, BrowserRead, Reading, Site
from bookmark_appliance.lanes.tags import Markup

_HOST = "novelfull.com"
_SERIES = re.compile(r"https://novelfull\.com/([^/?# \t\n]+)\.html(?:[?#].*)?", re.DOTALL)
_CHAPTER = re.compile(rf"{own_link(_HOST)}/?([^/?# \t\n]++)/chapter-({NUMBER_PATTERN})")
_STATUS_LINK = re.compile(rf"{own_prefix(_HOST)}/status/([^/?# \t\n]+)/?(?:[?#]|\Z)")
_STATUS_HEADING = re.compile(r">\s*+status\s*+:?+\s*+</(?:h[1-6]|b|strong|th|dt|label)\s*+>", re.IGNORECASE)
_ROW_END = re.compile(r"</(?:div|li|tr|dd|dl|p|ul)(?=[\s>])|<(?:h[1-6]|div|li|tr|dt|p|ul|nav)(?=[\s>])", re.IGNORECASE)
_MAX_ROWS = 20
_MAX_BLOCK = 4_000
"""Characters of the Status row, and of the book block, that are looked at."""


def read(series_url: str, markup: Markup) -> Reading:
    """What the page says of the novel whose slug stands in `series_url`.

    The list is paged; the newest chapter stands in the "latest chapters" block, and both hold links of the same shape.
    """
    own = _SERIES.fullmatch(series_url)
    if not own:
        return NOTHING_READ
    slug = unquote(own[1])
    listed = _CHAPTER.findall(markup.chapter_links())
    spellings = {written for written in {written for written, _ in listed} if unquote(written) == slug}
    return Reading(
        latest=highest_chapter(number for written, number in listed if written in spellings),
        cover=cover_address(series_url, _covers(markup)),
        completed=_statuses(markup) == {"completed"},
        landmarks=any(tag.attribute("id") == "list-chapter" for tag in markup.tags_naming("list-chapter")),
    )


def _covers(markup: Markup) -> Iterator[str]:
    """The `image` meta, else the image of the book block, whose `src` may be a spinner until scripts have run."""
    yield from meta_contents(markup, "image")
    for block in markup.tags_naming("book"):
        if "book" in block.attribute("class").split():
            for image in markup.tags("img", block.end, block.end + _MAX_BLOCK):
                yield image.attribute("data-src") or image.attribute("src")
                return


def _statuses(markup: Markup) -> set[str]:
    """The statuses linked in the row headed Status; a menu may link to all of them."""
    statuses: set[str] = set()
    for heading in islice(_STATUS_HEADING.finditer(markup.flat), _MAX_ROWS):
        start = heading.end()
        row_end = _ROW_END.search(markup.flat, start, start + _MAX_BLOCK)
        for anchor in markup.tags("a", start, row_end.start() if row_end else start + _MAX_BLOCK):
            link = _STATUS_LINK.match(anchor.attribute("href").strip())
            statuses |= {link[1].lower()} if link else set()
    return statuses


def page_address(series_url: str) -> str | None:
    """The Series address itself, when it is one (BRO-005)."""
    return series_url if _SERIES.fullmatch(series_url) else None


SITE = Site(
    name="novelfull",
    host=_HOST,
    read=read,
    browser=BrowserRead(page_address=page_address, in_tab_fetch=False, plain_fallback=True),
)
