"""What is wrong that the Owner should know: the judgement as a table, and the episodes on the database."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import psycopg
import pytest
import trio
from trio.testing import MockClock

from bookmark_appliance.clock import DAY_MS, HOUR_MS, MINUTE_MS
from bookmark_appliance.database import Database
from bookmark_appliance.lanes.fault_watch import FaultWatch
from bookmark_appliance.lanes.faults import (
    OWNER_WINDOW_MS,
    Condition,
    Fault,
    FaultEvidence,
    age_words,
    judge_faults,
    proves_recovery,
)
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.page import Page
from bookmark_appliance.store import fault_rows
from bookmark_appliance.store.lane_passes import LanePass, record_pass
from tests.lanes.conftest import World
from tests.lanes.fakes import START_MS, hold_series, passes

NOW = START_MS
HALF_DAY = 12 * HOUR_MS


def row(site: str = "asura", ran_at: int = NOW, **figures: Any) -> LanePass:
    """A pass that found nothing to do; `figures` say otherwise."""
    idle = LanePass(site, ran_at, "", 0, 0, 10_000, False, 0, 0, 0, 0, 0, 0)
    return replace(idle, **figures)


STALLED = row(due=3)
READ = row(due=3, checked=3)
NOTHING = FaultEvidence({}, {}, None, frozenset(), browser_configured=True)


def judge(evidence: FaultEvidence) -> list[Fault]:
    return judge_faults(SITES.values(), evidence, NOW)


@pytest.mark.parametrize(
    ("latest", "stalled"),
    [
        (STALLED, True),
        (replace(STALLED, unreachable=1), True),
        (replace(STALLED, due=0), False),
        (replace(STALLED, checked=1), False),
        (replace(STALLED, skip="asleep"), False),
        (replace(STALLED, skip="paused"), False),
        (replace(STALLED, refused=1), False),
    ],
)
def test_a_lane_that_owes_polls_made_none_and_gave_no_reason_has_stalled(latest: LanePass, stalled: bool) -> None:
    """FAULT-002, FAULT-019: since is that pass, what is owed its own; a Chrome lost before the first check too."""
    expected = [Fault(Condition.STALL, "asura", NOW, owed=3)] if stalled else []
    assert judge(replace(NOTHING, latest={"asura": latest, "demonic": row("demonic", due=9, checked=9)})) == expected


@pytest.mark.parametrize(
    ("site", "ago", "faulty"),
    [
        ("asura", HALF_DAY + 1, True),
        ("asura", HALF_DAY, False),
        ("kagane", 3 * HALF_DAY, False),
        ("novelfull", 3 * HALF_DAY, False),
    ],
)
def test_a_plain_site_that_refuses_for_half_a_day_has_no_route(site: str, ago: int, faulty: bool) -> None:
    """FAULT-003, FAULT-008: more than 12 h, and only where there is no browser read; since is the run's start."""
    expected = [Fault(Condition.NO_BROWSER_ROUTE, site, NOW - ago)] if faulty else []
    assert judge(replace(NOTHING, refusing_since={site: NOW - ago})) == expected
    assert OWNER_WINDOW_MS == HALF_DAY


WAITING = {site: row(site, skip="sidecar-down") for site in ("comix", "kagane")}


@pytest.mark.parametrize(
    ("latest", "reached_ago", "since_ago"),
    [
        (WAITING, None, HALF_DAY),
        (WAITING, HALF_DAY + 1, HALF_DAY + 1),
        (WAITING, HALF_DAY, None),
        (WAITING | {"novelfull": row("novelfull", due=1, checked=1)}, None, HALF_DAY),
        ({"comix": WAITING["comix"]}, None, None),
        ({}, None, None),
        *((WAITING | {"kagane": row("kagane", skip=skip)}, None, None) for skip in ("asleep", "paused", "")),
    ],
)
def test_the_browser_is_gone_when_every_lane_that_needs_it_waits_for_it(
    latest: Mapping[str, LanePass], reached_ago: int | None, since_ago: int | None
) -> None:
    """FAULT-004, FAULT-005: none of them without a pass, asleep, paused or running, and none reached it in 12 h."""
    reached = None if reached_ago is None else NOW - reached_ago
    expected = [] if since_ago is None else [Fault(Condition.SIDECAR_DOWN, "", NOW - since_ago)]
    assert judge(replace(NOTHING, latest=latest, browser_reached_at=reached)) == expected


