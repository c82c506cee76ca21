"""One session of our own, outside the pool, for what lives as long as a session: advisory locks and LISTEN.

Losing the session is losing its locks, so it is told at once: whoever waits for notifications gets SessionLost.
"""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

import psycopg
import trio
from psycopg import sql
from psycopg.abc import Params
from psycopg.rows import TupleRow

from bookmark_appliance.postgres.connecting import NO_TIMEOUTS, DatabaseUnavailable, connect
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.secret import Secret


class SessionLost(DatabaseUnavailable):
    """The session ended, and with it every advisory lock that it held and everything it listened to."""


class LockSession:
    """Made by open_lock_session. Iterate over it in one task; lock and listen from any.

    The one that waits for notifications steps aside while another task has something to ask. Every method raises
    SessionLost once the session is gone.
    """

    def __init__(self, connection: TrioConnection) -> None:
        self._connection = connection
        self._arrived: deque[psycopg.Notify] = deque()
        self._turn = trio.Lock()
        self._wait = trio.CancelScope()
        connection.add_notify_handler(self._arrived.append)

    async def try_lock(self, key: int) -> bool:
        """Take the advisory lock `key` (64 bits, signed) if nobody has it. The same session may take it repeatedly."""
        row = await self._ask("SELECT pg_try_advisory_lock(%s)", (key,))
        return row == (True,)

    async def listen(self, channel: str) -> None:
        """From now on notifications of this channel arrive."""
        await self._ask(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> psycopg.Notify:
        """The next notification. Never ends by itself: raises SessionLost when the session does."""
        while not self._arrived:
            async with self._turn:
                if self._turn.statistics().tasks_waiting:
                    continue  # somebody came before we could be asked to step aside
                with trio.CancelScope() as self._wait:
                    try:
                        await self._connection.wait_for_notifications()
                    except psycopg.OperationalError as error:
                        raise SessionLost("the session that holds our locks was lost") from error
        return self._arrived.popleft()

    async def _ask(self, query: Any, parameters: Params | None = None) -> TupleRow | None:
        self._wait.cancel()
        async with self._turn:
            try:
                cursor = await self._connection.execute(query, parameters)
                return await cursor.fetchone() if cursor.description else None
            except psycopg.Error as error:
                if self._connection.closed:
                    raise SessionLost("the session that holds our locks was lost") from error
                raise


@asynccontextmanager
async def open_lock_session(url: Secret | str) -> AsyncIterator[LockSession]:
    """Open the session for a block; its locks end with it. Raises DatabaseUnavailable or DatabaseRefused."""
    connection = await connect(url, NO_TIMEOUTS)
    try:
        yield LockSession(connection)
    finally:
        await connection.close()
