"""The one way to a request: nothing of ours asks a Site before its slot is granted (LANE-019, LANE-056)."""

import trio

from bookmark_appliance.clock import SECOND_MS, Clock
from bookmark_appliance.database import Database
from bookmark_appliance.lanes.pace import CLOCK_TOLERANCE_MS, FLOOR_MS, WIRE_MARGIN_MS
from bookmark_appliance.store.lane_rows import take_request_slot


class RequestSlots:
    """Grants the moments of requests, one row per Site, across every process on the database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def take(self, site: str, spacing_ms: int = FLOOR_MS) -> None:
        """Wait until the last request to `site` lies `spacing_ms` back and claim the moment.

        Raises what the database raises: without the row nothing may be asked.
        """
        while True:
            now = self._clock.now_ms()
            async with self._database.connection() as connection:
                slot = await take_request_slot(connection, site, now, spacing_ms + WIRE_MARGIN_MS, CLOCK_TOLERANCE_MS)
            if slot.granted:
                return
            await trio.sleep(max(slot.free_at - self._clock.now_ms(), 1) / SECOND_MS)


class HeldSlot:
    """The slots of one read whose first is already held: what a fetcher awaits before each request it sends."""

    def __init__(self, slots: RequestSlots, site: str) -> None:
        self._slots = slots
        self._site = site
        self._held = True

    async def __call__(self) -> None:
        """Return at once for the first request; for a redirect hop take a slot of its own.

        The floor of a hop counts from the answer that redirected, which has just arrived.
        """
        if self._held:
            self._held = False
            return
        await trio.sleep(FLOOR_MS / SECOND_MS)
        await self._slots.take(self._site)
