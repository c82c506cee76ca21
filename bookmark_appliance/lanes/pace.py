"""A Lane's pace: how far apart its fetches are, and when it runs next. Pure decisions over rows and time."""

from dataclasses import dataclass

from bookmark_appliance.clock import MINUTE_MS, SECOND_MS
from bookmark_appliance.lanes.site import Site
from bookmark_appliance.store.due import DueTerms
from bookmark_appliance.store.series import ACQUISITION_CLAIM_MS

FLOOR_MS = SECOND_MS
"""No Site is asked twice within this time by anything of ours (LANE-056)."""

WIRE_MARGIN_MS = 100
"""Added to the floor and to a Site's gap: we count from the start of a fetch, the Site from the arrival of the request,
and name look-up, connect and TLS lie between the two. Not to a share of the rest, which it would outlast."""

SHORTEST_SPACING_MS = FLOOR_MS + WIRE_MARGIN_MS

CLOCK_TOLERANCE_MS = MINUTE_MS
"""A stamp further in the future than this was written under a clock that has since been set back (LANE-058)."""

DOUBTFUL_REST_MS = 5 * MINUTE_MS
"""A Series with a doubtful reading is due again this soon (LANE-054)."""

QUERY_FAILED_PACE_MS = 10 * SECOND_MS
LONGEST_LOOK_MS = MINUTE_MS
"""A sleeping Lane looks at its rows this often, so that a lost wakeup costs no more (LANE-002)."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Time between the starts of two fetches of one Lane, in ms; `clamped` where the floor holds it up.

    `spacing_ms` is what is waited for it: with a margin for the way to the Site, where there is room for one.
    """

    ms: int
    clamped: bool
    spacing_ms: int = 0


def effective_gap(site_gap_ms: int, rest_ms: int, eligible: int) -> Gap:
    """The smaller of the Site's gap and an even share of the rest, never below the floor (LANE-018)."""
    if eligible <= 0:
        return Gap(site_gap_ms, clamped=False, spacing_ms=site_gap_ms + WIRE_MARGIN_MS)
    share = rest_ms // eligible
    return Gap(
        max(min(site_gap_ms, share), FLOOR_MS),
        clamped=eligible * FLOOR_MS > rest_ms,
        spacing_ms=max(min(site_gap_ms + WIRE_MARGIN_MS, share), SHORTEST_SPACING_MS),
    )


def sleep_until(next_due_at: int | None, now_ms: int, gap_ms: int, rest_ms: int) -> int:
    """When a Lane runs again after its pass: at the next due moment, at least one gap, at most one rest (LANE-017)."""
    if next_due_at is None:
        return now_ms + rest_ms
    return now_ms + min(max(next_due_at - now_ms, gap_ms), rest_ms)


def due_terms(site: Site, now_ms: int) -> DueTerms:
    """What the due rules of `site` are judged by at this moment."""
    return DueTerms(
        now=now_ms, rest=site.rest_ms, doubt=DOUBTFUL_REST_MS, tolerance=CLOCK_TOLERANCE_MS, claim=ACQUISITION_CLAIM_MS
    )
