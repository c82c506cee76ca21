"""The pace of a Lane, as pure decisions."""

import pytest

from bookmark_appliance.clock import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from bookmark_appliance.lanes.pace import (
    Gap,
    backoff_end,
    declined,
    effective_gap,
    sleep_until,
)
from bookmark_appliance.store.lane_rows import LaneRow

NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    ("eligible", "gap"),
    [
        (0, Gap(10_000, clamped=False)),
        (1, Gap(10_000, clamped=False)),
        (360, Gap(10_000, clamped=False)),
        (361, Gap(9_972, clamped=False)),
        (3600, Gap(1_000, clamped=False)),
        (3601, Gap(1_000, clamped=True)),
        (5000, Gap(1_000, clamped=True)),
    ],
)
def test_more_series_tighten_the_gap_down_to_the_floor(eligible: int, gap: Gap) -> None:
    """LANE-018: more than 360 eligible tightens the gap, more than 3600 engages the floor and says so."""
    assert effective_gap(10 * SECOND_MS, HOUR_MS, eligible) == gap


def test_a_pause_wins_over_a_refusal() -> None:
    """LANE-005, LANE-006: the pace is the time left of the one that holds."""
    both = LaneRow(paused_until=NOW + HOUR_MS, refuse_until=NOW + 10 * MINUTE_MS)
    assert declined(both, NOW) == ("paused", HOUR_MS)
    assert declined(LaneRow(refuse_until=NOW + 10 * MINUTE_MS), NOW) == ("refusing", 10 * MINUTE_MS)


def test_what_has_ended_declines_nothing() -> None:
    """LANE-042, LANE-046: past its end, and without a row, a Lane runs normally."""
    assert declined(LaneRow(), NOW) is None
    assert declined(LaneRow(paused_until=NOW, refuse_until=NOW - 1), NOW) is None


def test_a_pause_from_a_clock_that_jumped_counts_for_its_own_length_at_most() -> None:
    """LANE-058: no pause or backoff lasts longer than the longest that can be asked for."""
    assert declined(LaneRow(paused_until=NOW + 400 * DAY_MS), NOW) == ("paused", DAY_MS)
    assert declined(LaneRow(refuse_until=NOW + 400 * DAY_MS), NOW) == ("refusing", DAY_MS)


@pytest.mark.parametrize(
    ("retry_after_ms", "backoff_ms"),
    [
        (0, 15 * MINUTE_MS),
        (60 * SECOND_MS, 15 * MINUTE_MS),
        (HOUR_MS, HOUR_MS),
        (30 * DAY_MS, DAY_MS),
    ],
)
def test_retry_after_lengthens_the_backoff_and_never_shortens_it(retry_after_ms: int, backoff_ms: int) -> None:
    """LANE-022, LANE-036: at least 15 min from the moment it was earned, at most 24 h."""
    assert backoff_end(NOW, retry_after_ms) == NOW + backoff_ms


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
