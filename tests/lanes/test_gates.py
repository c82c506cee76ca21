"""What wakes the browser, and how far behind a Lane is: pure decisions, and the passes that follow from them."""

import logging
from collections.abc import Sequence
from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

from bookmark_appliance.clock import HOUR_MS, MINUTE_MS
from bookmark_appliance.lanes.gates import lateness_ms, wakes_browser
from bookmark_appliance.lanes.page_errors import BrowserLost
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.store.due import DueSeries
from tests.lanes.conftest import World
from tests.lanes.fakes import START_MS, FakeFetcher, answer, hold_series, passes, series_value
from tests.lanes.test_lane import set_lane_row

NOW = START_MS
EARLY = NOW - HOUR_MS - 2 * MINUTE_MS
"""Due for 2 min: not worth a browser alone."""


def due(checked_at: int = EARLY, *, forced: bool = False, doubtful: bool = False) -> DueSeries:
    return DueSeries("s", forced, doubtful, checked_at, checked_at + HOUR_MS)


@pytest.mark.parametrize(
    ("series", "wakes"),
    [
        ([], False),
        ([due()] * 4, False),
        ([due()] * 5, True),
        ([due(), due(NOW - HOUR_MS - 15 * MINUTE_MS + 1)], False),
        ([due(), due(NOW - HOUR_MS - 15 * MINUTE_MS)], True),
        ([due(0)], True),
        ([due(), due(NOW - 1, forced=True)], True),
        ([due(NOW - 5 * MINUTE_MS, doubtful=True)], True),
    ],
)
def test_the_wake_thresholds(series: Sequence[DueSeries], wakes: bool) -> None:
    """LANE-014, LANE-015, LANE-054: five due, one at least 15 min late, one forced, or one doubtful."""
    assert wakes_browser(series, HOUR_MS, NOW) is wakes


def test_lateness_counts_from_the_end_of_the_rest_and_not_for_what_was_never_checked() -> None:
    """LANE-052: a Series that a Sighting put off is not late for that."""
    put_off = DueSeries("s", False, False, NOW - 5 * HOUR_MS, NOW - 3 * MINUTE_MS)
    assert lateness_ms([due(0), put_off, due(NOW - HOUR_MS)], NOW) == 3 * MINUTE_MS
    assert lateness_ms([due(0)], NOW) == 0


def test_there_are_six_lanes_in_name_order() -> None:
    """LANE-001: and each rests an hour and keeps 10 s between its fetches."""
    assert list(SITES) == ["asura", "comix", "demonic", "kagane", "lightnovelworld", "novelfull"]
    assert {(site.rest_ms, site.gap_ms) for site in SITES.values()} == {(HOUR_MS, 10_000)}


def with_browser(world: World) -> tuple[World, FakeFetcher]:
    browser = FakeFetcher(world.clock)
    return replace(world, browser=browser), browser


ADDRESS = {
    "comix": "https://comix.to/title/ab{}-slug",
    "kagane": "https://kagane.to/series/019d0001-1111-7001-8222-3333444455{:02d}",
    "novelfull": "https://novelfull.com/book-{}.html",
}


async def hold(world: World, site: str, number: int, checked_at: int, *, forced_at: int = 0) -> str:
    url = ADDRESS[site].format(number)
    reader = world.readers[0]
    await hold_series(
        world.database, reader, f"s{number}", site=site, checked_at=checked_at, forced_at=forced_at, url=url
    )
    return url


async def last_pass(world: World, site: str) -> dict[str, object]:
    return (await passes(world.database, site))[-1]


async def test_a_browser_lane_sleeps_on_three_and_wakes_for_five(autojump_clock: MockClock, world: World) -> None:
    """LANE-010, LANE-014, LANE-039: due is recorded with the Lane's own figures, nothing is fetched, 60 s on."""
    world, browser = with_browser(world)
    for number in range(3):
        await hold(world, "comix", number, EARLY)
    assert await world.lane("comix").run_pass() == world.clock.now_ms() + MINUTE_MS
    row = await last_pass(world, "comix")
    assert [row[name] for name in ("skip", "due", "checked", "gap_ms")] == ["asleep", 3, 0, 10_000]
    assert browser.fetched == []
    assert await series_value(world.database, "s0", "latest_checked_at", "comix") == EARLY

    for number in (3, 4):
        await hold(world, "comix", number, EARLY)
    await world.lane("comix").run_pass()
    row = await last_pass(world, "comix")
    assert [row["skip"], row["due"], row["checked"], row["browser_reads"]] == ["", 5, 5, 5]
    assert len(browser.fetched) == 5


