"""A Reader's Bookmarks with what their Series share: listed, put, deleted.

Each function is one statement that also checks the credential it is given (its SHA-256), so that an answer costs one
round trip; the pages, which know their Reader by a session, name the Reader instead. They belong on a connection in
autocommit mode: the statement is the transaction.
"""

import logging
from dataclasses import dataclass

import psycopg

from bookmark_appliance.bookmark_put import BookmarkPut
from bookmark_appliance.database import DatabaseUnavailable
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.series import ACQUISITION_CLAIM_MS
from bookmark_appliance.store.sightings import NO_SIGHTING, RECORD_SIGHTING

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Bookmark:
    """One Bookmark and its Series as stored; times in unix ms, `finished_at` 0 while the Series is not finished."""

    site: str
    series_id: str
    title: str
    series_url: str
    cover_address: str
    kind: str
    latest_chapter: str
    latest_chapter_num: float | None
    finished_at: int
    last_chapter: str
    last_chapter_num: float
    last_chapter_url: str
    favorite: bool
    status: str
    updated_at: int


@dataclass(frozen=True, slots=True)
class NewSeries:
    """A Series that a PUT has just brought in (SER-005)."""

    key: SeriesKey
    title: str
    series_url: str
    kind: str


@dataclass(frozen=True, slots=True)
class ListVersion:
    """Whose credential it was, and the version of the list that they would see."""

    reader_id: int
    version: int


BOOKMARK_COLUMNS = """
    series.site, series.series_id, series.title, series.series_url, series.cover_address, series.kind,
    series.latest_chapter, series.latest_chapter_num, series.finished_at,
    bookmarks.last_chapter, bookmarks.last_chapter_num, bookmarks.last_chapter_url,
    bookmarks.favorite, bookmarks.status, bookmarks.updated_at
"""

KEY_COLUMN = """(series.site || ':' || series.series_id) COLLATE "C" """
LIST_ORDER = f"bookmarks.updated_at DESC, {KEY_COLUMN}"
"""API-017, of whatever selects from bookmarks and series."""

_LIST_VERSION = """
    SELECT id, list_version
    FROM readers
    WHERE token_sha256 = %s
"""

# Version and rows come of one snapshot: asked one after the other, a change between them would be kept under the
# version before it and shown to nobody.
_LIST = f"""
    SELECT list_version, {BOOKMARK_COLUMNS}
    FROM readers
    LEFT JOIN (bookmarks JOIN series USING (site, series_id)) ON bookmarks.reader_id = readers.id
    WHERE readers.id = %s
    ORDER BY {LIST_ORDER}
"""

_DELETE = """
    WITH reader AS (
        SELECT id
        FROM readers
        WHERE token_sha256 = %s
    ), gone AS (
        DELETE FROM bookmarks
        USING reader
        WHERE reader_id = reader.id
          AND site = %s
          AND series_id = %s
    )
    SELECT id
    FROM reader
"""

# Whether this PUT's Progress is taken: decided on the row as it is when it is written (API-048).
_TAKEN = """
    (%(last_chapter_num)s::float8 IS NOT NULL
     AND (NOT %(advance)s OR %(last_chapter_num)s >= stored.last_chapter_num))
"""

