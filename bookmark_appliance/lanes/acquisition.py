"""Acquisition: the one read at the birth of a Series, while a Reader is looking (COV-001 to COV-008)."""

import logging
from collections.abc import Mapping

import trio

from bookmark_appliance.clock import SECOND_MS, Clock
from bookmark_appliance.database import DATABASE_ERRORS, Database
from bookmark_appliance.lanes.pace import CLAIM_MS, declined
from bookmark_appliance.lanes.reading_decision import READABLE, decide_change
from bookmark_appliance.lanes.refusals import note_answer
from bookmark_appliance.lanes.request_slots import HeldSlot, RequestSlots
from bookmark_appliance.lanes.series_read import SeriesRead, SeriesReader, log_read
from bookmark_appliance.lanes.site import Site
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.lane_rows import LaneRow, lane_row
from bookmark_appliance.store.series import (
    apply_change,
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
        self, sites: Mapping[str, Site], database: Database, reader: SeriesReader, slots: RequestSlots, clock: Clock
    ) -> None:
        self._sites = sites
        self._database = database
        self._reader = reader
        self._slots = slots
        self._clock = clock
        self._send, self._receive = trio.open_memory_channel[SeriesKey](WAITING_ROOM)

    def offer(self, key: SeriesKey) -> None:
        """Take a Series that was just created; never waits (COV-003)."""
        try:
            self._send.send_nowait(key)
        except trio.WouldBlock:
            log.warning("%s: too many new Series at once; its Lane reads it", key)

    async def run(self) -> None:
        """Work until cancelled."""
        async with trio.open_nursery() as nursery:
            for _ in range(AT_ONCE):
                nursery.start_soon(self._work)

    async def _work(self) -> None:
        async for key in self._receive:
            try:
                await self.acquire(key)
            except DATABASE_ERRORS as error:
                log.warning("%s: the database failed during its Acquisition: %s", key, error)
            except Exception:
                log.exception("%s: its Acquisition crashed", key)

    async def acquire(self, key: SeriesKey) -> None:
        """Read one Series and drop its claim, whatever comes; what fails here stays due and is its Lane's."""
        try:
            with trio.move_on_after(CLAIM_MS / SECOND_MS) as deadline:
                await self._read(self._sites[key.site], key)
            if deadline.cancelled_caught:
                log.warning("%s: its Acquisition took too long", key)
        finally:
            with trio.move_on_after(DROP_CLAIM_SECONDS, shield=True):
                async with self._database.connection() as connection:
                    await drop_claim(connection, key)

    async def _read(self, site: Site, key: SeriesKey) -> None:
        """A pause does not stop it, a Site that refuses does (LANE-045); an address or route of no use asks nothing."""
        now = self._clock.now_ms()
        async with self._database.transaction() as connection:
            stored = await lock_series(connection, key)
            if stored is None or stored.checked_at or not self._reader.can_read(site, stored.series_url):
                return  # gone, read by its Lane while it waited here, or of no use to ask for
            row = await lane_row(connection, site.name)
            if declined(LaneRow(refuse_until=row.refuse_until), now):
                return
            await claim_for_acquisition(connection, key, now + CLAIM_MS)
        await self._slots.take(site.name)
        read = await self._reader.read(site, stored.series_url, HeldSlot(self._slots, site.name))
        log_read(key, read)
        await self._record(key, read)

    async def _record(self, key: SeriesKey, read: SeriesRead) -> None:
        """Only a page that may be believed counts as the Series' check, even one without facts (COV-004)."""
        now = self._clock.now_ms()
        async with self._database.transaction() as connection:
            await note_answer(connection, key.site, read.judgement, now)
            stored = await lock_series(connection, key)
            if stored is None or read.judgement.outcome not in READABLE:
                return
            await apply_change(connection, key, decide_change(stored, read.judgement, now))
            await stamp_checked(connection, key, now)