@pytest.mark.parametrize(("checked_at", "forced_at", "fetches"), [(EARLY, NOW, 2), (0, 0, 2), (EARLY, 0, 0)])
async def test_one_forced_or_never_checked_series_wakes_for_the_whole_list(
    autojump_clock: MockClock, world: World, checked_at: int, forced_at: int, fetches: int
) -> None:
    """LANE-015, LANE-014, DUE-013: a forced check overrides the thresholds; two due are two fetches."""
    world, browser = with_browser(world)
    await hold(world, "kagane", 0, EARLY)
    await hold(world, "kagane", 1, checked_at, forced_at=forced_at)
    await world.lane("kagane").run_pass()
    assert len(browser.fetched) == fetches


async def test_a_doubtful_reading_wakes_the_browser(autojump_clock: MockClock, world: World) -> None:
    """LANE-054: due again after 5 min, whatever the thresholds say; once, when the page then settles nothing."""
    world, browser = with_browser(world)
    await hold(world, "comix", 0, NOW - 5 * MINUTE_MS)
    async with world.database.connection() as connection:
        await connection.execute("UPDATE series SET doubtful_at = latest_checked_at, doubtful_chapter_num = 900")
    for _ in range(3):
        await world.lane("comix").run_pass()
        await trio.sleep(6 * 60)
    assert len(browser.fetched) == 1
    assert await series_value(world.database, "s0", "doubtful_at", "comix") == NOW - 5 * MINUTE_MS


async def test_the_thresholds_do_not_apply_on_the_plain_fallback(autojump_clock: MockClock, world: World) -> None:
    """LANE-016: novelfull without a browser reads one Series that is 2 min late."""
    url = await hold(world, "novelfull", 0, EARLY)
    await world.lane("novelfull").run_pass()
    assert world.fetcher.addresses() == [url]


@pytest.mark.parametrize("held", [True, False])
async def test_a_browser_lane_with_nothing_due_is_asleep_until_something_is(
    autojump_clock: MockClock, world: World, held: bool
) -> None:
    """LANE-017, LANE-003: asleep with due 0, nothing eligible included; the next due moment, at most a rest away."""
    world, _ = with_browser(world)
    if held:
        await hold(world, "comix", 0, NOW - 20 * MINUTE_MS)
    moment = await world.lane("comix").run_pass()
    assert moment == NOW + (40 * MINUTE_MS if held else HOUR_MS)
    row = await last_pass(world, "comix")
    assert [row["skip"], row["due"], row["browser_reads"]] == ["asleep", 0, 0]


async def test_a_lost_browser_stops_the_lanes_that_need_it_for_a_quarter_of_an_hour(
    autojump_clock: MockClock, world: World
) -> None:
    """LANE-007, LANE-033, LANE-034, LANE-035, LANE-017: kagane skips, novelfull goes on over plain TLS, then a probe.

    The mark is a row, so the fresh Lanes here, as of other processes, know it; the one that lost it too.
    """
    world, browser = with_browser(world)
    lost = await hold(world, "comix", 0, 0)
    await hold(world, "kagane", 1, 0)
    plain = await hold(world, "novelfull", 2, 0)
    browser.script(lost, BrowserLost("gone"), answer(404))
    await world.lane("comix").run_pass()
    lost_at = world.clock.now_ms()
    row = await last_pass(world, "comix")
    assert [row["skip"], row["unreachable"], row["checked"], row["browser_reads"]] == ["", 1, 0, 0]

    await trio.sleep(5 * 60)
    for site in ("kagane", "comix"):
        assert await world.lane(site).run_pass() == lost_at + 15 * MINUTE_MS
        row = await last_pass(world, site)
        assert [row["skip"], row["checked"]] == ["sidecar-down", 0]
    await world.lane("novelfull").run_pass()
    assert world.fetcher.addresses() == [plain]
    assert browser.addresses() == [lost]

    await trio.sleep(10 * 60)
    await world.lane("kagane").run_pass()
    assert len(browser.fetched) == 2
    assert (await last_pass(world, "kagane"))["browser_reads"] == 1


