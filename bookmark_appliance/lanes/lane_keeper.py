"""Which process runs which Lane: one advisory lock a Lane, held by one session that also hears the wakeups.

Any number of processes share a database; each Lane runs in at most one of them. Whoever loses the session has lost its
locks and stops the Lanes that it ran; another process finds them free at its next try.
"""

import logging
import zlib
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final

import trio

from bookmark_appliance.database import DATABASE_ERRORS
from bookmark_appliance.lanes.lane import Lane
from bookmark_appliance.lanes.supervision import contain
from bookmark_appliance.postgres.lock_session import LockSession

log = logging.getLogger(__name__)

WAKEUP_CHANNEL: Final = "lane_wakeups"
"""The triggers of the schema tell the Site's name here."""

TRY_SECONDS: Final = 20.0
"""Between two tries for a Lane that another process runs: it moves within 60 s of that one's death."""

RECONNECT_SECONDS: Final = 2.0

_LOCK_SPACE: Final = 0x626D_6170_0000_0000 >> 32 << 32
"""The upper half of our advisory locks' keys, `bmap`; the lower half is the Site's."""


def lane_lock(site: str) -> int:
    """The key of a Lane's advisory lock; the same in every process and version."""
    return _LOCK_SPACE | zlib.crc32(site.encode())


async def keep_lanes(
    lanes: Sequence[Lane],
    open_session: Callable[[], AbstractAsyncContextManager[LockSession]],
    *,
    try_seconds: float = TRY_SECONDS,
    reconnect_seconds: float = RECONNECT_SECONDS,
) -> None:
    """Run every Lane whose lock can be had, until cancelled; a lost session is opened again."""
    told = False
    while True:
        try:
            async with open_session() as session:
                await session.listen(WAKEUP_CHANNEL)
                told = False
                await _run(lanes, session, try_seconds)
        except* DATABASE_ERRORS as errors:
            if not told:
                log.warning("no Lane runs here until the database answers: %s", errors.exceptions[0])
            told = True
        await trio.sleep(reconnect_seconds)


async def _run(lanes: Sequence[Lane], session: LockSession, try_seconds: float) -> None:
    by_site = {lane.site.name: lane for lane in lanes}
    async with trio.open_nursery() as nursery:
        for lane in lanes:
            nursery.start_soon(_hold, lane, session, try_seconds, name=lane.name)
        async for word in session:
            if word.payload in by_site:
                by_site[word.payload].nudge()


async def _hold(lane: Lane, session: LockSession, try_seconds: float) -> None:
    """Wait for the Lane's lock, then run it for as long as the session lives."""
    key = lane_lock(lane.site.name)
    waited = False
    while not await session.try_lock(key):
        if not waited:
            log.info("%s runs in another process", lane.name)
            waited = True
        await trio.sleep(try_seconds)
    if waited:
        log.info("%s runs here now", lane.name)
    await contain(lane.name, lane.run)
