"""Days of the Lanes in simulated time: cadence, gaps, restarts. Each test is tens of thousands of queries."""

from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock

from bookmark_appliance.clock import HOUR_MS, MINUTE_MS, SECOND_MS
from bookmark_appliance.database import Database
from tests.lanes.fakes import START_MS, MakeReader, TrioClock, passes
from tests.lanes.simulation import (
    SimulatedFetcher,
    Simulation,
    checks,
    hold_many,
    longest_wait_ms,
    shortest_gap_ms,
)

TAB_SECONDS = 9.5
"""A read through the browser: about 360 an hour, and each shorter than a Lane's gap."""

Simulate = Callable[..., Awaitable[Simulation]]


@pytest.fixture
def simulate(blocking_database: Database, make_reader: MakeReader) -> Simulate:
    """Makes a simulation with `count` Series on each Site; the test asks for `autojump_clock` itself."""

    async def make(count: int, *sites: str, browser: bool = False) -> Simulation:
        async with blocking_database.transaction() as connection:
            reader = await make_reader(connection, "1")
        for site in sites:
            await hold_many(blocking_database, reader, site, count)
        clock = TrioClock()
        tab = SimulatedFetcher(clock, seconds=TAB_SECONDS, tab=trio.Semaphore(1)) if browser else None
        return Simulation(blocking_database, clock, SimulatedFetcher(clock), tab, judged=False)

    return make


@pytest.mark.parametrize("site", ["asura", "demonic", "lightnovelworld"])
async def test_a_day_of_500_series_on_a_plain_lane(autojump_clock: MockClock, simulate: Simulate, site: str) -> None:
    """LANE-018, LANE-019: every Series gets its check an hour, at a gap that the number of Series sets."""
    simulation = await simulate(500, site)
    await simulation.run(site, hours=24)
    moments = simulation.fetches_by_series(site)
    assert len(moments) == 500
    assert set(checks(moments)) <= {23, 24, 25}
    assert longest_wait_ms(moments, START_MS + 24 * HOUR_MS) <= 75 * MINUTE_MS
    assert shortest_gap_ms(simulation.fetches(site)) >= HOUR_MS // 500
    assert all(row["errors"] == row["refused"] == 0 for row in await passes(simulation.database, site))


async def test_a_day_of_100_series_on_each_browser_lane(autojump_clock: MockClock, simulate: Simulate) -> None:
    """LANE-010, LANE-014, LANE-019, LANE-052: three Lanes share one tab, and none falls behind.

    A Series that wakes Chrome alone is 15 min late by then; a look and a turn at the tab come on top.
    """
    sites = ("comix", "kagane", "novelfull")
    simulation = await simulate(100, *sites, browser=True)
    await simulation.run(*sites, hours=24)
    for site in sites:
        moments = simulation.fetches_by_series(site)
        assert len(moments) == 100
        assert set(checks(moments)) <= {23, 24, 25}
        assert longest_wait_ms(moments, START_MS + 24 * HOUR_MS) <= 75 * MINUTE_MS + 2 * MINUTE_MS
        assert shortest_gap_ms(simulation.fetches(site)) >= 10 * SECOND_MS


async def test_more_series_than_an_hour_has_seconds_stretch_the_cadence_evenly(
    autojump_clock: MockClock, simulate: Simulate
) -> None:
    """LANE-018, LANE-056: 5,000 Series; the floor holds, everyone waits alike, and the rows say so."""
    simulation = await simulate(5_000, "asura")
    await simulation.run("asura", hours=3.5)
    moments = simulation.fetches_by_series("asura")
    assert len(moments) == 5_000
    counts = checks(moments)
    assert max(counts) - min(counts) <= 1, counts
    assert shortest_gap_ms(simulation.fetches("asura")) >= SECOND_MS
    rows = await passes(simulation.database)
    assert rows
    assert all((row["gap_ms"], row["clamped"]) == (SECOND_MS, True) for row in rows)


async def test_a_restart_every_half_hour_costs_nobody_a_check(autojump_clock: MockClock, simulate: Simulate) -> None:
    """LANE-019, LANE-020, OPS-007: stopped in the middle of passes and reads, the Lane goes on where it was."""
    simulation = await simulate(120, "asura")
    simulation.plain.seconds = 9
    starts = []
    # A round takes twenty minutes of each hour: the first process ends in the middle of it, as many after it do.
    for hours in [1 / 6, *[0.5] * 47]:
        starts.append(simulation.clock.now_ms())
        await simulation.run("asura", hours=hours)
    moments = simulation.fetches_by_series("asura")
    answered = checks(moments)
    assert len(moments) == 120
    assert set(answered) <= {23, 24, 25}, answered
    assert longest_wait_ms(moments, simulation.clock.now_ms()) <= 75 * MINUTE_MS
    fetched = simulation.fetches("asura")
    assert shortest_gap_ms(fetched) >= 10 * SECOND_MS
    assert sum(bool(row["cut"]) for row in await passes(simulation.database)) >= 5
    for start in starts:
        last = [max((at for at in one if at < start), default=0) for one in moments.values()]
        if min(last) <= start - HOUR_MS:
            assert any(start <= at <= start + MINUTE_MS for at in fetched), start


async def test_overdue_work_starts_within_a_minute_of_a_start(autojump_clock: MockClock, simulate: Simulate) -> None:
    """LANE-002, LANE-017: after a day's outage everything is due, and the gap is kept all the same."""
    simulation = await simulate(50, "asura")
    await simulation.run("asura", hours=1)
    await trio.sleep(24 * 3600)
    start = simulation.clock.now_ms()
    await simulation.run("asura", hours=0.25)
    fetched = [at for at in simulation.fetches("asura") if at >= start]
    assert fetched[0] <= start + MINUTE_MS
    assert len(fetched) == 50
    assert min(after - before for before, after in pairwise(fetched)) >= 10 * SECOND_MS
