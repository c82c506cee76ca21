"""What the Owner's presses write on a Series: stamps that its Lane reads before its next fetch (SER-010 to SER-018)."""

from enum import Enum, auto

import psycopg
from psycopg import AsyncConnection

from bookmark_appliance.chapter import chapter_label
from bookmark_appliance.series_key import SeriesKey


class Removal(Enum):
    """What became of the removal of a Series."""

    DONE = auto()
    HELD = auto()
    """A Bookmark stands on it (SER-018)."""
    UNKNOWN = auto()


async def request_poll(connection: AsyncConnection, key: SeriesKey, now_ms: int) -> None:
    """Ask for a Forced Poll; asking again moves the stamp, and a missing Series is no error (DUE-011)."""
    await _update(connection, key, "force_poll_at = %(value)s", now_ms)


async def set_finished(connection: AsyncConnection, key: SeriesKey, finished_at: int) -> None:
    """Finish a Series at `finished_at`, or un-finish it with 0; no Bookmark is touched (SER-010)."""
    await _update(connection, key, "finished_at = %(value)s", finished_at)


async def repair_series_url(connection: AsyncConnection, key: SeriesKey, series_url: str) -> None:
    """Store another address, which the caller has passed through the address gate (SER-017)."""
    await _update(connection, key, "series_url = %(value)s", series_url)


async def correct_latest(connection: AsyncConnection, key: SeriesKey, number: float, now_ms: int) -> None:
    """Set the Latest Chapter by hand: the raising Reader and a doubtful reading are dropped (SER-014)."""
    await connection.execute(
        """
        UPDATE series
        SET latest_chapter = %(label)s,
            latest_chapter_num = %(number)s,
            latest_corrected_at = %(now)s,
            latest_raised_by = NULL,
            latest_by_person = TRUE,
            doubtful_at = 0
        WHERE site = %(site)s
            AND series_id = %(series_id)s
        """,
        {
            "site": key.site,
            "series_id": key.series_id,
            "label": chapter_label(number),
            "number": number,
            "now": now_ms,
        },
    )


async def remove_series(connection: AsyncConnection, key: SeriesKey) -> Removal:
    """Delete a Series that nobody holds, its failure row with it; a Bookmark that races in wins (SER-018, SER-019)."""
    try:
        async with connection.transaction():
            cursor = await connection.execute(
                "DELETE FROM series WHERE site = %s AND series_id = %s", (key.site, key.series_id)
            )
    except psycopg.errors.ForeignKeyViolation:
        return Removal.HELD
    return Removal.DONE if cursor.rowcount else Removal.UNKNOWN


async def _update(connection: AsyncConnection, key: SeriesKey, assignment: str, value: int | str) -> None:
    await connection.execute(
        f"UPDATE series SET {assignment} WHERE site = %(site)s AND series_id = %(series_id)s".encode(),
        {"site": key.site, "series_id": key.series_id, "value": value},
    )
