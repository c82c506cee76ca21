"""What is durable about a Lane besides its passes: pause, backoff, refusals in a row, its Site's last request."""

from dataclasses import dataclass

from psycopg import AsyncConnection
from psycopg.rows import class_row, scalar_row


@dataclass(frozen=True, slots=True)
class LaneRow:
    """A row of `poll_lanes`; moments in ms, 0 for none."""

    paused_until: int = 0
    refuse_until: int = 0
    refusals_in_a_row: int = 0


async def lane_row(connection: AsyncConnection, site: str) -> LaneRow:
    """The row of `site`; a missing one is an unpaused, unrefused Lane (LANE-046)."""
    async with connection.cursor(row_factory=class_row(LaneRow)) as cursor:
        await cursor.execute(
            "SELECT paused_until, refuse_until, refusals_in_a_row FROM poll_lanes WHERE site = %(site)s",
            {"site": site},
        )
        return await cursor.fetchone() or LaneRow()


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


async def back_off(connection: AsyncConnection, site: str, refuse_until_ms: int) -> None:
    """The Site has refused: nobody asks it before `refuse_until_ms`, and the count starts anew."""
    await connection.execute(
        "UPDATE poll_lanes SET refuse_until = %(until)s, refusals_in_a_row = 0 WHERE site = %(site)s",
        {"site": site, "until": refuse_until_ms},
    )


async def end_refusals(connection: AsyncConnection, site: str) -> None:
    """Any other outcome ends the run of refusals (LANE-031); writes only where there is one."""
    await connection.execute(
        "UPDATE poll_lanes SET refusals_in_a_row = 0 WHERE site = %(site)s AND refusals_in_a_row <> 0",
        {"site": site},
    )


@dataclass(frozen=True, slots=True)
class RequestSlot:
    """Whether a request may leave now; if not, `free_at` is when to ask again (ms)."""

    granted: bool
    free_at: int


async def take_request_slot(
    connection: AsyncConnection, site: str, now_ms: int, spacing_ms: int, tolerance_ms: int
) -> RequestSlot:
    """Claim this moment for one request to `site`, if the last one lies at least `spacing_ms` back (LANE-056).

    One statement in a transaction of its own, so that no two processes are granted the same time. A last request
    further in the future than `tolerance_ms` was stamped under another clock and counts for nothing.
    """
    values = {"site": site, "now": now_ms, "spacing": spacing_ms, "tolerance": tolerance_ms}
    async with connection.cursor(row_factory=scalar_row) as cursor:
        await cursor.execute(
            """
            INSERT INTO site_requests AS last (site, last_request_at)
            VALUES (%(site)s, %(now)s)
            ON CONFLICT (site) DO UPDATE
            SET last_request_at = %(now)s
            WHERE last.last_request_at <= %(now)s - %(spacing)s
                OR last.last_request_at > %(now)s + %(tolerance)s
            RETURNING last_request_at
            """,
            values,
        )
        if await cursor.fetchone() is not None:
            return RequestSlot(granted=True, free_at=now_ms)
        await cursor.execute("SELECT last_request_at FROM site_requests WHERE site = %(site)s", values)
        last_request_at: int | None = await cursor.fetchone()
    return RequestSlot(granted=False, free_at=(last_request_at or now_ms) + spacing_ms)
