"""kagane: kagane.to, through the browser: its JSON API, by an in-tab fetch.

SITE-024 to SITE-026, BRO-001, BRO-002; the facts are those of docs/SITES.md.
"""

import re
from typing import Any, TypeVar

import msgspec

from bookmark_appliance.chapter import chapter_digits, highest_chapter
from bookmark_appliance.lanes.site import NOTHING_READ, BrowserRead, Reading, RefusingBody, Site, UnreadableBody
from bookmark_appliance.lanes.tags import Markup

_HOST = "kagane.to"
_ID = r"[0-9a-fA-F-]{36}"
_SERIES = re.compile(rf"https://kagane\.to/series/({_ID})/?")
_IMAGE_ID = re.compile(_ID)
_IMAGE = re.compile(rf"https://kagane\.to/api/v2/image/{_ID}/compressed")
_T = TypeVar("_T")
_HTML = re.compile(r"\s*<[a-zA-Z!?]")


class _Book(msgspec.Struct):
    """One chapter, notice or volume; `sort_no`, `volume_no` and digits in titles are not chapter numbers."""

    chapter_no: Any = None


class _Cover(msgspec.Struct):
    """One cover image."""

    image_id: Any = None


_NULL = msgspec.Raw(b"null")
_Scalar = str | float | bool | None


class _Series(msgspec.Struct):
    """The top level of the answer and nothing below it: a nested related series is not ours."""

    series_id: Any = None
    publication_status: Any = None
    series_books: msgspec.Raw = _NULL
    series_covers: msgspec.Raw = _NULL


def read(series_url: str, markup: Markup) -> Reading:
    """What the API says; HTML in its place is a refusal (LANE-022), anything else that is no JSON an error."""
    text = markup.text.removeprefix("\ufeff")
    if _HTML.match(text):
        raise RefusingBody("HTML where JSON was asked")
    own = _SERIES.match(series_url)
    series = _series(text)
    if not own or not series or str(series.series_id or own[1]).lower() != own[1].lower():
        return NOTHING_READ
    books = _decoded(series.series_books, list[_Book | list[msgspec.Raw] | _Scalar])
    covers = _decoded(series.series_covers, list[_Cover | list[msgspec.Raw] | _Scalar])
    numbers = {book.chapter_no for book in books or () if isinstance(book, _Book) and isinstance(book.chapter_no, str)}
    ids = (cover.image_id for cover in covers or () if isinstance(cover, _Cover) and isinstance(cover.image_id, str))
    image_id = next(filter(_IMAGE_ID.fullmatch, ids), None)
    status = series.publication_status
    return Reading(
        latest=highest_chapter(filter(None, map(chapter_digits, numbers))),
        cover=f"https://{_HOST}/api/v2/image/{image_id}/compressed" if image_id else None,
        completed=isinstance(status, str) and status.strip().lower() == "completed",
        landmarks=books is not None,
    )


def _series(text: str) -> _Series | None:
    """The answer's top level; None for JSON that is no object. Raises UnreadableBody for what is no JSON."""
    try:
        return msgspec.json.decode(text, type=_Series)
    except msgspec.ValidationError:
        return None
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as broken:
        raise UnreadableBody("neither JSON nor HTML") from broken


def _decoded(raw: msgspec.Raw, kind: type[list[_T]]) -> list[_T] | None:
    """The list, or None when it is none; its odd members are kept, for the caller to pass over."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        return None


def page_address(series_url: str) -> str | None:
    """The address of the API that tells about this Series (BRO-001)."""
    match = _SERIES.fullmatch(series_url)
    return f"https://{_HOST}/api/v2/series/{match[1]}" if match else None


SITE = Site(
    name="kagane",
    host=_HOST,
    read=read,
    browser=BrowserRead(
        page_address=page_address,
        in_tab_fetch=True,
        image_address=lambda address: _IMAGE.fullmatch(address) is not None,
    ),
)
