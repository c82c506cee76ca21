"""A Series as the Lanes see it: its stamps, what a Poll or an Acquisition writes of it, its failure row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from bookmark_appliance.chapter import Chapter
from bookmark_appliance.clock import SECOND_MS
from bookmark_appliance.series_key import SeriesKey

ACQUISITION_CLAIM_MS = 45 * SECOND_MS
"""How long an Acquisition keeps its Series from the Lane, from the PUT on and anew from its start (COV-002)."""


@dataclass(frozen=True, slots=True)
class StoredSeries:
    """What is stored of a Series at the moment it is read; moments in ms, 0 for never.

    `checked_at` is the check stamp before this read; `raised_by` the Reader whose Sighting raised the number,
    `by_person` whether a Reader or the Owner set the number and no machine has read it since.
    """

    series_url: str
    latest_chapter: str
    latest_chapter_num: float | None
    checked_at: int
    site_completed_at: int
    corrected_at: int
    raised_by: int | None
    by_person: bool
    cover: str
    cover_address: str
    doubtful: Chapter | None
    """A reading that was too far from the number to be published at once (LANE-054)."""


# All but the check stamp: who has just written one knows it from before.
STORED_COLUMNS = """
    series.series_url,
    series.latest_chapter,
    series.latest_chapter_num,
    series.site_completed_at,
    series.latest_corrected_at,
    series.latest_raised_by,
    series.latest_by_person,
    series.cover,
    series.cover_address,
    series.doubtful_chapter,
    CASE WHEN series.doubtful_at > 0 THEN series.doubtful_chapter_num END
