"""A fault in every place where a pass can fail: one row, the right word, and nobody else notices."""

from collections.abc import Iterator
from itertools import pairwise
from pkgutil import resolve_name

import psycopg
import pytest
import trio
from psycopg.abc import PQGen
from trio.testing import MockClock

from bookmark_appliance.clock import SECOND_MS
from bookmark_appliance.database import Database, open_database
from bookmark_appliance.lanes.supervision import contain
from bookmark_appliance.page import Page
from bookmark_appliance.postgres.trio_connection import T
from bookmark_appliance.store.readers import Reader
from tests.blocking_connection import BlockingConnection
from tests.lanes.conftest import World
from tests.lanes.fakes import (
    START_MS,
    MakeReader,
    TrioClock,
    asura_page,
    asura_url,
    hold_series,
    passes,
    series_value,
)
from tests.lanes.simulation import SimulatedFetcher, Simulation, hold_many

SERIES, SIBLINGS = 3, 30
COUNTED = ("skip", "due", "checked", "errors", "cut")


class Saboteur:
    """Ends the backend of a connection right before one of the statements of one task."""

    def __init__(self, url: str) -> None:
        self._control = psycopg.connect(url, autocommit=True)
        self._victim: trio.lowlevel.Task | None = None
        self.statement = 0
        self._strikes_at = 0

    def arm(self, strikes_at: int) -> None:
        """Count the statements of this task from now on, and strike before the one with this number."""
        self._victim, self.statement, self._strikes_at = trio.lowlevel.current_task(), 0, strikes_at

    def disarm(self) -> None:
        """Strike no more."""
        self._victim = None

    def before_statement(self, backend: int) -> None:
        """What every connection tells before it sends anything."""
        if trio.lowlevel.current_task() is not self._victim:
            return
        self.statement += 1
        if self.statement == self._strikes_at:
            self._control.execute("SELECT pg_terminate_backend(%s, 5000)", (backend,))

    def close(self) -> None:
        """Let go of the server."""
        self._control.close()


@pytest.fixture
def saboteur(database_url: str) -> Iterator[Saboteur]:
    """One for the test's database."""
    one = Saboteur(database_url)
    yield one
    one.close()


def watched_by(saboteur: Saboteur) -> type[BlockingConnection]:
    class Watched(BlockingConnection):
        async def wait(self, gen: PQGen[T], interval: float = 0.0, timeout: float | None = None) -> T:  # noqa: ASYNC109
            saboteur.before_statement(self.pgconn.backend_pid)
            return await super().wait(gen, interval, timeout)

    return Watched


