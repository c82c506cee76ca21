"""Which process runs which Lane, and what wakes one: real time, real sessions, real notifications."""

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import pytest
import trio

from bookmark_appliance.clock import HOUR_MS
from bookmark_appliance.database import Database, DatabaseUnavailable
from bookmark_appliance.lanes.fault_watch import FaultWatch
from bookmark_appliance.lanes.lane import Lane
from bookmark_appliance.lanes.lane_keeper import RECONNECT_SECONDS, TRY_SECONDS, keep_lanes, lane_lock
from bookmark_appliance.lanes.request_slots import RequestSlots
from bookmark_appliance.lanes.series_read import SeriesReader
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.postgres.lock_session import LockSession, open_lock_session
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.lane_rows import pause_lane, resume_lane
from bookmark_appliance.store.owner_acts import repair_series_url, request_poll, set_finished
from bookmark_appliance.store.readers import Reader
from bookmark_appliance.store.series import drop_claim
from tests.lanes.fakes import START_MS, FakeFetcher, MakeReader, TrioClock, asura_url, hold_series, passes

KEY = SeriesKey("asura", "s")
URL = asura_url("s")

Running = dict[str, set[str]]
"""By Site, the processes that run its Lane at this moment."""


class WatchedLane(Lane):
    """Tells when it runs and when it is nudged; `instead` replaces its passes."""

    process: str
    running: Running
    nudges: int
    instead: Callable[[], Awaitable[None]] | None

    async def run(self) -> None:
        running = self.running[self.site.name]
        assert not running, f"{self.name} runs twice"
        running.add(self.process)
        try:
            await (super().run() if self.instead is None else self.instead())
        finally:
            running.remove(self.process)

    def nudge(self) -> None:
        self.nudges += 1
        super().nudge()


@dataclass(slots=True)
class Process:
    """What one `serve` process has of its own."""

    name: str
    database: Database
    database_url: str
    clock: TrioClock
    running: Running
    fetcher: FakeFetcher = field(init=False)
    tries: int = 0

    def __post_init__(self) -> None:
        self.fetcher = FakeFetcher(self.clock)

    def lane(self, site: str, *, asleep: bool = True) -> WatchedLane:
        slots = RequestSlots(self.database, self.clock)
        faults = FaultWatch(self.database, SITES, browser_configured=False)
        reader = SeriesReader(self.clock, self.fetcher)
        lane = WatchedLane(SITES[site], self.database, reader, slots, faults, self.clock)
        lane.process, lane.running, lane.nudges = self.name, self.running, 0
        lane.instead = trio.sleep_forever if asleep else None
        return lane

    @asynccontextmanager
    async def session(self) -> AsyncIterator[LockSession]:
        async with open_lock_session(self.database_url) as session:
            self.tries += 1
            yield session

    async def keep(self, *lanes: WatchedLane, scope: trio.CancelScope | None = None) -> None:
        with scope or trio.CancelScope():
            await keep_lanes(lanes, self.session, try_seconds=0.02, reconnect_seconds=0.02)


@pytest.fixture
def processes(database: Database, database_url: str) -> Callable[[str], Process]:
    clock, running = TrioClock(), defaultdict[str, set[str]](set)
    return lambda name: Process(name, database, database_url, clock, running)


@pytest.fixture
async def reader(database: Database, make_reader: MakeReader) -> Reader:
    async with database.transaction() as connection:
        return await make_reader(connection, "1")


async def until(condition: Callable[[], bool], seconds: float = 5) -> None:
    with trio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110 - the condition lies at the other side of a server
            await trio.sleep(0.005)


def where(running: Running) -> dict[str, set[str]]:
    return {site: set(names) for site, names in running.items() if names}


ProcessMaker = Callable[[str], Process]


@pytest.fixture
async def two(processes: ProcessMaker) -> tuple[Process, Process]:
    await trio.lowlevel.checkpoint()
    return processes("one"), processes("other")