def test_a_browser_that_was_never_configured_is_no_fault() -> None:
    """FAULT-006: a setting."""
    assert judge(replace(NOTHING, latest=WAITING, browser_configured=False)) == []


def test_a_broken_layout_is_a_fault_since_half_a_day() -> None:
    """FAULT-007, FAULT-008: for each Site it is said of; those of the Sites come in their order, the browser's last."""
    evidence = replace(NOTHING, layout_broken=frozenset({"demonic", "asura"}), latest=WAITING | {"asura": STALLED})
    assert [(fault.condition, fault.site) for fault in judge(evidence)] == [
        (Condition.STALL, "asura"),
        (Condition.ADAPTER_BROKEN, "asura"),
        (Condition.ADAPTER_BROKEN, "demonic"),
        (Condition.SIDECAR_DOWN, ""),
    ]
    assert judge(evidence)[1].since == NOW - HALF_DAY


@pytest.mark.parametrize("unjudged", list(Condition))
def test_what_cannot_be_judged_accuses_nobody(unjudged: Condition) -> None:
    """FAULT-001: each read that fails contributes no fault, and the others stand."""
    evidence = FaultEvidence(
        WAITING | {"asura": STALLED},
        {"asura": 1},
        None,
        frozenset({"asura"}),
        browser_configured=True,
        unjudged=frozenset({unjudged}),
    )
    assert {fault.condition for fault in judge(evidence)} == set(Condition) - {unjudged}


@pytest.mark.parametrize(
    ("condition", "of_site", "latest", "proven"),
    [
        (Condition.STALL, "asura", READ, True),
        (Condition.STALL, "demonic", READ, False),
        (Condition.STALL, "asura", row(), False),
        (Condition.STALL, "asura", row(skip="refusing", due=3, checked=3), False),
        (Condition.NO_BROWSER_ROUTE, "asura", row(due=3, checked=3, errors=2, refused=1), False),
        (Condition.NO_BROWSER_ROUTE, "asura", row(due=3, checked=3, errors=1, not_found=1), True),
        (Condition.ADAPTER_BROKEN, "asura", row(due=3, checked=3, no_chapter=3), False),
        (Condition.SIDECAR_DOWN, "", READ, False),
        (Condition.SIDECAR_DOWN, "", row("comix", browser_reads=1), True),
        (Condition.SIDECAR_DOWN, "", row("novelfull", browser_reads=1), True),
        (Condition.SIDECAR_DOWN, "", row("novelfull", due=3, checked=3), False),
        (Condition.SIDECAR_DOWN, "", row("comix", skip="asleep"), False),
        (Condition.SIDECAR_DOWN, "", row("comix", due=1, unreachable=1), False),
    ],
)
def test_only_a_read_that_succeeded_proves_recovery(
    condition: Condition, of_site: str, latest: LanePass, proven: bool
) -> None:
    """FAULT-012, LANE-017: for the browser, a read that it answered; declining, idling and probing prove nothing."""
    assert proves_recovery(Fault(condition, of_site, 1), SITES[latest.site], latest) is proven


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (-5, "just now"),
        (MINUTE_MS - 1, "just now"),
        (MINUTE_MS, "1m"),
        (HOUR_MS - 1, "59m"),
        (HOUR_MS, "1h"),
        (DAY_MS - 1, "23h"),
        (DAY_MS, "1d"),
        (9 * DAY_MS + 5, "9d"),
    ],
)
def test_age_is_told_in_one_unit(age: int, words: str) -> None:
    """FAULT-017."""
    assert age_words(age) == words


