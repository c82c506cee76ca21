"""The pool of database connections, and the unit of work on one of them."""

import contextlib
import select
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import psycopg
import trio
from psycopg.pq import PipelineStatus, TransactionStatus

from bookmark_appliance.postgres.connecting import (
    DATABASE_ERRORS,
    USUAL_TIMEOUTS,
    DatabaseError,
    DatabaseRefused,
    DatabaseUnavailable,
    PoolExhausted,
    Timeouts,
    connect,
    refuse_shared_sessions,
)
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.secret import Secret

__all__ = [
    "DATABASE_ERRORS",
    "Database",
    "DatabaseError",
    "DatabaseRefused",
    "DatabaseUnavailable",
    "PoolExhausted",
    "Timeouts",
    "open_database",
]

_LONG_IDLE_SECONDS: Final = 30.0
"""After this long a connection is asked before it is lent: firewalls forget quiet ones without a word."""

_CHECK_SECONDS: Final = 2.0


class Database:
    """A pool of at most `pool_size` connections, opened as they are needed. Made by open_database."""

    def __init__(
        self,
        url: Secret | str,
        *,
        pool_size: int,
        acquire_seconds: float,
        timeouts: Timeouts,
        connection_class: type[TrioConnection],
    ) -> None:
        self._url = url
        self._timeouts = timeouts
        self._connection_class = connection_class
        self._acquire_seconds = acquire_seconds
        self._free_places = trio.Semaphore(pool_size)
        self._idle: deque[tuple[TrioConnection, float]] = deque()
        self._closed = False

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[TrioConnection]:
        """Lend a connection in autocommit mode: each statement is its own transaction.

        Raises PoolExhausted when none comes free in time, DatabaseUnavailable when none can be opened or the one that
        was lent is lost meanwhile.
        """
        await self._take_place()
        try:
            connection = await self._borrow()
            try:
                yield connection
            except psycopg.Error as error:
                if connection.closed:
                    raise DatabaseUnavailable("the connection to the database was lost") from error
                raise
            finally:
                self._take_back(connection)
        finally:
            self._free_places.release()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[TrioConnection]:
        """Lend a connection with a transaction open on it: committed at the end, rolled back on any exception.

        Cancellation rolls back under a shield; a COMMIT that was sent is waited for. Raises what connection() raises;
        after DatabaseUnavailable at the very end it is unknown whether the transaction was committed.
        """
        async with self.connection() as connection, connection.transaction():
            yield connection

    async def _take_place(self) -> None:
        # Trio's acquire is a full turn of its scheduler even when a place is free.
        with contextlib.suppress(trio.WouldBlock):
            return self._free_places.acquire_nowait()
        with trio.move_on_after(self._acquire_seconds):
            await self._free_places.acquire()
            return None
        raise PoolExhausted("every database connection is in use")

    async def _borrow(self) -> TrioConnection:
        while self._idle:
            connection, since = self._idle.pop()
            alive = False
            try:
                alive = await self._is_alive(connection, trio.current_time() - since)
            finally:  # it is in nobody's hands when the question was cut off
                if not alive:
                    connection.pgconn.finish()
            if alive:
                return connection
        return await connect(self._url, self._timeouts, self._connection_class)

    @staticmethod
    async def _is_alive(connection: TrioConnection, idle_seconds: float) -> bool:
        if connection.closed:
            return False
        if idle_seconds < _LONG_IDLE_SECONDS and not _has_word_from_server(connection):
            return True
        with trio.move_on_after(_CHECK_SECONDS):
            try:
                await connection.execute("SELECT 1")
            except psycopg.Error:
                return False
            return True
        return False

    def _take_back(self, connection: TrioConnection) -> None:
        clean = (
            not connection.closed
            and connection.pgconn.transaction_status == TransactionStatus.IDLE
            and connection.pgconn.pipeline_status == PipelineStatus.OFF
        )
        if clean and not self._closed:
            self._idle.append((connection, trio.current_time()))
        else:
            connection.pgconn.finish()

    def close(self) -> None:
        """Close the connections that are at home; lent ones are closed as they come back."""
        self._closed = True
        while self._idle:
            connection, _ = self._idle.pop()
            connection.pgconn.finish()


@asynccontextmanager
async def open_database(
    url: Secret | str,
    *,
    pool_size: int = 8,
    acquire_seconds: float = 5.0,
    timeouts: Timeouts = USUAL_TIMEOUTS,
    connection_class: type[TrioConnection] = TrioConnection,
) -> AsyncIterator[Database]:
    """Open a pool on the database at `url`; it is closed at the end.

    Raises DatabaseUnavailable when the server cannot be reached now, DatabaseRefused when it is of another version
    than 15 to 18 or stands behind a pooler that gives each transaction another session.
    """
    database = Database(
        url,
        pool_size=max(pool_size, 2),
        acquire_seconds=acquire_seconds,
        timeouts=timeouts,
        connection_class=connection_class,
    )
    try:
        async with database.connection() as one, database.connection() as other:
            await refuse_shared_sessions(one, other)
        yield database
    finally:
        database.close()


def _has_word_from_server(connection: TrioConnection) -> bool:
    """Whether something waits to be read. On an idle connection that is nearly always its end."""
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return bool(poll.poll(0))
