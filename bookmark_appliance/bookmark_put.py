"""What a PUT asks for, as plain data: read from a request by `web.put_body`, written by `store.bookmarks`."""

from dataclasses import dataclass

from bookmark_appliance.series_key import SeriesKey

STATUSES = frozenset(("reading", "archived"))
KINDS = frozenset(("manga", "novel"))


@dataclass(frozen=True, slots=True)
class BookmarkPut:
    """One PUT. None means: keep what is stored, or take the default where nothing is.

    `last_*` is the Progress triple, the address None with it where it was not said. `latest_*` is the reported Latest
    Chapter. `advance` drops a Progress that lies behind the stored one (API-048).
    """

    key: SeriesKey
    title: str = ""
    series_url: str = ""
    last_chapter_num: float | None = None
    last_chapter: str | None = None
    last_chapter_url: str | None = None
    favorite: bool | None = None
    status: str | None = None
    kind: str | None = None
    latest_chapter_num: float | None = None
    latest_chapter: str | None = None
    advance: bool = False
