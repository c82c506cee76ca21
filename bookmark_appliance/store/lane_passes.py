"""The pass log: one row for each sweep of a Lane, whatever it came to (LANE-037 to LANE-041)."""

from dataclasses import dataclass

from psycopg import AsyncConnection
from psycopg.rows import class_row, scalar_row

from bookmark_appliance.clock import DAY_MS

RETENTION_MS = 14 * DAY_MS
"""LANE-041: a row exactly this old is kept."""


@dataclass(frozen=True, slots=True)
class LanePass:
    """One row. `skip` is empty when the loop was reached; the gap and the counts are those of LANE-018 and LANE-028.

    `cut` marks a pass that a shutdown or a crash ended, which no fault is judged by. `browser_reads` counts the reads
    that the browser answered.
    """

    site: str
    ran_at: int
    skip: str
    due: int
    checked: int
    gap_ms: int
    clamped: bool
    refused: int
    unreachable: int
    no_chapter: int
    unfetchable: int
    not_found: int
    errors: int
    cut: bool = False
    browser_reads: int = 0

    @property
    def succeeded(self) -> int:
        """The checks that came to something; derived, never stored (LANE-028)."""
        return self.checked - (self.refused + self.no_chapter + self.unfetchable + self.not_found + self.errors)


PASS_COLUMNS = ", ".join(LanePass.__slots__)

_INSERT = f"""
    INSERT INTO poll_passes ({PASS_COLUMNS})
    VALUES ({", ".join(f"%({column})s" for column in LanePass.__slots__)})
    ON CONFLICT DO NOTHING
    RETURNING ran_at
"""

_LATEST = f"""
    SELECT {PASS_COLUMNS}
    FROM poll_passes
    WHERE site = %(site)s
    ORDER BY ran_at DESC
    LIMIT 1
"""


async def record_pass(connection: AsyncConnection, row: LanePass, now_ms: int) -> int:
    """Insert the row and drop what is older than the retention; call it inside a transaction.

    A second pass in the same millisecond takes the next free one (LANE-040). Returns the `ran_at` it got.
    """
    values = {name: getattr(row, name) for name in LanePass.__slots__}
    async with connection.cursor(row_factory=scalar_row) as cursor:
        while True:
            await cursor.execute(_INSERT, values)
            ran_at: int | None = await cursor.fetchone()
            if ran_at is not None:
                break
            values["ran_at"] += 1
        await cursor.execute(
            "DELETE FROM poll_passes WHERE ran_at < %(cutoff)s",
            {"cutoff": now_ms - RETENTION_MS},
        )
    return ran_at


async def latest_pass(connection: AsyncConnection, site: str) -> LanePass | None:
    """The newest row of `site`, or None before its first."""
    async with connection.cursor(row_factory=class_row(LanePass)) as cursor:
        await cursor.execute(_LATEST, {"site": site})
        return await cursor.fetchone()