# `xmax = 0` tells a row that was inserted from one that was found: Postgres has no better word for it before 18.
_PUT = f"""
    WITH reader AS (
        SELECT id, sighting_disagreements
        FROM readers
        WHERE {{whose}}
    ), series AS (
        INSERT INTO series AS stored (
            site, series_id, title, series_url, kind, latest_chapter, latest_chapter_num, latest_by_person,
            acquiring_until
        )
        SELECT %(site)s, %(series_id)s, %(title)s, %(series_url)s, COALESCE(%(kind)s, 'manga'),
               COALESCE(%(latest_chapter)s, ''), %(latest_chapter_num)s::float8,
               %(latest_chapter_num)s::float8 IS NOT NULL, %(acquiring_until)s
        FROM reader
        ON CONFLICT (site, series_id) DO UPDATE
        SET {{sighting}}
            kind = COALESCE(%(kind)s, stored.kind),
            latest_chapter = COALESCE(%(latest_chapter)s, stored.latest_chapter),
            latest_chapter_num = COALESCE(%(latest_chapter_num)s, stored.latest_chapter_num),
            latest_by_person = CASE
                WHEN %(latest_chapter_num)s IS NULL THEN stored.latest_by_person
                ELSE stored.latest_by_person OR %(latest_chapter_num)s IS DISTINCT FROM stored.latest_chapter_num
            END,
            latest_corrected_at = CASE
                WHEN %(latest_chapter_num)s IS NULL THEN stored.latest_corrected_at
                ELSE 0
            END
        RETURNING *, stored.xmax = 0 AS created
    ), bookmarks AS (
        INSERT INTO bookmarks AS stored (
            reader_id, site, series_id, last_chapter, last_chapter_num, last_chapter_url, favorite, status, updated_at
        )
        SELECT reader.id, site, series_id, COALESCE(%(last_chapter)s, ''), COALESCE(%(last_chapter_num)s, 0),
               COALESCE(%(last_chapter_url)s, ''), COALESCE(%(favorite)s, FALSE), COALESCE(%(status)s, 'reading'),
               %(now)s
        FROM reader
        CROSS JOIN series
        ON CONFLICT (reader_id, site, series_id) DO UPDATE
        SET last_chapter = CASE WHEN {_TAKEN} THEN excluded.last_chapter ELSE stored.last_chapter END,
            last_chapter_num = CASE WHEN {_TAKEN} THEN excluded.last_chapter_num ELSE stored.last_chapter_num END,
            last_chapter_url = CASE
                WHEN NOT {_TAKEN} OR (%(last_chapter_url)s IS NULL AND %(last_chapter_num)s = stored.last_chapter_num)
                THEN stored.last_chapter_url
                ELSE excluded.last_chapter_url
            END,
            favorite = COALESCE(%(favorite)s, stored.favorite),
            status = COALESCE(%(status)s, stored.status),
            updated_at = CASE
                WHEN {_TAKEN} AND %(last_chapter_num)s IS DISTINCT FROM stored.last_chapter_num
                THEN GREATEST(excluded.updated_at, stored.updated_at + 1)
                ELSE stored.updated_at
            END
        RETURNING *
    )
    SELECT series.created,
           {BOOKMARK_COLUMNS}
    FROM series
    CROSS JOIN bookmarks
"""

_BY_CREDENTIAL = "token_sha256 = %(reader)s"
_HOLDER = """
    id = %(reader)s
    AND EXISTS (
        SELECT
        FROM bookmarks
        WHERE reader_id = readers.id
          AND site = %(site)s
          AND series_id = %(series_id)s
    )
"""

_PUT_WITH_SIGHTING = _PUT.format(whose=_BY_CREDENTIAL, sighting=RECORD_SIGHTING)
_PUT_ALONE = _PUT.format(whose=_BY_CREDENTIAL, sighting=NO_SIGHTING)
_EDIT = _PUT.format(whose=_HOLDER, sighting=NO_SIGHTING)


async def find_list_version(connection: TrioConnection, credential: bytes) -> ListVersion | None:
    """The Reader whose credential this is and their list's version; None when it is nobody's.

    Raises DatabaseUnavailable whatever goes wrong: "nobody's" would stop every installed script (API-004).
    """
    try:
        cursor = await connection.execute(_LIST_VERSION, (credential,), prepare=True)
        row = await cursor.fetchone()
    except psycopg.Error as error:
        raise DatabaseUnavailable("a credential could not be looked up") from error
    return ListVersion(*row) if row else None


async def read_list(connection: TrioConnection, reader_id: int) -> tuple[int, list[Bookmark]] | None:
    """The version of a Reader's list and the list itself, newest first, then by key (API-017).

    None when the Reader has been deleted meanwhile.
    """
    cursor = await connection.execute(_LIST, (reader_id,), prepare=True)
    rows = await cursor.fetchall()
    if not rows:
        return None
    return rows[0][0], [Bookmark(*row[1:]) for row in rows if row[1] is not None]


