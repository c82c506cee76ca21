"""What faults are judged by, read from the pass log and the failure rows, and the episodes that are open.

`until_ms` leaves out what a clock that was ahead has dated into the future: it would be the newest for as long.
"""

from collections.abc import Collection
from dataclasses import dataclass

from psycopg import AsyncConnection
from psycopg.rows import class_row, scalar_row

from bookmark_appliance.store.lane_passes import PASS_COLUMNS, LanePass


async def latest_passes(connection: AsyncConnection, sites: Collection[str], until_ms: int) -> dict[str, LanePass]:
    """The newest pass of each of these Sites that was not cut short, by its name."""
    async with connection.cursor(row_factory=class_row(LanePass)) as cursor:
        await cursor.execute(
            f"""
            SELECT newest.*
            FROM unnest(%(sites)s::text[]) AS known (site)
            CROSS JOIN LATERAL (
                SELECT {PASS_COLUMNS}
                FROM poll_passes
                WHERE site = known.site
                    AND ran_at <= %(until)s
                    AND NOT cut
                ORDER BY ran_at DESC
                LIMIT 1
            ) AS newest
            """.encode(),
            {"sites": list(sites), "until": until_ms},
        )
        return {row.site: row for row in await cursor.fetchall()}


async def refusing_runs(connection: AsyncConnection, sites: Collection[str], until_ms: int) -> dict[str, int]:
    """When the unbroken refusing run of each of these Sites began; one that was healthy since a refusal has none.

    Passes that met a refusal and passes that declined because of it belong to a run; one whose reads the Site answered
    without any ends it; what declined, idled or got no answer says nothing (FAULT-003, FAULT-012).
    """
    cursor = await connection.execute(
        """
        SELECT known.site, run.began_at
        FROM unnest(%(sites)s::text[]) AS known (site)
        CROSS JOIN LATERAL (
            SELECT coalesce(max(ran_at), -1) AS ran_at
            FROM poll_passes
            WHERE site = known.site
                AND ran_at <= %(until)s
                AND skip = ''
                AND refused = 0
                AND checked > unfetchable + errors
        ) AS healthy
        CROSS JOIN LATERAL (
            SELECT min(ran_at) AS began_at
            FROM poll_passes
            WHERE site = known.site
                AND (skip = 'refusing' OR refused > 0)
                AND ran_at > healthy.ran_at
                AND ran_at <= %(until)s
        ) AS run
        WHERE run.began_at IS NOT NULL
        """,
        {"sites": list(sites), "until": until_ms},
    )
    return dict(await cursor.fetchall())


async def browser_reached_at(connection: AsyncConnection, until_ms: int) -> int | None:
    """The newest pass in which the browser answered a read, in ms."""
    async with connection.cursor(row_factory=scalar_row) as cursor:
        await cursor.execute(
            "SELECT max(ran_at) FROM poll_passes WHERE browser_reads > 0 AND ran_at <= %s", (until_ms,)
        )
        moment: int | None = await cursor.fetchone()
        return moment


async def broken_layouts(connection: AsyncConnection, cutoff_ms: int) -> frozenset[str]:
    """Sites of whose Series strictly more than half hold a no_chapter row older than `cutoff_ms` (FAULT-007)."""
    async with connection.cursor(row_factory=scalar_row) as cursor:
        await cursor.execute(
            """
            SELECT site
            FROM poll_failures
            WHERE outcome = 'no_chapter'
                AND failing_since < %s
            GROUP BY site
            HAVING 2 * count(*) > (
                SELECT count(*)
                FROM series
                WHERE series.site = poll_failures.site
            )
            """,
            (cutoff_ms,),
        )
        return frozenset(await cursor.fetchall())


@dataclass(frozen=True, slots=True)
class Episode:
    """A fault that has begun and has not been proven over; `site` is empty for the browser's.

    Moments in ms; `notified_at` is 0 until the Owner has been told of it.
    """

    condition: str
    site: str
    since: int
    notified_at: int


async def open_episodes(connection: AsyncConnection) -> list[Episode]:
    """Every episode that is open, those included that an earlier deployment has told of and left open."""
    async with connection.cursor(row_factory=class_row(Episode)) as cursor:
        await cursor.execute(
            """
            SELECT condition, site, coalesce(since, notified_at) AS since, coalesce(notified_at, 0) AS notified_at
            FROM fault_episodes
            FULL JOIN owner_notices USING (condition, site)
            ORDER BY condition, site
            """
        )
        return await cursor.fetchall()


async def open_episode(connection: AsyncConnection, condition: str, site: str, since_ms: int) -> bool:
    """Begin an episode; False when it is open already."""
    cursor = await connection.execute(
        "INSERT INTO fault_episodes (condition, site, since) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
        (condition, site, since_ms),
    )
    return cursor.rowcount == 1


async def close_episode(connection: AsyncConnection, condition: str, site: str) -> bool:
    """End an episode, and with it the record that its Owner was told (FAULT-011); False when it is over already."""
    cursor = await connection.execute(
        """
        WITH told AS (
            DELETE FROM owner_notices
            WHERE condition = %(condition)s
                AND site = %(site)s
            RETURNING site
        ), ended AS (
            DELETE FROM fault_episodes
            WHERE condition = %(condition)s
                AND site = %(site)s
            RETURNING site
        )
        SELECT FROM told
        UNION ALL
        SELECT FROM ended
        """,
        {"condition": condition, "site": site},
    )
    return cursor.rowcount > 0


async def mark_notified(connection: AsyncConnection, condition: str, site: str, now_ms: int) -> None:
    """The Owner has been told of this episode; telling again moves nothing."""
    await connection.execute(
        "INSERT INTO owner_notices (condition, site, notified_at) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
        (condition, site, now_ms),
    )
