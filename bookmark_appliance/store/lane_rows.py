"""What is durable about a Lane besides its passes: pause, backoff, refusals in a row, its Site's last request."""

from dataclasses import dataclass
from typing import LiteralString

from psycopg import AsyncConnection
from psycopg.rows import class_row, scalar_row


@dataclass(frozen=True, slots=True)
class LaneRow:
    """A Lane's row of `poll_lanes` with the browser's loss beside it; moments and lengths in ms, 0 for none.

    `pause_ms` and `backoff_ms` are how long the pause and the backoff were meant to last; 0 where nobody said.
    """

    paused_until: int = 0
    pause_ms: int = 0
    refuse_until: int = 0
    backoff_ms: int = 0
    browser_lost_at: int = 0


async def lane_row(connection: AsyncConnection, site: str) -> LaneRow:
    """The row of `site`; a missing one is an unpaused, unrefused Lane (LANE-046)."""
    async with connection.cursor(row_factory=class_row(LaneRow)) as cursor:
        await cursor.execute(
            """
            SELECT
                coalesce(lane.paused_until, 0) AS paused_until,
                coalesce(lane.pause_ms, 0) AS pause_ms,
                coalesce(lane.refuse_until, 0) AS refuse_until,
                coalesce(lane.backoff_ms, 0) AS backoff_ms,
                coalesce(loss.lost_at, 0) AS browser_lost_at
            FROM (SELECT) AS nothing
            LEFT JOIN poll_lanes AS lane ON lane.site = %(site)s
            LEFT JOIN browser_losses AS loss ON TRUE
            """,
            {"site": site},
        )
        return await cursor.fetchone() or LaneRow()


async def shorten_waits(connection: AsyncConnection, site: str, row: LaneRow) -> None:
    """Write back a row that was bounded, so that its waits run out instead of sliding with the clock (LANE-058)."""
    await connection.execute(
        """
        UPDATE poll_lanes
        SET paused_until = least(paused_until, %(paused)s),
            refuse_until = least(refuse_until, %(refuse)s)
        WHERE site = %(site)s
        """,
        {"site": site, "paused": row.paused_until, "refuse": row.refuse_until},
    )
    await connection.execute("UPDATE browser_losses SET lost_at = least(lost_at, %s)", (row.browser_lost_at,))


async def pause_lane(connection: AsyncConnection, site: str, now_ms: int, pause_ms: int) -> None:
    """Stop a Lane for `pause_ms`, which is positive (LANE-042)."""
    await connection.execute(
        """
        INSERT INTO poll_lanes (site, paused_until, pause_ms)
        VALUES (%(site)s, %(until)s, %(length)s)
        ON CONFLICT (site) DO UPDATE
        SET paused_until = excluded.paused_until,
            pause_ms = excluded.pause_ms
        """,
        {"site": site, "until": now_ms + pause_ms, "length": pause_ms},
    )


async def resume_lane(connection: AsyncConnection, site: str) -> None:
    """End a pause and nothing else: a backoff stands (LANE-043)."""
    await connection.execute("UPDATE poll_lanes SET paused_until = 0 WHERE site = %s", (site,))


async def mark_browser_lost(connection: AsyncConnection, now_ms: int) -> None:
    """The browser went away while it was reading for us (LANE-007, LANE-033)."""
    await connection.execute(
        """
        INSERT INTO browser_losses (lost_at)
        VALUES (%(now)s)
        ON CONFLICT (only_row) DO UPDATE
        SET lost_at = %(now)s
        """,
        {"now": now_ms},
    )


async def count_refusal(connection: AsyncConnection, site: str) -> int:
    """Add one refusal to those in a row at `site` and return their number."""
    async with connection.cursor(row_factory=scalar_row) as cursor:
        await cursor.execute(
            """
            INSERT INTO poll_lanes AS lane (site, refusals_in_a_row)
            VALUES (%(site)s, 1)
            ON CONFLICT (site) DO UPDATE
            SET refusals_in_a_row = lane.refusals_in_a_row + 1
            RETURNING refusals_in_a_row
            """,
            {"site": site},
        )
        return int(await cursor.fetchone() or 0)


async def back_off(connection: AsyncConnection, site: str, now_ms: int, backoff_ms: int) -> None:
    """The Site has refused: nobody asks it for `backoff_ms` from now, and the count starts anew."""
    await connection.execute(
        """
        UPDATE poll_lanes
        SET refuse_until = %(until)s,
            backoff_ms = %(length)s,
            refusals_in_a_row = 0
        WHERE site = %(site)s
        """,
        {"site": site, "until": now_ms + backoff_ms, "length": backoff_ms},
    )


async def end_refusals(connection: AsyncConnection, site: str) -> None:
    """Any other outcome ends the run of refusals (LANE-031); writes only where there is one."""
    await connection.execute(
        "UPDATE poll_lanes SET refusals_in_a_row = 0 WHERE site = %(site)s AND refusals_in_a_row <> 0",
        {"site": site},
    )


async def take_request_slot(
    connection: AsyncConnection,
    site: str,
    now_ms: int,
    spacing_ms: int,
    floor_ms: int,
    *,
    unused: int = 0,
    cover: bool = False,
) -> int:
    """Claim this moment for one request to `site`: `spacing_ms` after its last one, `floor_ms` after its last cover's.

    Returns 0 when it is granted, else the ms until it is worth asking again. The moment `unused`, at which the caller
    had leave to ask and did not, counts for nothing. From the request for a `cover` no Lane's gap counts (LANE-053).

    One statement in a transaction of its own decides, so that no two processes are granted the same time. A moment in
    the future was stamped under another clock: when it was, nobody knows, but not later than now (LANE-056, LANE-058).
    """
    moment: LiteralString = "last_cover_at" if cover else "last_request_at"
    values = {"site": site, "now": now_ms, "spacing": spacing_ms, "floor": floor_ms, "unused": unused}
    cursor = await connection.execute(
        f"""
        INSERT INTO site_requests AS last (site, {moment})
        VALUES (%(site)s, %(now)s)
        ON CONFLICT (site) DO UPDATE
        SET {moment} = %(now)s
        WHERE (last.last_request_at <= %(now)s - %(spacing)s OR last.last_request_at = %(unused)s)
            AND last.last_cover_at <= %(now)s - %(floor)s
        """,
        values,
    )
    if cursor.rowcount:
        return 0
    cursor = await connection.execute(
        """
        UPDATE site_requests
        SET last_request_at = least(last_request_at, %(now)s),
            last_cover_at = least(last_cover_at, %(now)s)
        WHERE site = %(site)s
        RETURNING greatest(
            CASE WHEN last_request_at = %(unused)s THEN 0 ELSE last_request_at + %(spacing)s END,
            last_cover_at + %(floor)s
        )
        """,
        values,
    )
    row = await cursor.fetchone()
    return 1 if row is None else max(1, row[0] - now_ms)