# On the database.


async def log_passes(database: Database, *rows: LanePass) -> None:
    for one in rows:
        async with database.transaction() as connection:
            await record_pass(connection, one, one.ran_at)


async def episodes(database: Database) -> list[tuple[str, str, int, int]]:
    async with database.connection() as connection:
        return [
            (one.condition, one.site, one.since, one.notified_at) for one in await fault_rows.open_episodes(connection)
        ]


def watch(database: Database) -> FaultWatch:
    """As a fresh process would make it."""
    return FaultWatch(database, SITES, browser_configured=True)


async def after(database: Database, *rows: LanePass) -> list[tuple[str, str, int, int]]:
    """Log each pass, judge after it in a process of its own; the episodes that are open then."""
    for one in rows:
        await log_passes(database, one)
        await watch(database).judge(one.site, one.ran_at)
    return await episodes(database)


Figures = dict[str, Any]

REFUSED: Figures = {"due": 2, "checked": 2, "refused": 2}
GOOD: Figures = {"due": 2, "checked": 2}


@pytest.mark.parametrize(
    ("run", "began"),
    [
        ([REFUSED, {"skip": "refusing"}], 0),
        ([GOOD, REFUSED], 1),
        ([REFUSED, GOOD], None),
        ([REFUSED, GOOD, REFUSED], 2),
        ([REFUSED, {}, {"skip": "paused"}, {"skip": "refusing"}], 0),
        ([{"due": 9, "checked": 9, "refused": 1}, REFUSED], 0),
        ([REFUSED, {"due": 2, "checked": 2, "errors": 2}, REFUSED], 0),
        ([REFUSED, {"due": 2, "checked": 2, "no_chapter": 2}, REFUSED], 2),
        ([GOOD, {}], None),
    ],
)
async def test_an_unbroken_refusing_run(database: Database, run: list[Figures], began: int | None) -> None:
    """FAULT-003: refused and declined passes belong to it, one the Site answered ends it, all others say nothing."""
    await log_passes(database, *(row(ran_at=at, **figures) for at, figures in enumerate(run)))
    async with database.connection() as connection:
        assert await fault_rows.refusing_runs(connection, ["asura", "demonic"], NOW) == (
            {} if began is None else {"asura": began}
        )


@pytest.mark.parametrize(("broken", "of", "ago", "faulty"), [(3, 5, 1, True), (2, 4, 1, False), (3, 5, 0, False)])
async def test_more_than_half_of_the_series_without_a_chapter_for_half_a_day(
    database: Database, broken: int, of: int, ago: int, faulty: bool
) -> None:
    """FAULT-007: exactly half is none, a row exactly at the window neither, other outcomes do not count."""
    async with database.connection() as connection:
        for number in range(of):
            await connection.execute("INSERT INTO series (site, series_id) VALUES ('asura', %s)", (f"s{number}",))
            await connection.execute(
                "INSERT INTO poll_failures VALUES ('asura', %s, %s, %s)",
                (f"s{number}", "no_chapter" if number < broken else "errors", NOW - HALF_DAY - ago),
            )
        assert await fault_rows.broken_layouts(connection, NOW - HALF_DAY) == ({"asura"} if faulty else set())


