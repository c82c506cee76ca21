"""The one way to a request: nothing of ours asks a Site before its slot is granted (LANE-019, LANE-056)."""

from dataclasses import dataclass

import trio

from bookmark_appliance.clock import SECOND_MS, Clock
from bookmark_appliance.database import Database
from bookmark_appliance.lanes.pace import FLOOR_MS, SHORTEST_SPACING_MS, WIRE_MARGIN_MS
from bookmark_appliance.store.lane_rows import take_request_slot

# A moment that passed unused for longer is claimed anew: most of the margin is for the way to the Site.
FRESH_MS = WIRE_MARGIN_MS // 5


@dataclass(frozen=True, slots=True)
class _Grant:
    """A moment that was granted: on the wall, as the row has it (ms), and on the clock that nobody sets (s)."""

    at_ms: int
    at: float


class RequestSlots:
    """Grants the moments of requests, one row per Site, across every process on the database.

    What this process was granted is kept beside the row: its wall clock may be set, and no spacing is shorter for it.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._last: dict[str, _Grant] = {}

    async def take(self, site: str, spacing_ms: int = SHORTEST_SPACING_MS) -> "HeldSlot":
        """Wait until the last request to `site` lies `spacing_ms` back and claim the moment.

        Raises what the database raises: without the row nothing may be asked.
        """
        return HeldSlot(self, site, spacing_ms, await self._claim(site, spacing_ms))

    async def renew(self, site: str, spacing_ms: int, unused: _Grant) -> None:
        """Claim anew a moment that passed unused, unless it has only just passed; raises as `take`."""
        if trio.current_time() - unused.at > FRESH_MS / SECOND_MS:
            await self._claim(site, spacing_ms, unused)

    async def _claim(self, site: str, spacing_ms: int, unused: _Grant | None = None) -> _Grant:
        wait_ms = 0
        while True:
            await trio.sleep(max(wait_ms / SECOND_MS, self._floor(site, spacing_ms, unused)))
            grant = _Grant(self._clock.now_ms(), trio.current_time())
            async with self._database.connection() as connection:
                wait_ms = await take_request_slot(
                    connection, site, grant.at_ms, spacing_ms, unused.at_ms if unused else 0
                )
            if not wait_ms:
                self._last[site] = grant
                return grant

    def _floor(self, site: str, spacing_ms: int, unused: _Grant | None) -> float:
        """How long from now, in s, our own last request to `site` still keeps the next one away."""
        last = self._last.get(site)
        if last is None or last is unused:
            return 0
        return max(0, last.at + spacing_ms / SECOND_MS - trio.current_time())


class HeldSlot:
    """The slots of one read whose first is already held: what a fetcher awaits before each request it sends."""

    def __init__(self, slots: RequestSlots, site: str, spacing_ms: int, grant: _Grant) -> None:
        self._slots = slots
        self._site = site
        self._spacing_ms = spacing_ms
        self._grant: _Grant | None = grant

    @property
    def used(self) -> bool:
        """Whether a request was sent in it."""
        return self._grant is None

    async def __call__(self) -> None:
        """Return at once for the first request, later if it waited for its turn at the tab; take a slot for each hop.

        The floor of a hop counts from the answer that redirected, which has just arrived.
        """
        if self._grant is None:
            await trio.sleep(FLOOR_MS / SECOND_MS)
            await self._slots.take(self._site)
            return
        grant, self._grant = self._grant, None
        await self._slots.renew(self._site, self._spacing_ms, grant)
