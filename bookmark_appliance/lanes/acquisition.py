"""Acquisition: the one read at the birth of a Series, while a Reader is looking (COV-001 to COV-008)."""

import logging
from collections.abc import Mapping
from dataclasses import replace

import trio

from bookmark_appliance.clock import SECOND_MS, Clock
from bookmark_appliance.database import DATABASE_ERRORS, Database
from bookmark_appliance.lanes.address_gate import fetchable
from bookmark_appliance.lanes.gates import Declined, bounded, first_gate
from bookmark_appliance.lanes.reading_decision import READABLE
from bookmark_appliance.lanes.recording import ReadListener, nobody_listens, record_reading
from bookmark_appliance.lanes.request_slots import RequestSlots
from bookmark_appliance.lanes.routing import Route
from bookmark_appliance.lanes.series_read import SeriesRead, SeriesReader, log_read
from bookmark_appliance.lanes.site import Site
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.lane_rows import lane_row
from bookmark_appliance.store.series import (
    ACQUISITION_CLAIM_MS,
    StoredSeries,
    claim_for_acquisition,
    drop_claim,
    lock_series,
    stamp_checked,
)

AT_ONCE = 2
"""In one process (COV-002)."""

WAITING_ROOM = 256
"""Series that may wait for their turn; one more is left to its Lane, which finds it due when the claim ends."""

DROP_CLAIM_SECONDS = 2.0

log = logging.getLogger(__name__)


class Acquirer:
    """Reads new Series as they are offered, two at a time, each within the time of its claim."""

    def __init__(
        self,
        sites: Mapping[str, Site],
        database: Database,
        reader: SeriesReader,
        slots: RequestSlots,
        clock: Clock,
        recorded: ReadListener = nobody_listens,
    ) -> None:
        self._sites = sites
        self._database = database
        self._reader = reader
        self._slots = slots
        self._clock = clock
        self._recorded = recorded
        self._at_once = trio.CapacityLimiter(AT_ONCE)
        self._plain = trio.open_memory_channel[SeriesKey](WAITING_ROOM)
        self._browser = trio.open_memory_channel[SeriesKey](WAITING_ROOM)

    def offer(self, key: SeriesKey) -> None:
        """Take a Series that was just created; never waits (COV-003)."""
        site = self._sites.get(key.site)
        send, _ = self._browser if site and site.browser else self._plain
        try:
            send.send_nowait(key)
        except trio.WouldBlock:
            log.warning("%s: too many new Series at once; its Lane reads it", key)

    async def run(self) -> None:
        """Work until cancelled."""
        async with trio.open_nursery() as nursery:
            for _ in range(AT_ONCE):
                nursery.start_soon(self._work, self._plain[1])
            # One tab, one read: a second one would only keep plain Sites waiting for the first (BRO-011).
            nursery.start_soon(self._work, self._browser[1])

    async def _work(self, waiting: trio.MemoryReceiveChannel[SeriesKey]) -> None:
        async for key in waiting:
            try:
                async with self._at_once:
                    await self.acquire(key)
            except DATABASE_ERRORS as error:
                log.warning("%s: the database failed during its Acquisition: %s", key, error)
            except Exception:
                log.exception("%s: its Acquisition crashed", key)

    async def acquire(self, key: SeriesKey) -> None:
        """Read one Series and drop its claim, whatever comes; what fails here stays due and is its Lane's."""
        try:
            with trio.move_on_after(ACQUISITION_CLAIM_MS / SECOND_MS) as deadline:
                await self._read(self._sites[key.site], key)
            if deadline.cancelled_caught:
                log.warning("%s: its Acquisition took too long", key)
        finally:
            with trio.move_on_after(DROP_CLAIM_SECONDS, shield=True):
                async with self._database.connection() as connection:
                    await drop_claim(connection, key)

    async def _read(self, site: Site, key: SeriesKey) -> None:
        """A pause does not stop it, a Site that refuses does (LANE-045); what cannot be read asks nothing."""
        now = self._clock.now_ms()
        async with self._database.transaction() as connection:
            stored = await lock_series(connection, key)
            if stored is None or stored.checked_at:
                return  # gone, or read by its Lane while it waited here
            row = replace(bounded(await lane_row(connection, site.name), now), paused_until=0)
            gate = first_gate(
                site, row, now, plain=self._reader.has(Route.PLAIN), browser=self._reader.has(Route.BROWSER)
            )
            if isinstance(gate, Declined) or not fetchable(site, stored.series_url):
                return
            await claim_for_acquisition(connection, key, now + ACQUISITION_CLAIM_MS)
        slot = await self._slots.take(site.name)
        read = await self._reader.read(site, stored.series_url, gate, slot)
        log_read(key, read)
        await self._record(key, read, stored)

    async def _record(self, key: SeriesKey, read: SeriesRead, asked: StoredSeries) -> None:
        """Only a page that may be believed counts as the Series' check, even one without facts (COV-004)."""
        now = self._clock.now_ms()
        async with self._database.transaction() as connection:
            recorded = await record_reading(connection, key, read, asked, now)
            if read.judgement.outcome in READABLE and recorded.stored is not None:
                await stamp_checked(connection, key, now)
        if recorded.stored is not None:
            self._recorded(key, recorded.stored, read.judgement, False)