async def test_an_episode_opens_once_and_closes_with_the_pass_that_proves_it_over(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """FAULT-001, FAULT-011, FAULT-012: over restarts, declined and idle passes; `since` is the first one's."""
    caplog.set_level("INFO")
    stall = [("stall", "asura", 1, 0)]
    assert await after(database, row(ran_at=1, due=3), row(ran_at=2, due=3)) == stall
    assert await after(database, row(ran_at=3, skip="paused", due=3), row(ran_at=4)) == stall
    assert await after(database, row("demonic", ran_at=5, **GOOD)) == stall, "another Site's pass proves nothing"
    assert await after(database, row(ran_at=6, due=3, checked=3, errors=3)) == stall
    assert await after(database, row(ran_at=7, due=3, checked=3, errors=2)) == []
    told = [record.message for record in caplog.records if "fault" in record.name]
    assert told == ["fault: asura stall", "fault over: asura stall"]
    assert await after(database, row(ran_at=8, due=2)) == [("stall", "asura", 8, 0)], "a new one begins anew"


async def test_a_refusing_run_is_one_episode_however_long(database: Database) -> None:
    """FAULT-003, FAULT-012: probes in between neither end nor restart it."""
    week = [row(ran_at=hour * HOUR_MS, **REFUSED) for hour in range(0, 40, 4)]
    assert await after(database, *week) == [("no-browser-route", "asura", 0, 0)]
    assert await after(database, row(ran_at=41 * HOUR_MS, due=1, checked=1, errors=1)) != []
    assert await after(database, row(ran_at=42 * HOUR_MS, **GOOD)) == []


async def test_the_browsers_episode_is_one_for_all_of_its_sites(database: Database) -> None:
    """FAULT-004, FAULT-012: ended by whichever Lane reached it first, novelfull included."""
    down = [row(site, ran_at=HALF_DAY, skip="sidecar-down") for site in ("comix", "kagane")]
    browser = ("sidecar-down", "", 0, 0)
    assert await after(database, *down) == [browser]
    assert browser in await after(database, row("comix", ran_at=HALF_DAY + 1, due=1, unreachable=1))
    assert browser in await after(database, row("comix", ran_at=HALF_DAY + 2, skip="asleep"))
    reached = replace(row("novelfull", ran_at=HALF_DAY + 3, **GOOD), browser_reads=2)
    assert await after(database, reached) == [("stall", "comix", HALF_DAY + 1, 0)]


async def test_a_cut_pass_is_never_judged(database: Database) -> None:
    """FAULT-002: neither as a stall nor as a proof; the newest whole pass speaks for the Lane."""
    assert await after(database, row(ran_at=1, due=3, cut=True)) == []
    assert await after(database, row(ran_at=2, due=3)) != []
    assert await after(database, row(ran_at=3, due=3, checked=3, cut=True)) != []


async def test_a_pass_that_is_cancelled_judges_nothing(autojump_clock: MockClock, world: World) -> None:
    """FAULT-002: a shutdown before the first check of a pass is no stall."""
    await hold_series(world.database, world.readers[0], "s")

    async def hang() -> Page:
        await trio.sleep_forever()
        raise AssertionError

    world.fetcher.script("https://asurascans.com/comics/s-4be1c07a", hang)
    with trio.move_on_after(5):
        await world.lane().run_pass()
    assert [(one["due"], one["checked"], one["cut"]) for one in await passes(world.database)] == [(1, 0, True)]
    await watch(world.database).judge("asura", world.clock.now_ms())
    assert await episodes(world.database) == []


async def test_several_processes_open_one_episode(database: Database) -> None:
    """FAULT-012: each of them judges after its own passes."""
    await log_passes(database, row(due=3))
    async with trio.open_nursery() as nursery:
        for site in ("asura", "demonic", "comix"):
            nursery.start_soon(watch(database).judge, site, NOW)
    assert await episodes(database) == [("stall", "asura", NOW, 0)]


@pytest.mark.parametrize(
    ("read", "condition"),
    [
        ("refusing_runs", "no-browser-route"),
        ("browser_reached_at", "sidecar-down"),
        ("broken_layouts", "adapter-broken"),
    ],
)
async def test_a_read_that_fails_opens_and_closes_nothing_of_its_own(
    database: Database, monkeypatch: pytest.MonkeyPatch, read: str, condition: str
) -> None:
    """FAULT-001, FAULT-014: logged; the other conditions are judged as ever, and nothing reaches the pass."""

    async def fail(connection: object, *arguments: object) -> None:
        await trio.lowlevel.checkpoint()
        raise psycopg.OperationalError("no such luck")

    down = [row(site, ran_at=NOW, skip="sidecar-down") for site in ("comix", "kagane")]
    await log_passes(database, *down)
    async with database.connection() as connection:
        await fault_rows.open_episode(connection, condition, "" if condition == "sidecar-down" else "asura", 7)
    monkeypatch.setattr(fault_rows, read, fail)
    await log_passes(database, row(ran_at=NOW - 1, **GOOD))
    await watch(database).judge("asura", NOW)
    await log_passes(database, row("demonic", ran_at=NOW, due=4))
    await watch(database).judge("demonic", NOW)
    opened = {(one[0], one[2]) for one in await episodes(database)}
    expected = {(condition, 7), ("stall", NOW)}
    if condition != "sidecar-down":
        expected.add(("sidecar-down", NOW - HALF_DAY))
    assert opened == expected


async def test_judging_that_fails_changes_nothing_of_the_pass(
    autojump_clock: MockClock, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """FAULT-014: counts, skip and pace are the pass's own."""
    await hold_series(world.database, world.readers[0], "s")
    async with world.database.connection() as connection:
        await connection.execute("DROP TABLE fault_episodes")
    assert await world.lane().run_pass() == world.clock.now_ms() + HOUR_MS
    (one,) = await passes(world.database)
    assert [one["skip"], one["checked"], one["errors"]] == ["", 1, 0]
    assert "the faults could not be judged" in caplog.text


async def test_an_episode_ends_with_the_record_that_its_owner_was_told(database: Database) -> None:
    """FAULT-011, FAULT-012: told once, the row stays until the pass that proves recovery, notices on or off."""
    await after(database, row(ran_at=1, due=3))
    async with database.connection() as connection:
        for moment in (20, 30):
            await fault_rows.mark_notified(connection, "stall", "asura", moment)
    assert await after(database, row(ran_at=2, due=3)) == [("stall", "asura", 1, 20)]
    assert await after(database, row(ran_at=3, **GOOD)) == []
    async with database.connection() as connection:
        assert await (await connection.execute("SELECT FROM owner_notices")).fetchone() is None
        assert not await fault_rows.close_episode(connection, "stall", "asura")


async def test_what_an_earlier_deployment_told_is_an_open_episode(database: Database) -> None:
    """FAULT-011: one that was over before we came is closed by the first pass that proves it, so the next is told."""
    async with database.connection() as connection:
        await fault_rows.mark_notified(connection, "stall", "asura", 20)
    assert await after(database, row(ran_at=30, due=3)) == [("stall", "asura", 30, 20)]
    assert await after(database, row(ran_at=31, **GOOD)) == []


async def test_a_word_of_another_version_spoils_no_judgement(database: Database) -> None:
    """FAULT-001, FAULT-011: its row is left as it is, all else is judged as ever."""
    async with database.connection() as connection:
        await fault_rows.mark_notified(connection, "disk-full", "asura", 20)
    stays = ("disk-full", "asura", 20, 20)
    assert await after(database, row(ran_at=30, due=3)) == [stays, ("stall", "asura", 30, 0)]
    assert await after(database, row(ran_at=31, **GOOD)) == [stays]


async def test_passes_from_a_clock_that_was_ahead_speak_for_nobody(database: Database) -> None:
    """FAULT-002, FAULT-003, FAULT-004, LANE-058: the newest pass is the newest of those that can have been."""
    ahead = NOW + HOUR_MS
    reached = replace(row("novelfull", ran_at=ahead, **GOOD), browser_reads=1)
    down = [row(site, ran_at=NOW, skip="sidecar-down") for site in ("comix", "kagane")]
    refused = [row("demonic", ran_at=NOW - HALF_DAY - 1, **REFUSED), row("demonic", ran_at=ahead, **GOOD)]
    await log_passes(database, row(ran_at=ahead, **GOOD), reached, *refused, *down, row(ran_at=NOW, due=3))
    await watch(database).judge("asura", NOW)
    assert [(one[0], one[1]) for one in await episodes(database)] == [
        ("no-browser-route", "demonic"),
        ("sidecar-down", ""),
        ("stall", "asura"),
    ]
