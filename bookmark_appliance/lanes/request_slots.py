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

    async def take(self, site: str, spacing_ms: int = FLOOR_MS) -> "HeldSlot":
        """Wait until the last request to `site` lies `spacing_ms` back and claim the moment.

        Raises what the database raises: without the row nothing may be asked.
        """
        return HeldSlot(self, site, spacing_ms, await self._claim(site, spacing_ms))

    async def renew(self, site: str, spacing_ms: int, claimed_at: int) -> None:
        """Claim anew a moment that passed unused, unless it has only just passed; raises as `take`."""
        if self._clock.now_ms() - claimed_at > WIRE_MARGIN_MS:
            await self._claim(site, spacing_ms, unused=claimed_at)

    async def _claim(self, site: str, spacing_ms: int, unused: int = 0) -> int:
        while True:
            now = self._clock.now_ms()
            async with self._database.connection() as connection:
                slot = await take_request_slot(
                    connection, site, now, spacing_ms + WIRE_MARGIN_MS, CLOCK_TOLERANCE_MS, unused
                )
            if slot.granted:
                return now
            await trio.sleep(max(slot.free_at - self._clock.now_ms(), 1) / SECOND_MS)


class HeldSlot:
    """The slots of one read whose first is already held: what a fetcher awaits before each request it sends."""

    def __init__(self, slots: RequestSlots, site: str, spacing_ms: int, claimed_at: int) -> None:
        self._slots = slots
        self._site = site
        self._spacing_ms = spacing_ms
        self._claimed_at: int | None = claimed_at

    async def __call__(self) -> None:
        """Return at once for the first request, later if it waited for its turn at the tab; take a slot for each hop.

        The floor of a hop counts from the answer that redirected, which has just arrived.
        """
        if self._claimed_at is None:
            await trio.sleep(FLOOR_MS / SECOND_MS)
            await self._slots.take(self._site)
            return
        claimed_at, self._claimed_at = self._claimed_at, None
        await self._slots.renew(self._site, self._spacing_ms, claimed_at)