async def put_bookmark(
    connection: TrioConnection, credential: bytes, put: BookmarkPut, now: int
) -> tuple[Bookmark, NewSeries | None] | None:
    """Write a PUT at `now` (unix ms): the row as stored, and the Series if this made it. None: nobody's credential.

    A reported Latest Chapter is recorded as a Sighting along with the write (API-033). Where that fails the whole
    statement is undone and done again without it: the Reader's own row comes first (API-034).
    """
    try:
        return await _put(connection, credential, put, now)
    except psycopg.Error:
        if await _is_nobodys(connection, credential):
            return None
        raise


async def _put(
    connection: TrioConnection, credential: bytes, put: BookmarkPut, now: int
) -> tuple[Bookmark, NewSeries | None] | None:
    statement = _PUT_ALONE if put.latest_chapter_num is None else _PUT_WITH_SIGHTING
    try:
        return await _execute_put(connection, statement, credential, put, now)
    except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure) as error:
        _logger.warning("the put of %s is done again: %s", put.key, error)
        return await _execute_put(connection, statement, credential, put, now)
    except psycopg.OperationalError:
        raise  # a timeout, no connection, a full disk: not for what was written
    except psycopg.Error as error:
        if statement is _PUT_ALONE:
            raise
        _logger.error("the sighting of %s is not recorded: %s", put.key, error)
        return await _execute_put(connection, _PUT_ALONE, credential, put, now)


async def edit_bookmark(connection: TrioConnection, reader_id: int, edit: BookmarkPut, now: int) -> Bookmark | None:
    """Change a Bookmark on a page of ours at `now` (unix ms), by the rules of a PUT: the row as stored.

    It is no Sighting, so `edit` names no Latest Chapter (API-035), and it brings nothing in: None when the Reader does
    not hold the Series.
    """
    assert edit.latest_chapter_num is None
    stored = await _execute_put(connection, _EDIT, reader_id, edit, now)
    return stored[0] if stored else None


async def remove_bookmark(connection: TrioConnection, reader_id: int, key: SeriesKey) -> None:
    """Delete the Bookmark where there is one; the Series stays (SER-006)."""
    await connection.execute(
        "DELETE FROM bookmarks WHERE reader_id = %s AND site = %s AND series_id = %s",
        (reader_id, key.site, key.series_id),
        prepare=True,
    )


async def delete_bookmark(connection: TrioConnection, credential: bytes, key: SeriesKey) -> bool:
    """Delete the Bookmark where there is one; the Series stays (SER-006). False: nobody's credential."""
    try:
        cursor = await connection.execute(_DELETE, (credential, key.site, key.series_id), prepare=True)
        return await cursor.fetchone() is not None
    except psycopg.Error:
        if await _is_nobodys(connection, credential):
            return False
        raise


async def _is_nobodys(connection: TrioConnection, credential: bytes) -> bool:
    """Of a statement that failed: would its credential have been refused? Raises DatabaseUnavailable when even that
    can't be told, which is then what the client hears (API-004)."""
    return not connection.closed and await find_list_version(connection, credential) is None


async def _execute_put(
    connection: TrioConnection, statement: str, reader: bytes | int, put: BookmarkPut, now: int
) -> tuple[Bookmark, NewSeries | None] | None:
    values = {
        "reader": reader,
        "site": put.key.site,
        "series_id": put.key.series_id,
        "title": put.title,
        "series_url": put.series_url,
        "kind": put.kind,
        "latest_chapter": put.latest_chapter,
        "latest_chapter_num": put.latest_chapter_num,
        "last_chapter": put.last_chapter,
        "last_chapter_num": put.last_chapter_num,
        "last_chapter_url": put.last_chapter_url,
        "favorite": put.favorite,
        "status": put.status,
        "advance": put.advance,
        "now": now,
        "acquiring_until": now + ACQUISITION_CLAIM_MS,
    }
    cursor = await connection.execute(statement, values, prepare=True)
    row = await cursor.fetchone()
    if row is None:
        return None
    bookmark = Bookmark(*row[1:])
    created: bool = row[0]
    series = NewSeries(put.key, bookmark.title, bookmark.series_url, bookmark.kind) if created else None
    return bookmark, series
