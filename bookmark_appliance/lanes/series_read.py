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
from bookmark_appliance.lanes.page_errors import BrowserLost, ChallengeHeld, PageError, TransportFailure, Unfetchable
from bookmark_appliance.lanes.routing import Route
from bookmark_appliance.lanes.site import Reading, Site
from bookmark_appliance.page import Page
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.page_validators import KeptReading

log = logging.getLogger(__name__)

NOT_MODIFIED = 304

BeforeRequest = Callable[[], Awaitable[None]]
"""Awaited before each request of a read, redirect hops included: there the Site's slot is taken (LANE-056)."""

OUTCOME_OF_ERROR: Mapping[type[PageError], Outcome] = {
    Unfetchable: Outcome.UNFETCHABLE,
    TransportFailure: Outcome.ERRORS,
    BrowserLost: Outcome.UNREACHABLE,
    ChallengeHeld: Outcome.REFUSED,
}


class Fetcher(Protocol):
    """What asks a Site for a page over one route."""

    async def fetch(
        self, site: Site, address: str, *, headers: Mapping[str, str] = ..., before_request: BeforeRequest
    ) -> Page:
        """The page, or a PageError."""
        ...


@dataclass(frozen=True, slots=True)
class SeriesRead:
    """What a read came to. `status` is None when no page came; `bytes` is the body's length, `ms` the time it took.

    `keep` is to be kept for the next conditional read; `had_kept` tells whether there was something kept before this
    one, and `not_modified` that the Site answered that it still holds.
    """

    judgement: Judgement
    status: int | None = None
    bytes: int = 0
    ms: int = 0
    keep: KeptReading | None = None
    had_kept: bool = False
    not_modified: bool = False


UNFETCHABLE = SeriesRead(Judgement(Outcome.UNFETCHABLE, reason="no way to this address"))


class SeriesReader:
    """Reads Series pages over the routes there are; without a fetcher every read is `unfetchable` (OPS-004)."""

    def __init__(self, clock: Clock, plain: Fetcher | None, browser: Fetcher | None = None) -> None:
        self._clock = clock
        self._fetchers: Mapping[Route, Fetcher | None] = {Route.PLAIN: plain, Route.BROWSER: browser}

    def has(self, way: Route) -> bool:
        """Whether this process has this way at all."""
        return self._fetchers[way] is not None

    async def read(
        self,
        site: Site,
        series_url: str,
        way: Route | None,
        before_request: BeforeRequest,
        *,
        kept: KeptReading | None = None,
        conditional: bool = False,
    ) -> SeriesRead:
        """Read and judge one Series page; raises no PageError.

        A `conditional` read asks for what has changed since the `kept` reading, and a page that has not changed is
        judged as that reading again (LANE-055).
        """
        fetcher = None if way is None else self._fetchers[way]
        if fetcher is None or not fetchable(site, series_url):
            return UNFETCHABLE
        asked_since = kept if conditional and way is Route.PLAIN and holds(kept, site, series_url) else None
        started = trio.current_time()
        try:
            headers = {} if asked_since is None else _conditions(asked_since)
            page = await fetcher.fetch(site, series_url, headers=headers, before_request=before_request)
        except PageError as error:
            judgement = Judgement(OUTCOME_OF_ERROR[type(error)], reason=str(error))
            return SeriesRead(judgement, ms=_since(started), had_kept=kept is not None)
        not_modified = page.status == NOT_MODIFIED and asked_since is not None
        if not_modified and asked_since is not None:
            judgement = Judgement(
                Outcome.SUCCESS, Reading(asked_since.latest, asked_since.cover, asked_since.completed)
            )
        else:
            judgement = judge_page(site, series_url, page, self._clock.now_ms())
        return SeriesRead(
            judgement,
            page.status,
            len(page.body),
            _since(started),
            keep=None if not_modified else _keep(site, series_url, way, page, judgement),
            had_kept=kept is not None,
            not_modified=not_modified,
        )


def holds(kept: KeptReading | None, site: Site, series_url: str) -> bool:
    """Whether a kept reading speaks of this address, read by this version of the Site's reader."""
    return kept is not None and (kept.series_url, kept.reader_version) == (series_url, site.reader_version)


def _conditions(kept: KeptReading) -> dict[str, str]:
    named = {"If-None-Match": kept.etag, "If-Modified-Since": kept.last_modified}
    return {name: value for name, value in named.items() if value}


def _keep(site: Site, series_url: str, way: Route | None, page: Page, judgement: Judgement) -> KeptReading | None:
    """What is kept of a whole page that was read well and came with a validator, over the plain route."""
    etag, last_modified = page.headers.get("etag", ""), page.headers.get("last-modified", "")
    reading = judgement.reading
    if judgement.outcome is not Outcome.SUCCESS or reading.latest is None or way is not Route.PLAIN:
        return None
    if page.truncated or not (etag or last_modified):
        return None
    return KeptReading(
        series_url, site.reader_version, etag, last_modified, reading.latest, reading.cover, reading.completed
    )


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


def _since(started: float) -> int:
    return round((trio.current_time() - started) * SECOND_MS)
