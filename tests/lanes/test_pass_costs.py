"""What passes cost, with room for a busy machine; `python -m tests.bench.lanes` prints the figures themselves."""

import logging
import sys

import pytest
from trio.testing import MockClock

from bookmark_appliance.database import Database
from bookmark_appliance.log import PACKAGE
from tests.lanes.fakes import MakeReader, TrioClock
from tests.lanes.pass_costs import growth, pass_cpu_ms
from tests.lanes.simulation import SimulatedFetcher, Simulation, hold_many

NOISE = 2


async def test_a_pass_over_360_due_series_costs_a_second_of_cpu(
    autojump_clock: MockClock, blocking_database: Database, make_reader: MakeReader
) -> None:
    """LANE-018: at most 1.2 s besides parsing, for an hour's work."""
    async with blocking_database.transaction() as connection:
        reader = await make_reader(connection, "1")
    clock = TrioClock()
    simulation = Simulation(blocking_database, clock, SimulatedFetcher(clock))
    assert await pass_cpu_ms(simulation, reader) <= 1_200 * NOISE


async def test_passes_leave_nothing_behind_in_memory(
    autojump_clock: MockClock, blocking_database: Database, make_reader: MakeReader, caplog: pytest.LogCaptureFixture
) -> None:
    """LANE-002: 2 MB over 10,000 passes is 200 bytes a pass; an object that each pass left behind would show."""
    caplog.set_level(logging.WARNING, PACKAGE)  # the records of a test are kept to its end, whatever they weigh
    async with blocking_database.transaction() as connection:
        reader = await make_reader(connection, "1")
    await hold_many(blocking_database, reader, "asura", 10)
    clock = TrioClock()
    simulation = Simulation(blocking_database, clock, SimulatedFetcher(clock))
    passes = 400
    assert await growth(simulation, passes, sys.getallocatedblocks) < passes / 4