"""


def stored_series(checked_at: int, row: Sequence[Any]) -> StoredSeries:
    """What STORED_COLUMNS came to."""
    url, label, number, completed, corrected, raised_by, by_person, cover, cover_address, doubt_label, doubt = row
    return StoredSeries(
        url,
        label,
        number,
        checked_at,
        completed,
        corrected,
        raised_by,
        by_person,
        cover,
        cover_address,
        None if doubt is None else Chapter(doubt, doubt_label),
    )


@dataclass(frozen=True, slots=True)
class SeriesChange:
    """What a reading changes of a Series; None or False leaves a thing as it is."""

    latest: Chapter | None = None
    """The number and label to store."""
    clears_raiser: bool = False
    clears_correction: bool = False
    confirms: bool = False
    """A machine has read the number that a person had set, or another one."""
    site_completed_at: int | None = None
    cover: str | None = None
    """The source address of a Cover, for a Series that has none."""
    doubtful: Chapter | None = None
    """A reading to keep beside the number instead of publishing it."""
    drops_doubtful: bool = False


async def lock_series(connection: AsyncConnection, key: SeriesKey) -> StoredSeries | None:
    """The row of `key`, locked until the transaction ends; None when there is none."""
    cursor = await connection.execute(
        f"""
        SELECT latest_checked_at, {STORED_COLUMNS}
        FROM series
        WHERE site = %(site)s
            AND series_id = %(series_id)s
        FOR NO KEY UPDATE
        """,
        {"site": key.site, "series_id": key.series_id},
    )
    row = await cursor.fetchone()
    return None if row is None else stored_series(row[0], row[1:])


async def stamp_checked(connection: AsyncConnection, key: SeriesKey, checked_at: int) -> None:
    """Write the check stamp (LANE-020); a missing Series is not an error (DUE-014).

    A force stamp from a clock that was ahead would stay newer than every check: it is moved back to this one (DUE-012).
    """
    await connection.execute(
        """
        UPDATE series
        SET latest_checked_at = %(at)s,
            force_poll_at = least(force_poll_at, %(at)s)
        WHERE site = %(site)s
            AND series_id = %(series_id)s
        """,
        {"site": key.site, "series_id": key.series_id, "at": checked_at},
    )


async def give_back_stamp(connection: AsyncConnection, key: SeriesKey, stamped_at: int, before: int) -> bool:
    """Restore the check stamp `before`, unless it was changed since we wrote `stamped_at` (LANE-020, LANE-033)."""
    cursor = await connection.execute(
        """
        UPDATE series
        SET latest_checked_at = %(before)s
        WHERE site = %(site)s
            AND series_id = %(series_id)s
            AND latest_checked_at = %(stamped_at)s
        """,
        {"site": key.site, "series_id": key.series_id, "stamped_at": stamped_at, "before": before},
    )
    return cursor.rowcount == 1


async def apply_change(connection: AsyncConnection, key: SeriesKey, change: SeriesChange, now_ms: int) -> None:
    """Write what a reading changed, in one statement; nothing to change writes nothing (LANE-047)."""
    if change == SeriesChange():
        return
    latest, doubtful = change.latest, change.doubtful
    await connection.execute(
        """
        UPDATE series
        SET latest_chapter = coalesce(%(label)s, latest_chapter),
            latest_chapter_num = coalesce(%(number)s, latest_chapter_num),
            latest_raised_by = CASE WHEN %(clears_raiser)s THEN NULL ELSE latest_raised_by END,
            latest_corrected_at = CASE WHEN %(clears_correction)s THEN 0 ELSE latest_corrected_at END,
            latest_by_person = latest_by_person AND NOT %(confirms)s,
            site_completed_at = coalesce(%(site_completed_at)s, site_completed_at),
            cover = coalesce(%(cover)s, cover),
            doubtful_chapter = coalesce(%(doubtful_label)s, doubtful_chapter),
            doubtful_chapter_num = coalesce(%(doubtful_number)s, doubtful_chapter_num),
            doubtful_at = CASE
                WHEN %(doubtful_number)s::float8 IS NOT NULL THEN %(now)s
                WHEN %(drops_doubtful)s THEN 0
                ELSE doubtful_at
            END
        WHERE site = %(site)s
            AND series_id = %(series_id)s
        """,
        {
            "site": key.site,
            "series_id": key.series_id,
            "label": latest.label if latest else None,
            "number": latest.number if latest else None,
            "clears_raiser": change.clears_raiser,
            "clears_correction": change.clears_correction,
            "confirms": change.confirms,
            "site_completed_at": change.site_completed_at,
            "cover": change.cover,
            "doubtful_label": doubtful.label if doubtful else None,
            "doubtful_number": doubtful.number if doubtful else None,
            "drops_doubtful": change.drops_doubtful,
            "now": now_ms,
        },
    )


async def claim_for_acquisition(connection: AsyncConnection, key: SeriesKey, until: int) -> bool:
    """Keep the Lane from reading this Series before `until` (COV-002); False when it has gone."""
    cursor = await connection.execute(
        "UPDATE series SET acquiring_until = %(until)s WHERE site = %(site)s AND series_id = %(series_id)s",
        {"site": key.site, "series_id": key.series_id, "until": until},
    )
    return cursor.rowcount == 1


async def drop_claim(connection: AsyncConnection, key: SeriesKey) -> None:
    """The Acquisition has ended, however it ended."""
    await claim_for_acquisition(connection, key, 0)


async def record_failure(connection: AsyncConnection, key: SeriesKey, outcome: str, now_ms: int) -> None:
    """Begin or go on with a run of failures; `failing_since` keeps its start (FAIL-005)."""
    await connection.execute(
        """
        INSERT INTO poll_failures (site, series_id, outcome, failing_since)
        SELECT site, series_id, %(outcome)s, %(now)s
        FROM series
        WHERE site = %(site)s
            AND series_id = %(series_id)s
        ON CONFLICT (site, series_id) DO UPDATE
        SET outcome = excluded.outcome
        """,
        {"site": key.site, "series_id": key.series_id, "outcome": outcome, "now": now_ms},
    )


async def clear_failure(connection: AsyncConnection, key: SeriesKey) -> None:
    """A read succeeded: the run of failures is over (FAIL-004)."""
    await connection.execute(
        "DELETE FROM poll_failures WHERE site = %(site)s AND series_id = %(series_id)s",
        {"site": key.site, "series_id": key.series_id},
    )
