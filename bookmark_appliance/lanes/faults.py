"""What is wrong that the Owner should know: one pure judgement, for the pages and the notices alike (FAULT-)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from bookmark_appliance.clock import DAY_MS, HOUR_MS, MINUTE_MS
from bookmark_appliance.lanes.site import Site
from bookmark_appliance.store.lane_passes import LanePass

OWNER_WINDOW_MS = 12 * HOUR_MS
"""One constant for faults and for the owner's filters (FAULT-008)."""


class Condition(StrEnum):
    """The words that are stored and shown."""

    STALL = "stall"
    NO_BROWSER_ROUTE = "no-browser-route"
    SIDECAR_DOWN = "sidecar-down"
    ADAPTER_BROKEN = "adapter-broken"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault; `site` is empty for the browser's, which concerns several. `since` is in ms.

    `owed` are the Polls that a stalled Lane owes, by its own pass (FAULT-019).
    """

    condition: Condition
    site: str
    since: int
    owed: int = 0


@dataclass(frozen=True, slots=True)
class FaultEvidence:
    """What the judgement rests on. What could not be read makes its condition `unjudged`: it accuses nobody and clears
    nobody (FAULT-001).

    `latest` is the newest pass of each Site that was not cut; `refusing_since` the start of each unbroken refusing
    run; `browser_reached_at` the newest pass that the browser answered in, None when there is none; `layout_broken` the
    Sites of whose Series more than half hold a no_chapter row older than the owner's window.
    """

    latest: Mapping[str, LanePass]
    refusing_since: Mapping[str, int]
    browser_reached_at: int | None
    layout_broken: frozenset[str]
    browser_configured: bool
    unjudged: frozenset[Condition] = frozenset()


def judge_faults(sites: Iterable[Site], evidence: FaultEvidence, now_ms: int) -> list[Fault]:
    """Every fault there is at this moment, in the order of the Sites, the browser's last."""
    known = list(sites)
    faults = []
    for site in known:
        latest = evidence.latest.get(site.name)
        if latest is not None and _stalled(latest):
            faults.append(Fault(Condition.STALL, site.name, latest.ran_at, owed=latest.due))
        refusing_since = evidence.refusing_since.get(site.name)
        if site.browser is None and refusing_since is not None and refusing_since < now_ms - OWNER_WINDOW_MS:
            faults.append(Fault(Condition.NO_BROWSER_ROUTE, site.name, refusing_since))
        if site.name in evidence.layout_broken:
            faults.append(Fault(Condition.ADAPTER_BROKEN, site.name, now_ms - OWNER_WINDOW_MS))
    if _browser_gone(known, evidence, now_ms):
        since = now_ms - OWNER_WINDOW_MS if evidence.browser_reached_at is None else evidence.browser_reached_at
        faults.append(Fault(Condition.SIDECAR_DOWN, "", since))
    return [fault for fault in faults if fault.condition not in evidence.unjudged]


def proves_recovery(episode: Fault, site: Site, latest: LanePass) -> bool:
    """Whether this pass of `site` proves an episode over, once its fault is no longer judged (FAULT-012).

    Reads that succeeded do; for the browser, a pass that it answered in. A pass that declined, or found nothing to do,
    proves nothing.
    """
    if episode.condition is Condition.SIDECAR_DOWN:
        return site.browser is not None and latest.browser_reads > 0
    return episode.site == site.name and not latest.skip and latest.succeeded > 0


def _stalled(latest: LanePass) -> bool:
    """Polls owed, none made, and no reason given (FAULT-002)."""
    return latest.due > 0 and latest.checked == 0 and not latest.skip and latest.refused == 0


def _browser_gone(sites: list[Site], evidence: FaultEvidence, now_ms: int) -> bool:
    """Every Lane that needs the browser is waiting for it, and none has reached it within the window (FAULT-004)."""
    if not evidence.browser_configured:
        return False
    in_need = [evidence.latest.get(site.name) for site in sites if not site.plain]
    if not in_need or any(latest is None or latest.skip != "sidecar-down" for latest in in_need):
        return False
    return evidence.browser_reached_at is None or evidence.browser_reached_at < now_ms - OWNER_WINDOW_MS


def age_words(age_ms: int) -> str:
    """How long ago, as it is shown: `just now`, `14m`, `3h`, `9d` (FAULT-017)."""
    if age_ms < MINUTE_MS:
        return "just now"
    if age_ms < HOUR_MS:
        return f"{age_ms // MINUTE_MS}m"
    return f"{age_ms // HOUR_MS}h" if age_ms < DAY_MS else f"{age_ms // DAY_MS}d"
