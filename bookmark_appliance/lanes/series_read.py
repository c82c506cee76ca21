"""The one read of a Series at its Site, shared by Poll, Acquisition and `probe`: gate, route, fetch, judge."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import trio

from bookmark_appliance.clock import SECOND_MS, Clock
from bookmark_appliance.lanes.address_gate import fetchable
from bookmark_appliance.lanes.judgement import judge_page
from bookmark_appliance.lanes.outcome import Judgement, Outcome
from bookmark_appliance.lanes.page import BrowserLost, ChallengeHeld, Page, PageError, TransportFailure, Unfetchable
from bookmark_appliance.lanes.site import Site
from bookmark_appliance.series_key import SeriesKey

log = logging.getLogger(__name__)

BeforeRequest = Callable[[], Awaitable[None]]
"""Awaited before each request of a read, redirect hops included: there the Site's slot is taken (LANE-056)."""


class Fetcher(Protocol):
    """What asks a Site for a page over one route."""

    async def fetch(self, site: Site, address: str, *, before_request: BeforeRequest) -> Page:
        """The page, or a PageError."""
        ...


@dataclass(frozen=True, slots=True)
class SeriesRead:
    """What a read came to. `status` is None when no page came; `bytes` is the body's length, `ms` the time it took."""

    judgement: Judgement
    status: int | None = None
    bytes: int = 0
    ms: int = 0


OUTCOME_OF_ERROR: Mapping[type[PageError], Outcome] = {
    Unfetchable: Outcome.UNFETCHABLE,
    TransportFailure: Outcome.ERRORS,
    BrowserLost: Outcome.UNREACHABLE,
    ChallengeHeld: Outcome.REFUSED,
}

UNFETCHABLE = SeriesRead(Judgement(Outcome.UNFETCHABLE, reason="no way to this address"))


class SeriesReader:
    """Reads Series pages over the routes there are; without a fetcher every read is `unfetchable` (OPS-004)."""

    def __init__(self, plain: Fetcher | None, clock: Clock) -> None:
        self._plain = plain
        self._clock = clock

    def has_route(self, site: Site) -> bool:
        """Whether a page of `site` can be read at all (SITE-003)."""
        return self._plain is not None and site.plain

    def can_read(self, site: Site, series_url: str) -> bool:
        """Whether a read of this address would ask the Site anything: the address gate, then the route (LANE-025)."""
        return fetchable(site, series_url) and self.has_route(site)

    async def read(self, site: Site, series_url: str, before_request: BeforeRequest) -> SeriesRead:
        """Read and judge one Series page. Raises no PageError."""
        if self._plain is None or not self.can_read(site, series_url):
            return UNFETCHABLE
        started = trio.current_time()
        try:
            page = await self._plain.fetch(site, series_url, before_request=before_request)
        except PageError as error:
            outcome = OUTCOME_OF_ERROR[type(error)]
            return SeriesRead(Judgement(outcome, reason=str(error)), ms=_since(started))
        judgement = judge_page(site, series_url, page, self._clock.now_ms())
        return SeriesRead(judgement, page.status, len(page.body), _since(started))


def _since(started: float) -> int:
    return round((trio.current_time() - started) * SECOND_MS)


def log_read(key: SeriesKey, read: SeriesRead) -> None:
    """One line a read: quiet where the page was as it should be, else with what is needed to look into it."""
    log.log(
        logging.DEBUG if read.judgement.outcome is Outcome.SUCCESS else logging.WARNING,
        "%s: %s (status %s, %d bytes in %d ms) %s",
        key,
        read.judgement.outcome,
        read.status,
        read.bytes,
        read.ms,
        read.judgement.reason,
    )
