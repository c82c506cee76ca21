"""A Bookmark as JSON: sixteen flat keys (API-007, API-008)."""

from collections.abc import Sequence

import msgspec

from bookmark_appliance.bookmark_put import STATUSES
from bookmark_appliance.store.bookmarks import Bookmark


class _WireBookmark(msgspec.Struct):
    key: str
    site: str
    series_id: str
    title: str
    series_url: str
    cover: str
    last_chapter: str
    last_chapter_num: float
    last_chapter_url: str
    favorite: bool
    latest_chapter: str
    latest_chapter_num: float | None
    updated_at: int
    status: str
    kind: str
    finished: bool


_encode = msgspec.json.Encoder().encode


def encode_bookmark(bookmark: Bookmark, public_base_url: str) -> bytes:
    """One JSON object and a newline."""
    return _encode(_wire(bookmark, public_base_url)) + b"\n"


def encode_list(bookmarks: Sequence[Bookmark], public_base_url: str) -> bytes:
    """A JSON array, `[]` when there is nothing (API-005), and a newline."""
    return _encode([_wire(bookmark, public_base_url) for bookmark in bookmarks]) + b"\n"


def cover_address(address: str, public_base_url: str) -> str:
    """Where a browser finds a Cover of ours, or an empty text: never an address at a third party (COV-026)."""
    return f"{public_base_url}/covers/{address}" if address else ""


def _wire(bookmark: Bookmark, public_base_url: str) -> _WireBookmark:
    return _WireBookmark(
        key=f"{bookmark.site}:{bookmark.series_id}",
        site=bookmark.site,
        series_id=bookmark.series_id,
        title=bookmark.title,
        series_url=bookmark.series_url,
        cover=cover_address(bookmark.cover_address, public_base_url),
        last_chapter=bookmark.last_chapter,
        last_chapter_num=bookmark.last_chapter_num,
        last_chapter_url=bookmark.last_chapter_url,
        favorite=bookmark.favorite,
        latest_chapter=bookmark.latest_chapter,
        latest_chapter_num=bookmark.latest_chapter_num,
        updated_at=bookmark.updated_at,
        # A row with another status, written by hand, would otherwise stand in no list at all (API-031).
        status=bookmark.status if bookmark.status in STATUSES else "reading",
        kind=bookmark.kind,
        finished=bookmark.finished_at != 0,
    )
