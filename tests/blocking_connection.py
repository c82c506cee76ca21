"""A connection for tests under Trio's autojump clock, which must not jump while a query runs."""

from typing import TypeVar

from psycopg import waiting
from psycopg.abc import PQGen, PQGenConn

from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.postgres.waiting import TrioWaiter

T = TypeVar("T")


class _BlockingWaiter(TrioWaiter):
    """Blocks the thread; no other task runs meanwhile.

    A statement that waits for a lock held by another task of the same process ends by its lock timeout.
    """

    async def run(self, generator: PQGen[T], descriptor: int) -> T:
        """As TrioWaiter.run."""
        return waiting.wait(generator, descriptor, interval=0.1)

    async def run_connecting(self, generator: PQGenConn[T]) -> T:
        """As TrioWaiter.run_connecting."""
        return waiting.wait_conn(generator, interval=0.1)


class BlockingConnection(TrioConnection):
    """Blocks the thread while a query runs."""

    waiter = _BlockingWaiter()
