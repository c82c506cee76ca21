"""psycopg's asynchronous connection on Trio.

It rests on a few seams of psycopg: `wait`, the lock, `connect`, `cancel_safe`, the transaction block. The version is
pinned, and tests/test_trio_connection.py holds every one of them.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, ClassVar, Final, Self, TypeVar

import psycopg
import trio
from psycopg import generators
from psycopg.abc import AdaptContext, ConnParam, PQGen
from psycopg.conninfo import conninfo_attempts_async, make_conninfo, timeout_from_conninfo
from psycopg.errors import _WaitTimeout
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGconn
from psycopg.rows import AsyncRowFactory, TupleRow, tuple_row
from psycopg.transaction import AsyncTransaction

from bookmark_appliance.postgres.hosts import with_addresses
from bookmark_appliance.postgres.waiting import TrioWaiter

logger = logging.getLogger(__name__)

T = TypeVar("T")

CANCEL_SECONDS: Final = 2.0
"""How long a cancelled statement may take to end at the server before its connection is thrown away."""

TRANSACTION_EDGE_SECONDS: Final = 10.0
"""How long BEGIN, COMMIT or ROLLBACK may take: they run shielded, so they need an end of their own."""


class _PromptLock:
    """A lock that is taken without a checkpoint when it is free; the wait for the server is checkpoint enough."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = trio.Lock()

    async def __aenter__(self) -> None:
        try:
            self._lock.acquire_nowait()
        except trio.WouldBlock:
            await self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


class TrioTransaction(AsyncTransaction):
    """A transaction block whose edges are not cut.

    A block whose scope was cancelled rolls back, under a shield. Once COMMIT is sent its answer is awaited. Raises
    psycopg.OperationalError, with the connection closed, when an edge outlasts TRANSACTION_EDGE_SECONDS.
    """

    async def __aenter__(self) -> Self:
        await trio.lowlevel.checkpoint_if_cancelled()
        with trio.move_on_after(TRANSACTION_EDGE_SECONDS, shield=True):
            return await super().__aenter__()
        raise psycopg.OperationalError("the transaction could not be started in time")

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool:
        if exc_val is None:
            try:
                await trio.lowlevel.checkpoint_if_cancelled()
            except trio.Cancelled as cancelled:
                await self._leave(type(cancelled), cancelled, None)
                raise
        return await self._leave(exc_type, exc_val, exc_tb)

    async def _leave(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool:
        with trio.move_on_after(TRANSACTION_EDGE_SECONDS, shield=True):
            return await super().__aexit__(exc_type, exc_val, exc_tb)
        raise psycopg.OperationalError("the transaction could not be ended in time")


class TrioConnection(psycopg.AsyncConnection[TupleRow]):
    """One connection, used by one task at a time. Everything but the waiting is psycopg's own.

    A cancelled statement is cancelled at the server too; when that does not end it in CANCEL_SECONDS, or inside a
    pipeline, the connection is closed, which ends it as well.
    """

    waiter: ClassVar[TrioWaiter] = TrioWaiter()

    def __init__(self, pgconn: PGconn, row_factory: AsyncRowFactory[TupleRow] = tuple_row) -> None:
        super().__init__(pgconn, row_factory)
        self.lock = _PromptLock()  # type: ignore[assignment]

    @classmethod
    async def connect(  # type: ignore[override]
        cls,
        conninfo: str = "",
        *,
        autocommit: bool = False,
        prepare_threshold: int | None = 5,
        context: AdaptContext | None = None,
        **parameters: ConnParam,
    ) -> Self:
        """Connect, trying each address of each host in turn.

        Raises psycopg.ProgrammingError when `conninfo` cannot be read, with its text (do not log it: it may hold a
        password), and psycopg.OperationalError, with the reason of the last attempt, when no address took us.
        """
        params = await cls._get_connection_params(conninfo, **parameters)
        seconds = timeout_from_conninfo(params)
        failure: psycopg.Error = psycopg.OperationalError("no address to connect to")
        for attempt in await conninfo_attempts_async(await with_addresses(params)):
            with trio.move_on_after(seconds) as scope:
                try:
                    connection = await cls.waiter.run_connecting(cls._connect_gen(make_conninfo("", **attempt)))
                except psycopg.Error as error:
                    failure = error
                    continue
                connection._autocommit = autocommit
                connection.prepare_threshold = prepare_threshold
                if context is not None:
                    connection._adapters = psycopg.adapt.AdaptersMap(context.adapters)
                return connection
            if scope.cancelled_caught:
                failure = psycopg.errors.ConnectionTimeout(f"no answer within {seconds} s")
        raise failure.with_traceback(None)

    async def wait(
        self,
        gen: PQGen[T],
        interval: float = 0.0,
        timeout: float | None = None,  # noqa: ASYNC109 - psycopg's signature
    ) -> T:
        """Run one generator of psycopg to its end. `timeout` in seconds raises psycopg's own timeout error."""
        if timeout is not None:
            with trio.move_on_after(timeout):
                return await self.wait(gen)
            raise _WaitTimeout("wait timeout expired")
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
            return await self.waiter.run(gen, self.pgconn.socket)
        except (trio.Cancelled, KeyboardInterrupt, SystemExit):
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                await self._abandon(gen)
            raise

    async def _abandon(self, gen: PQGen[Any]) -> None:
        """End a statement that nobody waits for any more, or else the connection."""
        with trio.move_on_after(CANCEL_SECONDS, shield=True):
            try:
                await self.cancel_safe(timeout=CANCEL_SECONDS)
                if self._pipeline is None:
                    await self.waiter.run(gen, self.pgconn.socket)
            except psycopg.errors.QueryCanceled:
                pass
            except psycopg.Error as error:
                logger.debug("a cancelled statement left its connection unusable: %s", error)
        if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
            self.pgconn.finish()

    async def cancel_safe(self, *, timeout: float = CANCEL_SECONDS) -> None:  # noqa: ASYNC109 - psycopg's signature
        """Ask the server to end the statement that runs here. Raises CancellationTimeout after `timeout` seconds."""
        if not self._should_cancel():
            return
        # Shielded: it is asked for when something was cancelled, and it has an end of its own.
        with trio.move_on_after(timeout, shield=True):
            await self.waiter.run_connecting(self._cancel_gen())
            return
        raise psycopg.errors.CancellationTimeout("the server did not take the cancellation in time")

    @asynccontextmanager
    async def transaction(
        self, savepoint_name: str | None = None, force_rollback: bool = False
    ) -> AsyncIterator[AsyncTransaction]:
        """A transaction, or a savepoint in the one that is open; see TrioTransaction."""
        transaction = TrioTransaction(self, savepoint_name, force_rollback)
        if self._pipeline is None:
            async with transaction:
                yield transaction
        else:
            async with self.pipeline(), transaction, self.pipeline():
                yield transaction

    async def wait_for_notifications(self) -> None:
        """Sleep until the server says something unasked; notify handlers are called before this returns."""
        async with self.lock:
            await self.waiter.run(generators.notifies(self.pgconn), self.pgconn.socket)

    async def close(self) -> None:
        """Close the connection; a task that waits on it gets an OperationalError."""
        if not self.closed:
            trio.lowlevel.notify_closing(self.pgconn.socket)
        await super().close()