async def test_a_backend_that_dies_before_any_statement_of_a_pass_costs_one_series_at_most(
    autojump_clock: MockClock,
    database_url: str,
    saboteur: Saboteur,
    make_reader: MakeReader,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """LANE-009, LANE-011, LANE-021, LANE-027, LANE-037, LANE-048, LANE-057: whichever statement it is.

    Only the row of a pass whose own recording is struck is lost, and the log says so. A sibling shares the pool.
    """
    async with open_database(database_url, connection_class=watched_by(saboteur)) as database:
        reader = await _reader(database, make_reader)
        await hold_many(database, reader, "asura", SERIES)
        await hold_many(database, reader, "demonic", SIBLINGS)
        clock = TrioClock()
        simulation = Simulation(database, clock, SimulatedFetcher(clock))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(simulation.lane("demonic").run)
            strikes_at, lost = 1, 0
            while await _struck_pass(simulation, saboteur, strikes_at):
                lost += await _judge_struck_pass(database, caplog)
                strikes_at += 1
                await _forget(database)
                # Nothing of what was struck stays behind: the next pass is whole.
                await simulation.lane("asura").run_pass()
                (row,) = await passes(database)
                assert [row[name] for name in COUNTED] == ["", SERIES, SERIES, 0, False], strikes_at
                await _forget(database)
            nursery.cancel_scope.cancel()
        assert strikes_at > 30, "a pass of three Series has this many statements at the least"
        assert 1 <= lost <= 6, "BEGIN, the row before, the row, what is too old, COMMIT"
        siblings = await passes(database, "demonic")
        assert sum(int(str(row["checked"])) for row in siblings) >= SIBLINGS
        assert not [row for row in siblings if row["errors"] or row["cut"] or row["skip"]]
        fetched = simulation.fetches("asura")
        assert min(after - before for before, after in pairwise(fetched)) >= 10 * SECOND_MS


async def _reader(database: Database, make_reader: MakeReader) -> Reader:
    async with database.transaction() as connection:
        return await make_reader(connection, "1")


async def _struck_pass(simulation: Simulation, saboteur: Saboteur, strikes_at: int) -> bool:
    """Run one pass and strike; False when it had no such statement any more."""
    saboteur.arm(strikes_at)
    await simulation.lane("asura").run_pass()
    saboteur.disarm()
    return saboteur.statement >= strikes_at


async def _judge_struck_pass(database: Database, caplog: pytest.LogCaptureFixture) -> bool:
    """Check the row that a struck pass has left; True when it was lost."""
    rows = await passes(database)
    said = [record.message for record in caplog.records]
    assert not [record for record in caplog.records if record.exc_info], "a database that fails is no crash of ours"
    caplog.clear()
    if not rows:
        assert any("the row of its pass was lost" in record for record in said)
        return True
    (row,) = rows
    skip, due, checked, errors, cut = (row[name] for name in COUNTED)
    assert skip in ("", "due-query", "eligible-count")
    assert not cut
    if any("gave it no turn" in record for record in said):
        assert (due, errors) == (SERIES, 0)
        assert int(str(checked)) < SERIES
        assert (skip == "due-query") is (checked == 0), "a pass without a turn is no stall"
    elif skip:
        assert (errors, due) in ((0, SERIES), (0, 0))
    else:
        assert (due, checked) == (SERIES, SERIES)
        assert errors in (0, 1)
    return False


async def _forget(database: Database) -> None:
    """Make asura's Series as due as they were at first."""
    async with database.connection() as connection:
        await connection.execute("DELETE FROM poll_passes WHERE site = 'asura'")
        await connection.execute("DELETE FROM poll_failures WHERE site = 'asura'")
        await connection.execute("UPDATE series SET latest_checked_at = 0 WHERE site = 'asura'")


@pytest.mark.parametrize(
    ("fails", "counted", "fetches", "pace_ms"),
    [
        pytest.param("lanes.lane.lane_row", ["", 2, 2, 0, False], 2, None, id="gates"),
        pytest.param("lanes.lane.due_series", ["due-query", 0, 0, 0, False], 0, 10_000, id="due-query"),
        pytest.param("lanes.lane.eligible_count", ["eligible-count", 2, 0, 0, False], 0, 10_000, id="eligible-count"),
        pytest.param("lanes.lane.forced_series", ["", 2, 2, 0, False], 2, None, id="look"),
        pytest.param("lanes.lane.next_due_at", ["", 2, 2, 0, False], 2, 10_000, id="next-due"),
        pytest.param("lanes.poll.stamp_if_due", ["", 2, 2, 2, False], 0, None, id="stamp"),
        pytest.param("lanes.poll.record_reading", ["", 2, 2, 2, False], 2, None, id="reading"),
        pytest.param("lanes.poll.record_failing", ["", 2, 2, 0, False], 2, None, id="failure-row"),
        pytest.param("store.fault_rows.latest_passes", ["", 2, 2, 0, False], 2, None, id="faults"),
        pytest.param("lanes.request_slots.take_request_slot", ["due-query", 2, 0, 0, False], 0, 10_000, id="slot"),
    ],
)
async def test_each_query_that_fails_has_its_word(
    autojump_clock: MockClock,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    fails: str,
    counted: list[object],
    fetches: int,
    pace_ms: int | None,
) -> None:
    """LANE-004, LANE-009, LANE-011, LANE-021, LANE-027, LANE-037, FAIL-006, FAULT-014: one row, whatever fails."""
    for slug in ("a", "b"):
        await hold_series(world.database, world.readers[0], slug)

    async def fail(*_: object, **__: object) -> object:
        raise psycopg.OperationalError("the server is not well")

    with monkeypatch.context() as patches:
        patches.setattr(f"bookmark_appliance.{fails}", fail)
        moment = await world.lane().run_pass()
    (row,) = await passes(world.database)
    assert [row[name] for name in COUNTED] == counted
    assert len(world.fetcher.fetched) == fetches
    if pace_ms is not None:
        assert moment == world.clock.now_ms() + pace_ms


async def test_a_pass_cut_while_it_waits_for_its_slot_leaves_the_rest_due(
    autojump_clock: MockClock, world: World
) -> None:
    """LANE-037, OPS-007: what it had is recorded, and the Series whose turn had not come is as it was."""
    for number in (1, 2):
        await hold_series(world.database, world.readers[0], f"s{number}", checked_at=number)
    with trio.move_on_after(5):
        await world.lane().run_pass()
    (row,) = await passes(world.database)
    assert [row[name] for name in COUNTED] == ["", 2, 1, 0, True]
    assert await series_value(world.database, "s2", "latest_checked_at") == 2


async def test_an_answer_that_came_as_we_were_stopped_is_still_recorded(
    autojump_clock: MockClock, world: World
) -> None:
    """LANE-020, LANE-037, OPS-007: the Site was asked and has answered; a restart does not lose the check."""
    await hold_series(world.database, world.readers[0], "s")
    with trio.CancelScope() as scope:

        async def stop_us() -> Page:
            scope.cancel()
            return asura_page(asura_url("s"), 7)

        world.fetcher.script(asura_url("s"), stop_us)
        await world.lane().run_pass()
    (row,) = await passes(world.database)
    assert row["cut"]
    assert await series_value(world.database, "s", "latest_checked_at") == START_MS
    assert await series_value(world.database, "s", "latest_chapter_num") == 7


async def test_a_lane_that_crashes_again_and_again_waits_longer_each_time(
    autojump_clock: MockClock, world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """LANE-057, LANE-037, FAULT-002: 1 s, 2 s, 4 s … 300 s; a row and a traceback each; its sibling goes on."""
    await hold_series(world.database, world.readers[0], "s")
    url = "https://demonicscans.org/manga/S"
    await hold_series(world.database, world.readers[0], "d", site="demonic", url=url)
    lane, sibling = world.lane(), world.lane("demonic")

    async def crash(tally: object) -> int:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(lane, "_sweep", crash)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(contain, lane.name, lane.run)
        nursery.start_soon(contain, sibling.name, sibling.run)
        await trio.sleep(30 * 60)
        nursery.cancel_scope.cancel()
    rows = await passes(world.database)
    pauses = [(int(str(b["ran_at"])) - int(str(a["ran_at"]))) // SECOND_MS for a, b in pairwise(rows)]
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300]
    assert all(row["cut"] for row in rows)
    crashed = [record for record in caplog.records if "crashed" in record.message]
    assert len(crashed) == len(rows)
    assert all(record.exc_info for record in crashed)
    (row,) = await passes(world.database, "demonic")
    assert [row["checked"], row["cut"]] == [1, False]
    async with world.database.connection() as connection:
        cursor = await connection.execute("SELECT condition, site FROM fault_episodes WHERE site = 'asura'")
        assert await cursor.fetchall() == [], "a crash is not a stall"


@pytest.mark.parametrize("written", ["lane.record_pass", "poll.record_reading"])
async def test_a_slow_database_costs_time_and_nothing_else(
    autojump_clock: MockClock, world: World, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    """LANE-037, LANE-027: a write that takes a minute is no error of its Series, and loses no row."""
    await hold_series(world.database, world.readers[0], "s")
    _slow_down(monkeypatch, written)
    await world.lane().run_pass()
    (row,) = await passes(world.database)
    assert [row[name] for name in COUNTED] == ["", 1, 1, 0, False]
    assert await series_value(world.database, "s", "latest_chapter_num") == 181


@pytest.mark.parametrize("written", ["lane.record_pass", "poll.record_reading"])
async def test_what_a_stop_leaves_no_time_to_write_is_said(
    autojump_clock: MockClock,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    written: str,
) -> None:
    """LANE-037, OPS-007: a process that is stopped waits a few seconds for its database, no longer."""
    await hold_series(world.database, world.readers[0], "s")
    _slow_down(monkeypatch, written)
    with trio.CancelScope() as scope:

        async def stop_us() -> Page:
            scope.cancel()
            return asura_page(asura_url("s"), 7)

        world.fetcher.script(asura_url("s"), stop_us)
        await world.lane().run_pass()
    assert world.clock.now_ms() <= START_MS + 6_000
    (line,) = [record.message for record in caplog.records if "did not take it in time" in record.message]
    assert "was lost" in line


def _slow_down(monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    path = f"bookmark_appliance.lanes.{written}"
    real = resolve_name(path.replace(".record_", ":record_"))

    async def slow(*arguments: object) -> object:
        await trio.sleep(60)
        return await real(*arguments)

    monkeypatch.setattr(path, slow)
