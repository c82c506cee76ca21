"""Which Series are due at a Site, in which order, and when the next one will be (DUE-)."""

from dataclasses import asdict, dataclass
from typing import NamedTuple

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.page_validators import KEPT_COLUMNS, KeptReading, kept_reading
from bookmark_appliance.store.series import STORED_COLUMNS, StoredSeries, stored_series

# How many rows these queries touch depends on the moment that is asked about. PostgreSQL may settle on a plan for any
# moment when a statement is prepared, so those that could walk a whole Site are not.

# The rules are spelled once, here, as expressions over `s` (series), `h` (its holders), `t` (its times) and `d`. A
# check stamp from a clock that has since been set back counts as never checked (LANE-058); a claim, a Sighting or a
# doubtful reading stamped so counts for nothing. A doubtful reading calls for one early check, the first after it.
_COUNT_EACH = """
    CROSS JOIN LATERAL (
        SELECT count(*) AS holders
        FROM bookmarks AS b
        WHERE b.site = s.site AND b.series_id = s.series_id
    ) AS h
"""

_HOLDERS = f"""
    {_COUNT_EACH}
    CROSS JOIN LATERAL (
        SELECT
            CASE WHEN s.latest_checked_at > %(now)s + %(tolerance)s THEN 0 ELSE s.latest_checked_at END AS checked_at,
            s.acquiring_until > %(now)s AND s.acquiring_until <= %(now)s + %(claim)s AS claimed
    ) AS t
    CROSS JOIN LATERAL (
        SELECT
            s.doubtful_at > 0 AND s.doubtful_at BETWEEN t.checked_at AND %(now)s + %(tolerance)s AS is_doubtful
    ) AS d
"""

# When a Series has had its rest, the deferral by a Sighting included (DUE-004, DUE-006, DUE-007).
_RESTED_AT = """
    CASE
        WHEN h.holders = 1 AND s.latest_sighted_at <= %(now)s + %(tolerance)s
        THEN greatest(
            t.checked_at + %(rest)s,
            least(s.latest_sighted_at + %(rest)s, t.checked_at + 6 * %(rest)s)
        )
        ELSE t.checked_at + %(rest)s
    END
"""

# What could be polled at all, as the index on it says it; a Series that was ever forced may be.
_POLLABLE = """
    s.site = %(site)s
        AND s.series_url <> ''
        AND (s.finished_at = 0 OR s.force_poll_at > 0)
"""

# The condition in parentheses is implied by the one at the end and spelled over stored columns, for the indexes. The
# text comes last: a sort by what stands behind it would step over it at each comparison.
_IS_DUE = f"""
    SELECT
        s.force_poll_at > t.checked_at AS forced,
        h.holders,
        t.checked_at,
        {_RESTED_AT} AS rested_at,
        d.is_doubtful AS doubtful,
        s.series_id
    FROM series AS s
    {_HOLDERS}
    WHERE {_POLLABLE}
        AND (
            s.latest_checked_at <= %(now)s - %(rest)s
            OR s.latest_checked_at > %(now)s + %(tolerance)s
            OR s.force_poll_at > s.latest_checked_at
            OR s.doubtful_at > 0
        )
        AND h.holders > 0
        AND NOT t.claimed
        AND (
            s.force_poll_at > t.checked_at
            OR (
                s.finished_at = 0
                AND (
                    {_RESTED_AT} <= %(now)s
                    OR (d.is_doubtful AND t.checked_at <= %(now)s - %(doubt)s)
                )
            )
        )
"""

_DUE = f"{_IS_DUE} ORDER BY forced DESC, h.holders DESC, t.checked_at, s.series_id"

# Where many are due, one walk past all Bookmarks of the Site costs less than a search for those of each Series: with
# 20,000 of them 25 ms against 45 (2026-11-30). Asked for in order, PostgreSQL walks the index alone and hashes nothing.
_COUNT_ALL = """
    JOIN (
        SELECT b.series_id, count(*) AS holders
        FROM bookmarks AS b
        WHERE b.site = %(site)s
        GROUP BY b.series_id
        ORDER BY b.series_id
    ) AS h ON h.series_id = s.series_id
"""

_DUE_OF_MANY = _DUE.replace(_COUNT_EACH, _COUNT_ALL)

_MANY_ARE_DUE = f"""
    SELECT count(*) >= 5000
    FROM series AS s
    WHERE {_POLLABLE}
        AND s.latest_checked_at <= %(now)s - %(rest)s
"""

_FORCED = f"{_IS_DUE} AND s.force_poll_at > s.latest_checked_at ORDER BY h.holders DESC, t.checked_at, s.series_id"

# A force stamp from a clock that was ahead would stay newer than every check: it is moved back to this one (DUE-012).
_STAMP_IF_DUE = f"""
    WITH due AS (
        {_IS_DUE} AND s.series_id = %(series_id)s FOR NO KEY UPDATE OF s
    )
    UPDATE series
    SET latest_checked_at = %(now)s,
        force_poll_at = least(series.force_poll_at, %(now)s)
    FROM due
    LEFT JOIN page_validators AS kept ON kept.site = %(site)s AND kept.series_id = %(series_id)s
    WHERE series.site = %(site)s
        AND series.series_id = %(series_id)s
    RETURNING due.forced, due.checked_at, {KEPT_COLUMNS}, {STORED_COLUMNS}
"""

