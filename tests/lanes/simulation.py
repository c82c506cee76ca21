"""Whole days of Lanes in simulated time: the real rules and rows, Sites that answer from a function.

Run it under `autojump_clock` and a blocking database. A simulated day of 500 Series is 12,000 Polls, about a minute.
"""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType

import trio

from bookmark_appliance.chapter import Chapter
from bookmark_appliance.database import Database
from bookmark_appliance.lanes.fault_watch import FaultWatch
from bookmark_appliance.lanes.lane import Lane
from bookmark_appliance.lanes.request_slots import RequestSlots
from bookmark_appliance.lanes.series_read import BeforeRequest, SeriesReader
from bookmark_appliance.lanes.site import Reading, Site
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.lanes.supervision import contain
from bookmark_appliance.lanes.tags import Markup
from bookmark_appliance.page import Page
from bookmark_appliance.store.readers import Reader
from tests.lanes.fakes import START_MS, TrioClock

_BODY = b"<html><body>a page</body></html>"


def _read(series_url: str, markup: Markup) -> Reading:
    """Every page publishes the same number: parsing is not what is simulated."""
    return Reading(Chapter(181.0, "Chapter 181"))


SIMULATED: Mapping[str, Site] = {name: replace(site, read=_read, own_check=None) for name, site in SITES.items()}
"""The Sites of the product, with their own rests, gaps and routes, and pages that cost nothing to read."""

Answers = Callable[[Site, str], Awaitable[Page]]


async def page(site: Site, address: str) -> Page:
    """A Site in good health, that answers at once."""
    return Page(200, {}, _BODY, address)


@dataclass(slots=True)
class SimulatedFetcher:
    """Asks `answers`; one at a time where there is but one tab. Keeps when each address was asked for (unix ms)."""

    clock: TrioClock
    answers: Answers = page
    seconds: float = 0.0
    tab: trio.Semaphore | None = None
    fetched: list[tuple[int, str, str]] = field(default_factory=list)

    async def fetch(
        self,
        site: Site,
        address: str,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        before_request: BeforeRequest,
    ) -> Page:
        """As PageFetcher.fetch."""
        if self.tab is None:
            return await self._ask(site, address, before_request)
        async with self.tab:
            return await self._ask(site, address, before_request)

    async def _ask(self, site: Site, address: str, before_request: BeforeRequest) -> Page:
        await before_request()
        self.fetched.append((self.clock.now_ms(), site.name, address))
        await trio.sleep(self.seconds)
        return await self.answers(site, address)


class _Unwatched(FaultWatch):
    async def judge(self, site_name: str, now_ms: int) -> None:
        """Nobody looks."""


@dataclass(slots=True)
class Simulation:
    """A database with Series, and the Lanes of one process after another on it."""

    database: Database
    clock: TrioClock
    plain: SimulatedFetcher
    browser: SimulatedFetcher | None = None
    judged: bool = True
    """Whether faults are judged after each pass: a third of its queries, and no affair of a Lane's pace."""

    def lane(self, site: str) -> Lane:
        """A Lane as a fresh process would make it."""
        watch = FaultWatch(self.database, SIMULATED, browser_configured=self.browser is not None)
        if not self.judged:
            watch = _Unwatched(self.database, {}, browser_configured=False)
        return Lane(
            SIMULATED[site],
            self.database,
            SeriesReader(self.clock, self.plain, self.browser),
            RequestSlots(self.database, self.clock),
            watch,
            self.clock,
        )

    async def run(self, *sites: str, hours: float) -> None:
        """One process with these Lanes, stopped after `hours`."""
        with trio.move_on_after(hours * 3600):
            async with trio.open_nursery() as nursery:
                for site in sites:
                    nursery.start_soon(contain, site, self.lane(site).run)

    def fetches(self, site: str) -> list[int]:
        """When anything of `site` was fetched, in unix ms."""
        return [at for at, of_site, _ in self._all() if of_site == site]

    def fetches_by_series(self, site: str) -> dict[str, list[int]]:
        """When each Series of `site` was fetched, by its address."""
        moments = defaultdict(list)
        for at, of_site, address in self._all():
            if of_site == site:
                moments[address].append(at)
        return moments

    def _all(self) -> list[tuple[int, str, str]]:
        return sorted(self.plain.fetched + (self.browser.fetched if self.browser else []))


def checks(moments: Mapping[str, list[int]]) -> Counter[int]:
    """How many Series got how many checks."""
    return Counter(len(one) for one in moments.values())


def longest_wait_ms(moments: Mapping[str, list[int]], end_ms: int) -> int:
    """The longest time that any Series went without a check, the start and the end of the run included."""
    return max(after - before for one in moments.values() for before, after in pairwise([START_MS, *one, end_ms]))


def shortest_gap_ms(moments: list[int]) -> int:
    """Between the starts of two fetches that followed one another."""
    return min(after - before for before, after in pairwise(moments))


async def hold_many(database: Database, reader: Reader, site: str, count: int) -> None:
    """Store `count` Series of `site` that were never checked, and this Reader's Bookmarks of them."""
    async with database.transaction() as connection:
        await connection.execute(
            """
            INSERT INTO series (site, series_id, series_url)
            SELECT %(site)s, 's' || n, %(origin)s || '/s' || n
            FROM generate_series(1, %(count)s) AS n
            """,
            {"site": site, "origin": SIMULATED[site].origin, "count": count},
        )
        await connection.execute(
            """
            INSERT INTO bookmarks (reader_id, site, series_id, updated_at)
            SELECT %(reader)s, site, series_id, 1
            FROM series
            WHERE site = %(site)s
            """,
            {"site": site, "reader": reader.id},
        )
        await connection.execute("ANALYZE series")
        await connection.execute("ANALYZE bookmarks")
