"""Whether a Lane may run, and over which route: the gates before its queries, in LANE-003's order."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bookmark_appliance.clock import DAY_MS, MINUTE_MS
from bookmark_appliance.lanes.judgement import MAX_RETRY_AFTER_MS
from bookmark_appliance.lanes.routing import Route, route
from bookmark_appliance.lanes.site import Site
from bookmark_appliance.store.due import DueSeries
from bookmark_appliance.store.lane_rows import LaneRow

SHORTEST_BACKOFF_MS = 15 * MINUTE_MS
LONGEST_BACKOFF_MS = MAX_RETRY_AFTER_MS
LONGEST_PAUSE_MS = DAY_MS

BROWSER_DOWN_MS = 15 * MINUTE_MS
"""A browser that was lost is left alone for this long (LANE-007)."""

DUE_THAT_WAKE = 5
LATENESS_THAT_WAKES_MS = 15 * MINUTE_MS
"""LANE-014: starting Chrome for one Series a minute late is not worth it."""

NO_FETCHER_PACE_MS = MINUTE_MS
ASLEEP_PACE_MS = MINUTE_MS


@dataclass(frozen=True, slots=True)
class Declined:
    """A Lane may not run: the word for its row, and the ms until it may look again."""

    skip: str
    left_ms: int


def backoff_ms(retry_after_ms: int) -> int:
    """How long a Site that refused twice in a row is left alone (LANE-022, LANE-030)."""
    return min(max(SHORTEST_BACKOFF_MS, retry_after_ms), LONGEST_BACKOFF_MS)


def bounded(row: LaneRow, now_ms: int) -> LaneRow:
    """The row as a clock that was set back leaves it: nothing lasts longer from now than it was meant to (LANE-058)."""
    return replace(
        row,
        paused_until=min(row.paused_until, now_ms + (row.pause_ms or LONGEST_PAUSE_MS)),
        refuse_until=min(row.refuse_until, now_ms + (row.backoff_ms or LONGEST_BACKOFF_MS)),
        browser_lost_at=min(row.browser_lost_at, now_ms),
    )


def first_gate(site: Site, row: LaneRow, now_ms: int, *, plain: bool, browser: bool) -> Route | Declined:
    """The route to read over, or why not: paused, refusing, sidecar-down, no-fetcher, in this order.

    `plain` and `browser` tell which ways this process has at all; `row` is bounded.
    """
    if row.paused_until > now_ms:
        return Declined("paused", row.paused_until - now_ms)
    if row.refuse_until > now_ms:
        return Declined("refusing", row.refuse_until - now_ms)
    browser_down_ms = max(0, row.browser_lost_at + BROWSER_DOWN_MS - now_ms) if browser else 0
    if browser_down_ms and not site.plain:
        return Declined("sidecar-down", browser_down_ms)
    chosen = route(site, browser_usable=browser and not browser_down_ms)
    if chosen is None or (chosen is Route.PLAIN and not plain):
        return Declined("no-fetcher", NO_FETCHER_PACE_MS)
    return chosen


def wakes_browser(due: Sequence[DueSeries], rest_ms: int, now_ms: int) -> bool:
    """Whether what is due is worth starting Chrome for (LANE-014, LANE-015, LANE-054)."""
    if len(due) >= DUE_THAT_WAKE:
        return True
    late = now_ms - rest_ms - LATENESS_THAT_WAKES_MS
    return any(series.forced or series.doubtful or series.checked_at <= late for series in due)


def lateness_ms(due: Sequence[DueSeries], now_ms: int) -> int:
    """By how much the longest waiting Series that was ever checked is past the end of its rest, in ms (LANE-052)."""
    return max((now_ms - series.rested_at for series in due if series.checked_at), default=0)
