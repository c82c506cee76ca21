"""A task that crashes starts again after a growing, bounded pause; a Lane's pass is recorded all the same."""

import logging
from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock

from bookmark_appliance.lanes.request_slots import HeldSlot, RequestSlots
from bookmark_appliance.lanes.supervision import contain
from tests.lanes.conftest import World
from tests.lanes.fakes import hold_series, passes


async def test_the_pauses_double_up_to_five_minutes(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """LANE-057: 1 s, 2 s, 4 s … at most 5 min; each crash is logged once with its traceback."""
    starts: list[float] = []

    async def run() -> None:
        starts.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        raise RuntimeError("a bug of ours")

    with trio.move_on_after(1400):
        await contain("lane[asura]", run)
    pauses = [round(after - before) for before, after in pairwise(starts)]
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    crashes = [record for record in caplog.records if record.exc_info]
    assert [record.message for record in crashes] == ["lane[asura] crashed; it starts again"] * len(starts)


async def test_a_run_that_lasted_starts_the_pauses_anew(autojump_clock: MockClock) -> None:
    """LANE-057: an old crash costs a later one nothing; an end without one is the end."""
    lengths = iter([0, 0, 299, 301, 0, 0, None])
    starts: list[float] = []

    async def run() -> None:
        starts.append(trio.current_time())
        length = next(lengths)
        if length is None:
            return
        await trio.sleep(length)
        raise RuntimeError("a bug of ours")

    await contain("lane[asura]", run)
    assert [round(after - before) for before, after in pairwise(starts)] == [1, 2, 299 + 4, 301 + 1, 2, 4]


async def test_a_crash_records_the_pass_with_what_it_had_and_the_lane_goes_on(
    autojump_clock: MockClock, world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """LANE-057, LANE-037: one row each, the crashed one cut; a sibling keeps its own pace."""
    for number in range(3):
        await hold_series(world.database, world.readers[0], f"s{number}")
    take, asked = RequestSlots.take, 0

    async def take_and_crash(slots: RequestSlots, site: str, spacing_ms: int) -> HeldSlot:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise RuntimeError("a bug of ours")
        return await take(slots, site, spacing_ms)

    monkeypatch.setattr(RequestSlots, "take", take_and_crash)
    lane, sibling = world.lane(), world.lane("demonic")
    with caplog.at_level(logging.ERROR), trio.move_on_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(contain, lane.name, lane.run)
            nursery.start_soon(contain, sibling.name, sibling.run)
    crashed, whole = await passes(world.database)
    assert [crashed[name] for name in ("due", "checked", "cut", "skip", "gap_ms")] == [3, 2, True, "", 10_000]
    assert [whole[name] for name in ("due", "checked", "cut")] == [1, 1, False]
    assert len(world.fetcher.fetched) == 3
    assert len(await passes(world.database, "demonic")) == 1
    assert [record.message for record in caplog.records] == ["lane[asura] crashed; it starts again"]