async def test_every_lane_runs_in_one_process_and_moves_when_that_one_ends(
    two: tuple[Process, Process], caplog: pytest.LogCaptureFixture
) -> None:
    """LANE-001, LANE-002: never twice, and each within a try of the end of the session that held it."""
    one, other = two
    first = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(one.keep, *(one.lane(site) for site in SITES), scope=first))
        await until(lambda: where(one.running) == {site: {"one"} for site in SITES})
        nursery.start_soon(other.keep, *(other.lane(site) for site in SITES))
        await until(lambda: other.tries == 1)
        await trio.sleep(0.1)
        assert where(one.running) == {site: {"one"} for site in SITES}
        first.cancel()
        await until(lambda: where(one.running) == {site: {"other"} for site in SITES})
        nursery.cancel_scope.cancel()
    assert "crashed" not in caplog.text, "a Lane that runs twice says so, and is contained"
    assert TRY_SECONDS + RECONNECT_SECONDS < 60


def test_each_lane_has_a_lock_of_its_own() -> None:
    """LANE-002: and during an upgrade the old process and the new one mean the same one."""
    assert len({lane_lock(site) for site in SITES}) == len(SITES)
    assert hex(lane_lock("asura")) == "0x626d61706e7c4693"


async def test_a_lost_session_stops_its_lanes_and_they_come_back(
    two: tuple[Process, Process], database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """LANE-057: whoever loses the session has lost the locks; the Lanes run again as soon as they can be had."""
    one, _ = two
    ended = 0

    async def instead() -> None:
        nonlocal ended
        try:
            await trio.sleep_forever()
        finally:
            ended += 1

    lanes = [one.lane(site) for site in SITES]
    for lane in lanes:
        lane.instead = instead
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.keep, *lanes)
        await until(lambda: len(where(one.running)) == 6)
        await end_holder(database)
        await until(lambda: ended == 6)
        await until(lambda: len(where(one.running)) == 6)
        nursery.cancel_scope.cancel()
    assert "no Lane runs here until the database answers" in caplog.text
    assert one.tries == 2


async def test_an_outage_is_told_once(
    two: tuple[Process, Process], database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """LANE-057: however long the database is away; and the next one is told again."""
    one, _ = two
    tries = 0

    @asynccontextmanager
    async def session() -> AsyncIterator[LockSession]:
        nonlocal tries
        tries += 1
        if tries % 5:
            raise DatabaseUnavailable("no answer")
        async with one.session() as opened:
            yield opened

    async with trio.open_nursery() as nursery:
        lanes = [one.lane("asura")]
        nursery.start_soon(partial(keep_lanes, lanes, session, try_seconds=0.02, reconnect_seconds=0.02))
        await until(lambda: where(one.running) == {"asura": {"one"}})
        assert caplog.text.count("no Lane runs here") == 1
        await end_holder(database)
        await until(lambda: tries == 9)
        assert caplog.text.count("no Lane runs here") == 2
        nursery.cancel_scope.cancel()


async def test_a_killed_session_hands_its_lanes_to_the_other_process(
    two: tuple[Process, Process], database: Database
) -> None:
    """LANE-002: each Lane runs once, wherever: the one that lost it may be the one that gets it back."""
    one, other = two
    async with trio.open_nursery() as nursery:
        for process in two:
            nursery.start_soon(process.keep, *(process.lane(site) for site in SITES))
        await until(lambda: len(where(one.running)) == 6)
        await end_holder(database)
        await until(lambda: one.tries + other.tries == 3)
        await until(lambda: len(where(one.running)) == 6)
        nursery.cancel_scope.cancel()


async def end_holder(database: Database) -> None:
    async with database.connection() as connection:
        key = lane_lock("asura")
        await connection.execute(
            """
            SELECT pg_terminate_backend(pid)
            FROM pg_locks
            WHERE locktype = 'advisory'
                AND granted
                AND (classid::bigint << 32) + objid::bigint = %s
            """,
            (key,),
        )


async def test_a_crashing_lane_disturbs_neither_its_siblings_nor_its_keeper(
    two: tuple[Process, Process], caplog: pytest.LogCaptureFixture
) -> None:
    """LANE-057: contained; the lock stays where it is while the Lane waits to start again."""
    one, _ = two

    async def crash() -> None:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("a bug of ours")

    bad, good = one.lane("asura"), one.lane("demonic")
    bad.instead = crash
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.keep, bad, good)
        await until(lambda: "lane[asura] crashed" in caplog.text and "demonic" in where(one.running))
        assert where(one.running) == {"demonic": {"one"}}
        nursery.cancel_scope.cancel()
    assert [record.exc_info is not None for record in caplog.records if "crashed" in record.message] == [True]


