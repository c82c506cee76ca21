"""What the Lanes cost: `python -m tests.bench.lanes`, on a database with the settings that an operator gets.

The queries run over 20,000 Series of one Site with 100,000 Bookmarks, and the fault judgement over a fortnight of
passes; the passes run in simulated time.
"""

import statistics
import time
from collections.abc import Awaitable, Callable

import trio
from trio.testing import MockClock

from bookmark_appliance.clock import DAY_MS, SECOND_MS
from bookmark_appliance.database import open_database
from bookmark_appliance.embedded_postgres import EmbeddedPostgres
from bookmark_appliance.lanes.fault_watch import FaultWatch
from bookmark_appliance.postgres.migrations import migrate
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.secret import Secret
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store import due
from bookmark_appliance.store.readers import add_reader, seed_owner
from tests.bench.disk_folder import disk_folder
from tests.bench.figures import Figure
from tests.blocking_connection import BlockingConnection
from tests.lanes.fakes import TrioClock
from tests.lanes.large_site import NOW, SITE, TERMS, fill, make_all_due
from tests.lanes.pass_costs import growth, pass_cpu_ms, resident_bytes
from tests.lanes.simulation import SIMULATED, SimulatedFetcher, Simulation

ROUNDS = 15
PASSES = 10_000

_KEY = Secret("a token key for the bench, 32 characters or more")


def run() -> list[Figure]:
    """Start a database of its own, measure, and stop it: about two minutes."""
    with disk_folder() as folder:
        server = EmbeddedPostgres(folder, serve=True, settings={})
        try:
            trio.run(server.start)
            trio.run(_migrate, server.conninfo)
            figures = trio.run(_measure_queries, server.conninfo)
            return figures + trio.run(_measure_passes, server.conninfo, clock=MockClock(autojump_threshold=0))
        finally:
            trio.run(server.stop)


async def _migrate(conninfo: str) -> None:
    await migrate(conninfo, lambda connection: seed_owner(connection, "1", _KEY))


async def _measure_queries(conninfo: str) -> list[Figure]:
    async with open_database(conninfo) as database:
        await fill(database)
        async with database.connection() as connection:
            figures = await _time_queries(connection, "360 due of 20,000", due_most=15)
            await make_all_due(connection)
            figures += await _time_queries(connection, "20,000 due of 20,000", due_most=120)
            await connection.execute("TRUNCATE series CASCADE")
            await _fill_passes(connection)
            watch = FaultWatch(database, SIMULATED, browser_configured=True)
            judged = await _median_ms(lambda: watch.judge(SITE, NOW))
            await connection.execute("TRUNCATE poll_passes")
    return [*figures, Figure("faults judged over a fortnight of passes", judged, "ms")]


async def _time_queries(connection: TrioConnection, state: str, due_most: float) -> list[Figure]:
    key = SeriesKey(SITE, "a-series-of-some-length-1")
    asked: list[tuple[str, Callable[[], Awaitable[object]], float | None]] = [
        ("due", lambda: due.due_series(connection, SITE, TERMS), due_most),
        ("next due", lambda: due.next_due_at(connection, SITE, TERMS), 30),
        ("forced", lambda: due.forced_series(connection, SITE, TERMS), None),
        ("stamp if due", lambda: due.stamp_if_due(connection, key, TERMS), None),
        ("eligible count", lambda: due.eligible_count(connection, SITE), None),
    ]
    return [Figure(f"{name}, {state}", await _median_ms(ask), "ms", most=most) for name, ask, most in asked]


async def _fill_passes(connection: TrioConnection) -> None:
    """A pass every 10 s of every Lane, which is as many as there can be."""
    await connection.execute(
        """
        INSERT INTO poll_passes (
            site, ran_at, skip, due, checked, gap_ms, clamped,
            refused, unreachable, no_chapter, unfetchable, not_found, errors
        )
        SELECT site, %(now)s - n * 10000::bigint, '', 1, 1, 10000, FALSE, 0, 0, 0, 0, 0, 0
        FROM unnest(%(sites)s::text[]) AS site
        CROSS JOIN generate_series(1, %(passes)s) AS n
        """,
        {"now": NOW, "sites": list(SIMULATED), "passes": 14 * DAY_MS // (10 * SECOND_MS)},
    )
    await connection.execute("VACUUM ANALYZE poll_passes")


async def _median_ms(ask: Callable[[], Awaitable[object]]) -> float:
    took = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await ask()
        took.append((time.perf_counter() - began) * SECOND_MS)
    return statistics.median(took)


async def _measure_passes(conninfo: str) -> list[Figure]:
    async with open_database(conninfo, connection_class=BlockingConnection) as database:
        async with database.transaction() as connection:
            reader = await add_reader(connection, "2", _KEY)
        clock = TrioClock()
        simulation = Simulation(database, clock, SimulatedFetcher(clock))
        cpu = await pass_cpu_ms(simulation, reader)
        async with database.connection() as connection:
            await connection.execute("DELETE FROM bookmarks WHERE series_id > 's2'")
        grown = await growth(simulation, PASSES, resident_bytes)
    return [
        Figure("CPU of a pass over 360 due Series", cpu, "ms", most=1_200),
        Figure(f"growth over {PASSES:,} passes", grown / 1_000_000, "MB", most=2),
    ]


if __name__ == "__main__":
    for figure in run():
        print(figure, flush=True)
