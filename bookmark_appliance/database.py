"""The pool of database connections, and how a connection of ours is made.

DatabaseError
├── DatabaseUnavailable      there is no connection now: refused, lost, or none came free in time (an HTTP 503)
│   └── PoolExhausted        every connection stayed lent for too long
└── DatabaseRefused          this server will not do, whenever it is asked: its version, or a pooler between

What goes wrong with a statement itself stays a psycopg error. No text of these errors holds the connection URL.
"""

import contextlib
import logging
import re
import select
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import psycopg
import trio
from psycopg.pq import PipelineStatus, TransactionStatus

from bookmark_appliance.secret import Secret
from bookmark_appliance.trio_connection import TrioConnection

logger = logging.getLogger(__name__)

OLDEST_VERSION: Final = 15
NEWEST_VERSION: Final = 18
"""Majors of PostgreSQL that are tested and accepted (INTERFACE.md)."""

_LONG_IDLE_SECONDS: Final = 30.0
"""After this long a connection is asked before it is lent: firewalls forget quiet ones without a word."""

_CHECK_SECONDS: Final = 2.0

_CONNECTION_DEFAULTS: Final[dict[str, int | str]] = {
    "application_name": "bookmark-appliance",
    "connect_timeout": 5,
    # A peer that vanished is noticed after about 10 + 3 * 5 seconds.
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}


class DatabaseError(Exception):
    """The tree is drawn at the head of this module."""


class DatabaseUnavailable(DatabaseError):
    """There is no connection to the database at this moment."""


class PoolExhausted(DatabaseUnavailable):
    """Every connection stayed lent for longer than the caller may wait."""


class DatabaseRefused(DatabaseError):
    """The server can be reached, and is none that we can work with."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """What the server ends by itself, in milliseconds; 0 is never."""

    statement_ms: int = 15_000
    lock_ms: int = 5_000
    idle_in_transaction_ms: int = 30_000


NO_TIMEOUTS: Final = Timeouts(0, 0, 0)


async def connect(
    url: Secret | str, timeouts: Timeouts, connection_class: type[TrioConnection] = TrioConnection
) -> TrioConnection:
    """One connection in autocommit mode, outside any pool, with the timeouts set. The caller closes it.

    Raises DatabaseUnavailable when there is none to be had, DatabaseRefused when the server's version will not do or
    the URL cannot be read.
    """
    text = url.reveal() if isinstance(url, Secret) else url
    try:
        given = psycopg.conninfo.conninfo_to_dict(text)
        if not re.fullmatch(r"[0-9,]*", str(given.get("port") or ""), re.ASCII):
            raise psycopg.ProgrammingError("no port")  # what a slash in a password makes of it
    except psycopg.ProgrammingError:
        # The parser quotes what it could not read, which may be a password with an unescaped slash.
        raise DatabaseRefused("the database URL cannot be read (special characters are percent-encoded)") from None
    try:
        conninfo = psycopg.conninfo.make_conninfo("", **{**_CONNECTION_DEFAULTS, **given})
        connection = await connection_class.connect(conninfo, autocommit=True)
    except psycopg.Error as error:
        raise DatabaseUnavailable(f"no connection to the database: {error}") from None
    try:
        await _prepare(connection, timeouts)
    except BaseException:
        connection.pgconn.finish()
        raise
    return connection


async def _prepare(connection: TrioConnection, timeouts: Timeouts) -> None:
    major = connection.info.server_version // 10_000
    if not OLDEST_VERSION <= major <= NEWEST_VERSION:
        raise DatabaseRefused(
            f"the database server is PostgreSQL {major}; {OLDEST_VERSION} to {NEWEST_VERSION} are supported"
        )
    try:
        await connection.execute(
            """
            SELECT set_config('statement_timeout', %s, FALSE),
                   set_config('lock_timeout', %s, FALSE),
                   set_config('idle_in_transaction_session_timeout', %s, FALSE),
                   set_config('TimeZone', 'UTC', FALSE)
            """,
            (str(timeouts.statement_ms), str(timeouts.lock_ms), str(timeouts.idle_in_transaction_ms)),
        )
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable("the connection was lost while it was prepared") from error


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
            if await self._is_alive(connection, trio.current_time() - since):
                return connection
            connection.pgconn.finish()
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
    timeouts: Timeouts = Timeouts(),
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


async def refuse_shared_sessions(one: TrioConnection, other: TrioConnection) -> None:
    """Raise DatabaseRefused when a pooler in transaction or statement mode stands between us and the server.

    A mark is left in the session of `one`. A pooler has by then given that session back: `other` sees the mark when
    it is handed the same session, and while `other` keeps it in a transaction, `one` gets a session without the mark.
    """
    mark = str(id(one))
    refusal = DatabaseRefused(
        "the database is reached through a pooler in transaction mode; connect directly or use session mode"
    )
    read_mark = "SELECT current_setting('bookmark_appliance.mark', TRUE)"
    await one.execute("SELECT set_config('bookmark_appliance.mark', %s, FALSE)", (mark,))
    try:
        async with other.transaction():
            seen_by_other = await (await other.execute(read_mark)).fetchone()
            if seen_by_other == (mark,):
                raise refusal
            if await (await one.execute(read_mark)).fetchone() != (mark,):
                raise refusal
    except psycopg.errors.ProtocolViolation:
        raise refusal from None


def _has_word_from_server(connection: TrioConnection) -> bool:
    """Whether something waits to be read. On an idle connection that is nearly always its end."""
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return bool(poll.poll(0))
