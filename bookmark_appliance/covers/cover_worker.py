"""The cover worker: gets the covers that readings call for, off the Lanes' time and changing nothing of theirs."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

import trio

from bookmark_appliance.clock import Clock
from bookmark_appliance.covers.cover_fetcher import CoverFetcher, image_of
from bookmark_appliance.covers.cover_files import PREFIXES
from bookmark_appliance.covers.cover_keeper import CoverKeeper
from bookmark_appliance.covers.cover_need import CoverNeed, cover_need
from bookmark_appliance.covers.image_type import CoverRefused, Image
from bookmark_appliance.database import DATABASE_ERRORS
from bookmark_appliance.lanes.outcome import Judgement
from bookmark_appliance.lanes.page_errors import PageError
from bookmark_appliance.lanes.request_slots import RequestSlots
from bookmark_appliance.lanes.routing import image_needs_browser
from bookmark_appliance.lanes.series_read import BeforeRequest
from bookmark_appliance.lanes.site import Site
from bookmark_appliance.page import Page
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.series import StoredSeries

FetchImage = Callable[[str, BeforeRequest], Awaitable[Page]]

AT_ONCE: Final = 2
"""Covers at a time: what they hold in memory is bounded, and one slow host does not keep all others waiting."""

WAITING_ROOM: Final = 1_000
"""Series that may wait; one more is left to its next Poll, which finds it without a cover."""

log = logging.getLogger(__name__)


class CoverWorker:
    """Takes what readings call for and works it off. What is lost on the way, the next Poll calls for again."""

    def __init__(
        self,
        sites: Mapping[str, Site],
        keeper: CoverKeeper,
        slots: RequestSlots,
        clock: Clock,
        plain: CoverFetcher | None,
        browser: FetchImage | None,
    ) -> None:
        """`plain` and `browser` are the ways there are; an image without its way is an error that is logged."""
        self._sites = sites
        self._keeper = keeper
        self._slots = slots
        self._clock = clock
        self._plain = plain
        self._browser = browser
        self._needs: dict[SeriesKey, CoverNeed] = {}
        self._busy = 0
        self._send, self._receive = trio.open_memory_channel[SeriesKey](WAITING_ROOM)

    def take(self, key: SeriesKey, stored: StoredSeries, judgement: Judgement, forced: bool) -> None:
        """Hear of a reading; never waits and never fails (COV-003, COV-012)."""
        need = cover_need(stored, judgement, forced=forced)
        if need is None or (key in self._needs and not need.replaces):
            return
        try:
            if key not in self._needs:
                self._send.send_nowait(key)
            self._needs[key] = need
        except trio.WouldBlock:
            log.debug("%s: too many covers at once; its next Poll calls for it again", key)

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing is being got."""
        return not self._needs and not self._busy

    async def run(self) -> None:
        """Work until cancelled, and meanwhile clear up after processes that were killed."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._clear_up)
            for _ in range(AT_ONCE):
                nursery.start_soon(self._work)

    async def _clear_up(self) -> None:
        """A 256th at a time, since a thread is not cut short; what can't be cleared takes room and harms nobody."""
        files = self._keeper.files
        for prefix in PREFIXES:
            try:
                await files.run(files.sweep, prefix, self._clock.now_ms())
            except OSError as error:
                log.warning("what killed installs left behind can't be cleared away: %s", error)

    async def _work(self) -> None:
        async for key in self._receive:
            need = self._needs.pop(key)
            self._busy += 1
            try:
                await self._satisfy(key, need)
            except (CoverRefused, PageError) as error:
                log.warning("%s: no cover: %s", key, error)
            except OSError as error:
                log.error("%s: its cover could not be kept: %s", key, error)
            except DATABASE_ERRORS as error:
                log.warning("%s: the database failed while its cover was kept: %s", key, error)
            except Exception:
                log.exception("%s: its cover crashed", key)
            finally:
                self._busy -= 1

    async def _satisfy(self, key: SeriesKey, need: CoverNeed) -> None:
        if not need.replaces and await self._keeper.adopt(key, need.source):
            return
        image = await self._fetch(key, need.source)
        await self._keeper.keep(key, image, source=need.source, replaces=need.replaces)
        log.info("%s: cover of %d kB", key, len(image.body) // 1000)

    async def _fetch(self, key: SeriesKey, source: str) -> Image:
        """The image, by the route that the shape of its address names and by no other (COV-010)."""
        elsewhere = urlsplit(source).hostname != self._sites[key.site].host

        async def before_request() -> Callable[[], None]:
            return await self._slots.take_for_cover(key.site, elsewhere=elsewhere)

        if image_needs_browser(self._sites.values(), source):
            if self._browser is None:
                raise CoverRefused("it is read through a browser, and there is none")
            return image_of(await self._browser(source, before_request))
        if self._plain is None:
            raise CoverRefused("the plain client could not be built")
        return await self._plain.fetch(source, before_request)
