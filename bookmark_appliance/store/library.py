"""A Reader's Library as their pages show it: how many Bookmarks each list holds, what to read on, a page of cards.

Everything is asked by the Reader's id, and in the order of the API's list.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.store.bookmarks import BOOKMARK_COLUMNS, KEY_COLUMN, LIST_ORDER, Bookmark

Kind = Literal["manga", "novel"]
Tab = Literal["all", "updated", "favourites", "archived"]
TABS: tuple[Tab, ...] = get_args(Tab)

_NEW_CHAPTER = "series.latest_chapter_num > bookmarks.last_chapter_num"
"""SER-020; not true where no Latest Chapter is known."""

_READING = "bookmarks.status <> 'archived'"
"""Whatever else a hand wrote there reads as `reading` (API-031)."""

_OF_TAB = {
    "all": _READING,
    "updated": f"{_READING} AND {_NEW_CHAPTER}",
    "favourites": f"{_READING} AND bookmarks.favorite",
    "archived": "bookmarks.status = 'archived'",
}

_MINE = """
    FROM bookmarks
    JOIN series USING (site, series_id)
    WHERE bookmarks.reader_id = %(reader)s
"""
_MINE_OF_KIND = f"{_MINE} AND (series.kind = 'novel') = %(novel)s"

_COUNTS = f"""
    SELECT series.kind = 'novel',
           {", ".join(f"count(*) FILTER (WHERE {condition})" for condition in _OF_TAB.values())}
    {_MINE}
    GROUP BY 1
"""

_RECENT = f"""
    SELECT {BOOKMARK_COLUMNS}
    {_MINE_OF_KIND}
      AND {_READING}
    ORDER BY COALESCE({_NEW_CHAPTER}, FALSE) DESC, {LIST_ORDER}
    LIMIT %(limit)s
"""

_PAGE = {
    tab: f"""
    SELECT {BOOKMARK_COLUMNS}
    {_MINE_OF_KIND}
      AND {condition}
      AND (%(after)s::text IS NULL OR (-bookmarks.updated_at, {KEY_COLUMN}) > (
          -COALESCE(%(at)s::bigint, (
              SELECT updated_at
              FROM bookmarks
              WHERE reader_id = %(reader)s
                AND site || ':' || series_id = %(after)s
          )),
          %(after)s
      ))
    ORDER BY {LIST_ORDER}
    LIMIT %(limit)s
    """
    for tab, condition in _OF_TAB.items()
}


@dataclass(frozen=True, slots=True)
class Place:
    """Behind which Bookmark a page begins: its key, and its `updated_at` (unix ms) when the page before was made.

    Without the time it is where that Bookmark stands now; with it, one that was read on meanwhile or has gone loses
    nobody their place.
    """

    key: str
    updated_at: int | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """How many Bookmarks the lists of one Library hold."""

    all: int = 0
    updated: int = 0
    favourites: int = 0
    archived: int = 0

    @property
    def anything(self) -> bool:
        """Whether there is any Bookmark."""
        return self.all + self.archived > 0


async def count_bookmarks(connection: TrioConnection, reader_id: int) -> dict[Kind, Counts]:
    """Of both Libraries."""
    cursor = await connection.execute(_COUNTS, {"reader": reader_id}, prepare=True)
    counted: dict[bool, Counts] = {row[0]: Counts(*row[1:]) for row in await cursor.fetchall()}
    return {"manga": counted.get(False, Counts()), "novel": counted.get(True, Counts())}


async def read_recent(connection: TrioConnection, reader_id: int, kind: Kind, limit: int) -> list[Bookmark]:
    """What to go on reading: those with a New Chapter, then the rest, each the most recently read first (UI-004)."""
    values = {"reader": reader_id, "novel": kind == "novel", "limit": limit}
    cursor = await connection.execute(_RECENT, values, prepare=True)
    return [Bookmark(*row) for row in await cursor.fetchall()]


async def read_page(
    connection: TrioConnection, reader_id: int, kind: Kind, tab: Tab, *, limit: int, after: Place | None = None
) -> list[Bookmark]:
    """At most `limit` Bookmarks of a list, from its start or behind a place in it."""
    values = {
        "reader": reader_id,
        "novel": kind == "novel",
        "limit": limit,
        "after": after.key if after else None,
        "at": after.updated_at if after else None,
    }
    cursor = await connection.execute(_PAGE[tab], values, prepare=True)
    return [Bookmark(*row) for row in await cursor.fetchall()]
