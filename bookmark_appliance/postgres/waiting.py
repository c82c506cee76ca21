"""How psycopg's generators are waited for.

psycopg keeps the protocol apart from the waiting: its generators yield what they wait for (read, write or either) and
are sent what became ready. A waiter is the small loop around them.
"""

import select
from time import monotonic
from typing import Final, TypeVar

import psycopg
import trio
from psycopg.abc import PQGen, PQGenConn
from psycopg.waiting import Ready, Wait

T = TypeVar("T")

_BUSY_SECONDS: Final = 0.005
"""How long generators that never block (a long COPY) may keep the other tasks from running."""

_EVENTS: Final = {Wait.R: select.POLLIN, Wait.W: select.POLLOUT, Wait.RW: select.POLLIN | select.POLLOUT}

_READY: Final = {events: Ready(wanted) for wanted, events in _EVENTS.items()}


class TrioWaiter:
    """Runs one generator to its end with Trio's own readiness calls: cancellable, without a thread.

    Raises what the generator raises, and psycopg.OperationalError when the socket was closed under it. Cancellation
    leaves the generator where it stood, so that the caller may go on with it.
    """

    def __init__(self) -> None:
        self._last_yield = monotonic()

    async def run(self, generator: PQGen[T], descriptor: int) -> T:
        """Run a generator that stays on one socket; its result."""
        try:
            wanted = next(generator)
            while True:
                wanted = generator.send(await self._ready(descriptor, wanted))
        except StopIteration as stop:
            result: T = stop.value
        except (OSError, trio.ClosedResourceError) as error:
            raise psycopg.OperationalError("the connection is closed") from error
        await self._let_others_run()
        return result

    async def run_connecting(self, generator: PQGenConn[T]) -> T:
        """Run a generator that names its socket anew at each step: connecting, cancelling."""
        try:
            descriptor, wanted = next(generator)
            while True:
                descriptor, wanted = generator.send(await self._ready(descriptor, wanted))
        except StopIteration as stop:
            result: T = stop.value
        except (OSError, trio.ClosedResourceError) as error:
            raise psycopg.OperationalError("the connection is closed") from error
        return result

    async def _ready(self, descriptor: int, wanted: Wait) -> Ready:
        """Wait until the socket is ready in a wanted way.

        A socket is nearly always writable, so asking the kernel once without waiting spares the trip through Trio.
        Where it is not, an epoll object watches both directions and Trio waits for that one to become readable: two
        tasks in a nursery, one a direction, halve pipelined work.
        """
        if wanted & Wait.W:
            await self._let_others_run()
            if ready := _poll_now(descriptor, wanted):
                return ready
        self._last_yield = monotonic()
        if wanted == Wait.R:
            await trio.lowlevel.wait_readable(descriptor)
            return Ready.R
        if wanted == Wait.W:
            await trio.lowlevel.wait_writable(descriptor)
            return Ready.W
        with select.epoll() as epoll:
            epoll.register(descriptor, select.EPOLLIN | select.EPOLLOUT)
            await trio.lowlevel.wait_readable(epoll.fileno())
        return _poll_now(descriptor, wanted)

    async def _let_others_run(self) -> None:
        # Shielded: what the generator has done is done, and its result must not be lost.
        if monotonic() - self._last_yield > _BUSY_SECONDS:
            await trio.lowlevel.cancel_shielded_checkpoint()
            self._last_yield = monotonic()


def _poll_now(descriptor: int, wanted: Wait) -> Ready:
    """What the socket is ready for at this moment. An error counts as ready for both: libpq will find it."""
    poll = select.poll()
    poll.register(descriptor, _EVENTS[wanted])
    for _, events in poll.poll(0):
        if events & ~(select.POLLIN | select.POLLOUT):
            return Ready.RW
        return _READY[events]
    return Ready.NONE