Act = Callable[[Database, Reader], Awaitable[None]]


async def press(database: Database, reader: Reader) -> None:
    async with database.connection() as connection:
        await request_poll(connection, KEY, START_MS + 1)


async def resume(database: Database, reader: Reader) -> None:
    async with database.connection() as connection:
        await resume_lane(connection, "asura")


async def repair(database: Database, reader: Reader) -> None:
    async with database.connection() as connection:
        await repair_series_url(connection, KEY, URL)


async def unfinish(database: Database, reader: Reader) -> None:
    async with database.connection() as connection:
        await set_finished(connection, KEY, 0)


async def add(database: Database, reader: Reader) -> None:
    await hold_series(database, reader, "s")


async def end_claim(database: Database, reader: Reader) -> None:
    async with database.connection() as connection:
        await drop_claim(connection, KEY)


@pytest.mark.parametrize(
    ("before", "act"),
    [
        ({"checked_at": START_MS}, press),
        ({}, resume),
        ({"url": ""}, repair),
        ({"finished_at": 5}, unfinish),
        (None, add),
        ({}, end_claim),
    ],
)
async def test_a_word_wakes_a_sleeping_lane(
    processes: ProcessMaker, database: Database, reader: Reader, before: dict[str, int] | None, act: Act
) -> None:
    """LANE-002, LANE-043, LANE-044: forced check, resume, repair, un-finish, new Series, an Acquisition that failed."""
    if before is not None:
        await hold_series(database, reader, "s", **before)  # type: ignore[arg-type]
    async with database.connection() as connection:
        if act is resume:
            await pause_lane(connection, "asura", START_MS, HOUR_MS)
        if act is end_claim:
            await connection.execute("UPDATE series SET acquiring_until = %s", (START_MS + 40_000,))
    process = processes("one")
    lane = process.lane("asura", asleep=False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(process.keep, lane)
        with trio.fail_after(5):
            while not await passes(database):
                pass
        assert process.fetcher.fetched == []
        await act(database, reader)
        await until(lambda: process.fetcher.addresses() == [URL])
        assert lane.nudges
        nursery.cancel_scope.cancel()


async def test_a_pause_is_told_too_and_a_write_that_concerns_no_lane_is_not(
    processes: ProcessMaker, database: Database, reader: Reader
) -> None:
    """LANE-002, LANE-044: a first pause and a changed one; a Poll's own stamps wake nobody, nor another Site's word."""
    await hold_series(database, reader, "s", checked_at=START_MS)
    process = processes("one")
    asura, demonic = process.lane("asura"), process.lane("demonic")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(process.keep, asura, demonic)
        await until(lambda: len(where(process.running)) == 2)
        async with database.connection() as connection:
            await connection.execute("UPDATE series SET latest_checked_at = 5, latest_chapter_num = 7, doubtful_at = 9")
            await connection.execute("INSERT INTO poll_lanes (site, refusals_in_a_row) VALUES ('demonic', 1)")
            await connection.execute("UPDATE poll_lanes SET refuse_until = 9 WHERE site = 'demonic'")
            for length in (HOUR_MS, 2 * HOUR_MS):
                await pause_lane(connection, "asura", START_MS, length)
        await until(lambda: asura.nudges == 2)
        assert demonic.nudges == 0
        nursery.cancel_scope.cancel()
