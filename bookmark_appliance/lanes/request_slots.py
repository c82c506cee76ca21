"""The one way to a request: nothing of ours asks a Site before its slot is granted (LANE-019, LANE-056)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

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
        self._requests: dict[str, _Grant] = {}
        self._covers: dict[str, _Grant] = {}

    async def take(self, site: str, spacing_ms: int = SHORTEST_SPACING_MS) -> "HeldSlot":
        """Wait until the last request to `site` lies `spacing_ms` back and claim the moment.

        Raises what the database raises: without the row nothing may be asked.
        """
        return HeldSlot(self, site, spacing_ms, await self._claim(self._requests, site, spacing_ms))

    async def take_for_cover(self, site: str, *, elsewhere: bool) -> Callable[[], None]:
        """Wait until everything asked of `site` lies a second back and claim the moment; no Lane's gap counts from it.

        A cover that lies `elsewhere`, on a host that is not the Site's own, keeps its second from such covers alone: a
        crowded Lane would have none to spare (LANE-053). To be called and raises as `HeldSlot`.
        """
        if elsewhere:
            return await (await self.take(f"{site} covers"))()
        await self._claim(self._covers, site, SHORTEST_SPACING_MS)
        return partial(self.leaves, site, cover=True)

    async def renew(self, site: str, spacing_ms: int, unused: _Grant) -> None:
        """Claim anew a moment that passed unused, unless it has only just passed; raises as `take`."""
        if trio.current_time() - unused.at > FRESH_MS / SECOND_MS:
            await self._claim(self._requests, site, spacing_ms, unused)

    def leaves(self, site: str, *, cover: bool = False) -> None:
        """The request goes out only now: name look-up, connection and TLS lay between its slot and this moment."""
        grants = self._covers if cover else self._requests
        grants[site] = replace(grants[site], at=trio.current_time())

    async def _claim(
        self, grants: dict[str, _Grant], site: str, spacing_ms: int, unused: _Grant | None = None
    ) -> _Grant:
        """The first moment that the row grants and that is not too near to what this process was granted itself."""

        def left() -> float:
            last = self._requests.get(site)
            return max(
                0 if last is unused else _left(last, spacing_ms), _left(self._covers.get(site), SHORTEST_SPACING_MS)
            )

        wait_ms = 0
        while True:
            await trio.sleep(max(wait_ms / SECOND_MS, left()))
            wait_ms = 0
            if left() > 0:  # what was granted last has left only now
                continue
            grant = _Grant(self._clock.now_ms(), trio.current_time())
            async with self._database.connection() as connection:
                wait_ms = await take_request_slot(
                    connection,
                    site,
                    grant.at_ms,
                    spacing_ms,
                    SHORTEST_SPACING_MS,
                    unused=unused.at_ms if unused else 0,
                    cover=grants is self._covers,
                )
            if not wait_ms:
                grants[site] = grant
                return grant


def _left(last: _Grant | None, spacing_ms: int) -> float:
    """How much of the spacing after our own last grant there is left, in s."""
    return 0 if last is None else max(0, last.at + spacing_ms / SECOND_MS - trio.current_time())


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

    async def __call__(self) -> Callable[[], None]:
        """Return at once for the first request, later if it waited for its turn at the tab; take a slot for each hop.

        The floor of a hop counts from the answer that redirected, which has just arrived. What is returned is to be
        called when the request leaves.
        """
        if self._grant is None:
            await trio.sleep(FLOOR_MS / SECOND_MS)
            await self._slots.take(self._site)
        else:
            grant, self._grant = self._grant, None
            await self._slots.renew(self._site, self._spacing_ms, grant)
        return partial(self._slots.leaves, self._site)