@pytest.mark.parametrize("column", ["paused_until", "refuse_until"])
async def test_a_forced_check_overrides_neither_a_pause_nor_a_backoff(
    autojump_clock: MockClock, world: World, column: str
) -> None:
    """DUE-013: nor the gap: it waits for the Lane's next slot."""
    await hold_series(world.database, world.readers[0], "first")
    await hold_series(world.database, world.readers[0], "forced", checked_at=NOW - 1, forced_at=NOW)
    await set_lane_row(world, **{column: NOW + MINUTE_MS})
    assert await world.lane().run_pass() == NOW + MINUTE_MS
    assert world.fetcher.fetched == []
    await trio.sleep(60)
    await world.lane().run_pass()
    assert [address.split("/")[-1][:5] for address in world.fetcher.addresses()] == ["force", "first"]
    (first, _), (second, _) = world.fetcher.fetched
    assert second - first >= 10_000


async def test_a_forced_check_waits_for_a_lost_browser_too(autojump_clock: MockClock, world: World) -> None:
    """DUE-013: the sidecar-down skip holds."""
    world, browser = with_browser(world)
    await hold(world, "kagane", 0, NOW - 1, forced_at=NOW)
    async with world.database.connection() as connection:
        await connection.execute("INSERT INTO browser_losses (lost_at) VALUES (%s)", (NOW - MINUTE_MS,))
    assert await world.lane("kagane").run_pass() == NOW + 14 * MINUTE_MS
    assert browser.fetched == []


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        ("paused", ["paused", 7, 6, 9_000, True, 0]),
        ("refusing", ["refusing", 7, 6, 9_000, True, 0]),
        ("sidecar-down", ["sidecar-down", 7, 6, 9_000, True, 0]),
        ("no-fetcher", ["no-fetcher", 0, 0, 10_000, False, 0]),
        ("asleep", ["asleep", 1, 0, 10_000, False, 0]),
    ],
)
async def test_a_pass_that_chose_no_gap_carries_the_figures_of_the_one_before(
    autojump_clock: MockClock, world: World, gate: str, words: list[object]
) -> None:
    """LANE-038, LANE-039, LANE-003: the outcome counts are never carried; a pass with a gap has its own zeroes."""
    if gate != "no-fetcher":
        world, _ = with_browser(world)
    await hold(world, "kagane", 0, EARLY)
    waits = {"paused": (NOW + 9, NOW + 9), "refusing": (0, NOW + 9)}
    async with world.database.connection() as connection:
        await connection.execute(
            """
            INSERT INTO poll_passes
            VALUES ('kagane', 5, '', 7, 6, 9000, TRUE, 1, 1, 1, 1, 1, 1)
            """
        )
        if gate in waits:
            await connection.execute(
                "INSERT INTO poll_lanes (site, paused_until, refuse_until) VALUES ('kagane', %s, %s)", waits[gate]
            )
        if gate not in ("asleep", "no-fetcher"):
            await connection.execute("INSERT INTO browser_losses (lost_at) VALUES (%s)", (NOW - 1,))
    await world.lane("kagane").run_pass()
    row = await last_pass(world, "kagane")
    assert [row[name] for name in ("skip", "due", "checked", "gap_ms", "clamped", "errors")] == words


async def test_a_count_that_fails_keeps_what_is_due(autojump_clock: MockClock, world: World) -> None:
    """LANE-011, LANE-003: the query before it went well; again after 10 s."""
    await hold_series(world.database, world.readers[0], "s")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bookmark_appliance.store.due._ELIGIBLE", "SELECT count(*) FROM nowhere")
        assert await world.lane().run_pass() == NOW + 10_000
    row = await last_pass(world, "asura")
    assert [row["skip"], row["due"], row["checked"]] == ["eligible-count", 1, 0]
    assert world.fetcher.fetched == []


async def test_a_lane_tells_how_far_it_is_behind(
    autojump_clock: MockClock, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """LANE-052: more than one rest behind its rest, and not for what a Sighting put off."""
    await hold_series(
        world.database, world.readers[0], "put-off", checked_at=NOW - 5 * HOUR_MS, sighted_at=NOW - HOUR_MS
    )
    with caplog.at_level(logging.WARNING):
        await world.lane().run_pass()
        assert "overdue" not in caplog.text
        await hold_series(world.database, world.readers[0], "late", checked_at=NOW - 3 * HOUR_MS - 5 * MINUTE_MS)
        await world.lane().run_pass()
    assert "asura: its longest waiting Series is 2h05m overdue" in caplog.text
