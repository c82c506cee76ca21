"""The pace of a Lane, as pure decisions."""

import pytest

from bookmark_appliance.clock import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from bookmark_appliance.lanes.gates import Declined, backoff_ms, bounded, first_gate
from bookmark_appliance.lanes.pace import Gap, effective_gap, sleep_until
from bookmark_appliance.lanes.routing import Route
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.store.lane_rows import LaneRow

NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    ("eligible", "gap"),
    [
        (0, Gap(10_000, clamped=False, spacing_ms=10_100)),
        (1, Gap(10_000, clamped=False, spacing_ms=10_100)),
        (360, Gap(10_000, clamped=False, spacing_ms=10_000)),
        (361, Gap(9_972, clamped=False, spacing_ms=9_972)),
        (3_000, Gap(1_200, clamped=False, spacing_ms=1_200)),
        (3600, Gap(1_000, clamped=False, spacing_ms=1_100)),
        (3601, Gap(1_000, clamped=True, spacing_ms=1_100)),
        (5000, Gap(1_000, clamped=True, spacing_ms=1_100)),
    ],
)
def test_more_series_tighten_the_gap_down_to_the_floor(eligible: int, gap: Gap) -> None:
    """LANE-018, LANE-056: more than 360 eligible tightens the gap, more than 3600 engages the floor and says so.

    The margin for the way to the Site never makes a round longer than the rest, until it would cost the floor.
    """
    assert effective_gap(10 * SECOND_MS, HOUR_MS, eligible) == gap


def gate(row: LaneRow, site: str = "asura", *, browser: bool = False) -> Route | Declined:
    return first_gate(SITES[site], row, NOW, plain=True, browser=browser)


def test_a_pause_wins_over_a_refusal() -> None:
    """LANE-005, LANE-006: the pace is the time left of the one that holds."""
    both = LaneRow(paused_until=NOW + HOUR_MS, refuse_until=NOW + 10 * MINUTE_MS)
    assert gate(both) == Declined("paused", HOUR_MS)
    assert gate(LaneRow(refuse_until=NOW + 10 * MINUTE_MS)) == Declined("refusing", 10 * MINUTE_MS)


def test_what_has_ended_declines_nothing() -> None:
    """LANE-042, LANE-046: past its end, and without a row, a Lane runs normally."""
    assert gate(LaneRow()) is Route.PLAIN
    assert gate(LaneRow(paused_until=NOW, refuse_until=NOW - 1)) is Route.PLAIN


def test_a_wait_counts_for_its_own_length_from_now_at_most() -> None:
    """LANE-058: a clock that was set back stretches nothing; where the length is unknown, it is a day at most."""
    jumped = LaneRow(
        paused_until=NOW + 30 * HOUR_MS,
        pause_ms=6 * HOUR_MS,
        refuse_until=NOW + DAY_MS + 10,
        backoff_ms=15 * MINUTE_MS,
        browser_lost_at=NOW + DAY_MS,
    )
    row = bounded(jumped, NOW)
    assert (row.paused_until, row.refuse_until) == (NOW + 6 * HOUR_MS, NOW + 15 * MINUTE_MS)
    assert row.browser_lost_at == NOW
    assert bounded(LaneRow(paused_until=NOW + 400 * DAY_MS), NOW).paused_until == NOW + DAY_MS
    assert bounded(row, NOW + 1) == row


@pytest.mark.parametrize(
    ("site", "browser", "lost_ago", "expected"),
    [
        ("asura", True, 1, Route.PLAIN),
        ("kagane", True, None, Route.BROWSER),
        ("kagane", True, 5 * MINUTE_MS, Declined("sidecar-down", 10 * MINUTE_MS)),
        ("comix", True, 15 * MINUTE_MS, Route.BROWSER),
        ("kagane", False, None, Declined("no-fetcher", MINUTE_MS)),
        ("kagane", False, 1, Declined("no-fetcher", MINUTE_MS)),
        ("novelfull", True, None, Route.BROWSER),
        ("novelfull", True, 1, Route.PLAIN),
        ("novelfull", False, None, Route.PLAIN),
    ],
)
def test_the_browser_decides_the_route_of_its_sites(
    site: str, browser: bool, lost_ago: int | None, expected: Route | Declined
) -> None:
    """LANE-007, LANE-008, LANE-034, BRO-018, BRO-021: down is as good as none, for a quarter of an hour."""
    row = LaneRow(browser_lost_at=0 if lost_ago is None else NOW - lost_ago)
    assert gate(row, site, browser=browser) == expected


@pytest.mark.parametrize(
    ("retry_after_ms", "length_ms"),
    [
        (0, 15 * MINUTE_MS),
        (60 * SECOND_MS, 15 * MINUTE_MS),
        (HOUR_MS, HOUR_MS),
        (30 * DAY_MS, DAY_MS),
    ],
)
def test_retry_after_lengthens_the_backoff_and_never_shortens_it(retry_after_ms: int, length_ms: int) -> None:
    """LANE-022, LANE-036: at least 15 min from the moment it was earned, at most 24 h."""
    assert backoff_ms(retry_after_ms) == length_ms


@pytest.mark.parametrize(
    ("next_due_at", "wakes_in_ms"),
    [
        (None, HOUR_MS),
        (NOW - HOUR_MS, 10 * SECOND_MS),
        (NOW + 1, 10 * SECOND_MS),
        (NOW + 20 * MINUTE_MS, 20 * MINUTE_MS),
        (NOW + 6 * HOUR_MS, HOUR_MS),
    ],
)
def test_a_lane_sleeps_until_something_is_due(next_due_at: int | None, wakes_in_ms: int) -> None:
    """LANE-017: at least one gap, at most one rest."""
    assert sleep_until(next_due_at, NOW, 10 * SECOND_MS, HOUR_MS) == NOW + wakes_in_ms
