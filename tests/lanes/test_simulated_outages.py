"""Two days of a Site that will not be read, in simulated time, and its recovery."""

import logging

import pytest
import trio
from trio.testing import MockClock

from bookmark_appliance.clock import HOUR_MS
from bookmark_appliance.database import Database
from bookmark_appliance.lanes.page_errors import TransportFailure
from bookmark_appliance.lanes.site import Site
from bookmark_appliance.page import Page
from tests.lanes.fakes import MakeReader, TrioClock, answer, passes
from tests.lanes.simulation import Answers, SimulatedFetcher, Simulation, hold_many, page

SERIES = 20
NO_BROWSER_ROUTE = ["fault: asura no-browser-route", "fault over: asura no-browser-route"]


def status(code: int, **headers: str) -> Answers:
    async def answers(site: Site, address: str) -> Page:
        return answer(code, **headers)

    return answers


async def silence(site: Site, address: str) -> Page:
    await trio.sleep(30)
    raise TransportFailure("no answer in time")


@pytest.mark.parametrize(
    ("answers", "counted_as", "faults"),
    [
        pytest.param(status(403), "refused", NO_BROWSER_ROUTE, id="403"),
        pytest.param(status(429), "refused", NO_BROWSER_ROUTE, id="429"),
        pytest.param(status(503, retry_after="1800"), "refused", NO_BROWSER_ROUTE, id="503-retry-after"),
        pytest.param(status(503), "errors", [], id="503"),
        pytest.param(silence, "errors", [], id="silence"),
    ],
)
async def test_two_days_without_a_page_lose_no_series_and_open_one_episode_at_most(
    autojump_clock: MockClock,
    blocking_database: Database,
    make_reader: MakeReader,
    caplog: pytest.LogCaptureFixture,
    answers: Answers,
    counted_as: str,
    faults: list[str],
) -> None:
    """LANE-022, LANE-027, LANE-030, FAULT-003, FAULT-011, FAULT-012: refusals for more than 12 h are a fault.

    A plain Site that refuses has no browser route; a Site that is down is no fault of ours, its failure rows tell.
    """
    async with blocking_database.transaction() as connection:
        reader = await make_reader(connection, "1")
    await hold_many(blocking_database, reader, "asura", SERIES)
    clock = TrioClock()
    simulation = Simulation(blocking_database, clock, SimulatedFetcher(clock))
    caplog.set_level(logging.INFO, "bookmark_appliance.lanes.fault_watch")
    await simulation.run("asura", hours=1)

    simulation.plain.answers = answers
    went_down = clock.now_ms()
    # A process does not live for two days, and an episode does not end with it.
    for _ in range(2):
        await simulation.run("asura", hours=24)
    rows = [row for row in await passes(blocking_database) if int(str(row["ran_at"])) >= went_down]
    assert sum(int(str(row[counted_as])) for row in rows) > 2 * SERIES
    assert all(row["checked"] == row[counted_as] for row in rows if not row["skip"])
    tried = {address for at, _, address in simulation.plain.fetched if at >= went_down}
    assert len(tried) == SERIES, "every Series keeps its turn"

    recovered_at = clock.now_ms()
    simulation.plain.answers = page
    await simulation.run("asura", hours=2)
    succeeded = [(at, address) for at, _, address in simulation.plain.fetched if at >= recovered_at]
    assert succeeded[0][0] <= recovered_at + HOUR_MS
    assert len({address for _, address in succeeded}) == SERIES

    async with blocking_database.connection() as connection:
        cursor = await connection.execute("SELECT (SELECT count(*) FROM fault_episodes), count(*) FROM poll_failures")
        assert await cursor.fetchone() == (0, 0)
    said = [record.message for record in caplog.records if record.message.startswith("fault")]
    assert said == faults