_ELIGIBLE = """
    SELECT count(*)
    FROM series AS s
    WHERE s.site = %(site)s
        AND s.series_url <> ''
        AND s.finished_at = 0
        AND EXISTS (SELECT FROM bookmarks AS b WHERE b.site = s.site AND b.series_id = s.series_id)
"""

# Of the Series that nothing but their rest holds back, the one that was checked first is due first. Only what was
# checked before it, and what has a rule of its own, is looked at besides: a few rows, however many there are.
_NEXT_DUE = f"""
    WITH first AS (
        SELECT s.latest_checked_at AS checked_at
        FROM series AS s
        {_HOLDERS}
        WHERE {_POLLABLE}
            AND s.finished_at = 0
            AND s.latest_checked_at <= %(now)s + %(tolerance)s
            AND h.holders > 0
            AND NOT t.claimed
            AND {_RESTED_AT} = t.checked_at + %(rest)s
        ORDER BY s.latest_checked_at
        LIMIT 1
    )
    SELECT least(
        (SELECT checked_at + %(rest)s FROM first),
        min(
            CASE
                WHEN t.claimed THEN s.acquiring_until
                WHEN s.force_poll_at > t.checked_at THEN %(now)s
                WHEN d.is_doubtful THEN t.checked_at + %(doubt)s
                ELSE {_RESTED_AT}
            END
        )
    )
    FROM series AS s
    {_HOLDERS}
    WHERE {_POLLABLE}
        AND (
            s.latest_checked_at < coalesce((SELECT checked_at FROM first), 9223372036854775807)
            OR s.latest_checked_at > %(now)s + %(tolerance)s
            OR s.force_poll_at > s.latest_checked_at
            OR s.doubtful_at > 0
        )
        AND h.holders > 0
        AND (s.finished_at = 0 OR s.force_poll_at > t.checked_at)
"""


class DueSeries(NamedTuple):
    """One Series that a pass owes a Poll; a tuple, since there may be 20,000 and a dataclass takes 1 µs more of each.

    `checked_at` is its check stamp in ms, 0 for never and for one to come; `rested_at` when its rest ended, in ms.
    """

    forced: bool
    holders: int
    checked_at: int
    rested_at: int
    doubtful: bool
    series_id: str


@dataclass(frozen=True, slots=True)
class StampedSeries:
    """The check stamp that was just written (ms), what is kept of the last read, and the row as it stood before."""

    at: int
    forced: bool
    kept: KeptReading | None
    series: StoredSeries


@dataclass(frozen=True, slots=True)
class DueTerms:
    """What the due rules take besides the rows, all in ms.

    The moment, the Site's rest, the rest of a Series with a doubtful reading, and the bounds of what a stamp from
    another clock may say.
    """

    now: int
    rest: int
    doubt: int
    tolerance: int
    claim: int

    def bind(self, site: str) -> dict[str, str | int]:
        """The parameters of the queries of this module."""
        return {"site": site, **asdict(self)}


async def due_series(connection: AsyncConnection, site: str, terms: DueTerms) -> list[DueSeries]:
    """All Series of `site` that are due: forced ones first, then by Readers, then longest unchecked (DUE-009)."""
    counted = await connection.execute(_MANY_ARE_DUE, terms.bind(site), prepare=False)
    query = _DUE_OF_MANY if await counted.fetchone() == (True,) else _DUE
    async with connection.cursor(row_factory=args_row(DueSeries)) as cursor:
        await cursor.execute(query, terms.bind(site), prepare=False)
        return await cursor.fetchall()


async def forced_series(connection: AsyncConnection, site: str, terms: DueTerms) -> list[DueSeries]:
    """The forced ones alone, in the same order: what a running pass looks for before each fetch (LANE-044)."""
    async with connection.cursor(row_factory=args_row(DueSeries)) as cursor:
        await cursor.execute(_FORCED, terms.bind(site))
        return await cursor.fetchall()


async def stamp_if_due(connection: AsyncConnection, key: SeriesKey, terms: DueTerms) -> StampedSeries | None:
    """Write the check stamp of a Series that is still due: a pass is long, and rows change meanwhile (LANE-020)."""
    cursor = await connection.execute(_STAMP_IF_DUE, {**terms.bind(key.site), "series_id": key.series_id})
    row = await cursor.fetchone()
    if row is None:
        return None
    forced, checked_at, *columns = row
    return StampedSeries(terms.now, forced, kept_reading(columns[:8]), stored_series(checked_at, columns[8:]))


async def eligible_count(connection: AsyncConnection, site: str) -> int:
    """How many Series of `site` could ever be polled (DUE-015)."""
    async with connection.cursor(row_factory=scalar_row) as cursor:
        await cursor.execute(_ELIGIBLE, {"site": site})
        return int(await cursor.fetchone() or 0)


async def next_due_at(connection: AsyncConnection, site: str, terms: DueTerms) -> int | None:
    """The earliest moment, in ms, at which a Series of `site` is or becomes due; None when none ever will."""
    async with connection.cursor(row_factory=scalar_row) as cursor:
        await cursor.execute(_NEXT_DUE, terms.bind(site), prepare=False)
        moment: int | None = await cursor.fetchone()
        return moment
