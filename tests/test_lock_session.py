"""The session outside the pool: locks, notifications, and the word that it is gone."""

import psycopg
import pytest
import trio

from bookmark_appliance.database import Database
from bookmark_appliance.postgres.lock_session import LockSession, SessionLost, open_lock_session

KEY = 42


async def test_lock_belongs_to_one_session_until_it_ends(database_url: str) -> None:
    """LANE locks: another process takes over when the session that holds one ends."""
    async with open_lock_session(database_url) as other:
        async with open_lock_session(database_url) as first:
            assert await first.try_lock(KEY)
            assert not await other.try_lock(KEY)
            assert await other.try_lock(KEY + 1)
        with trio.fail_after(20):
            while not await other.try_lock(KEY):
                pass


async def test_notifications_arrive_while_others_lock(database_url: str, database: Database) -> None:
    """The task that waits for notifications steps aside for each question, and misses none."""
    heard: list[str] = []
    count = 50

    async def hear(session: LockSession) -> None:
        async for notification in session:
            heard.append(notification.payload)
            if len(heard) == count:
                return

    async def ask(session: LockSession) -> None:
        for key in range(count):
            assert await session.try_lock(key)

    async with open_lock_session(database_url) as session:
        await session.listen("news from us")
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(hear, session)
                nursery.start_soon(ask, session)
                nursery.start_soon(ask, session)
                async with database.connection() as sender:
                    for number in range(count):
                        await sender.execute("SELECT pg_notify('news from us', %s)", (str(number),))
    assert heard == [str(number) for number in range(count)]


async def test_loss_is_told_to_whoever_waits_and_whoever_asks(database_url: str, database: Database) -> None:
    """ARCHITECTURE: losing the session is losing its locks, so the lanes must hear of it at once."""
    async with open_lock_session(database_url) as session:
        await session.try_lock(KEY)

        async def wait() -> None:
            with pytest.raises(SessionLost):
                await anext(session)

        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait)
                await trio.testing.wait_all_tasks_blocked()
                async with database.connection() as other:
                    await other.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE objid = %s", (KEY,))
        with pytest.raises(SessionLost):
            await session.try_lock(KEY)


async def test_waiting_can_be_cancelled(database_url: str) -> None:
    async with open_lock_session(database_url) as session:
        with trio.move_on_after(0.01) as scope:
            await anext(session)
        assert scope.cancelled_caught
        assert await session.try_lock(KEY)


async def test_dead_peer_is_looked_for(database_url: str) -> None:
    """Keepalives are on, so that a server that vanished without a word is noticed."""
    async with open_lock_session(database_url) as session:
        parameters = psycopg.conninfo.conninfo_to_dict(session._connection.info.dsn)
        assert (parameters["keepalives"], parameters["keepalives_idle"]) == ("1", "10")


async def test_server_looks_for_a_dead_peer_too(database_url: str) -> None:
    """ARCHITECTURE: the locks of a machine that died are free in half a minute, not in the kernel's two hours.

    Over a Unix socket the server shows no value, but says that this session has set one.
    """
    async with open_lock_session(database_url) as session:
        cursor = await session._connection.execute(
            "SELECT name FROM pg_settings WHERE name LIKE 'tcp%%' AND source = 'session' ORDER BY name", ()
        )
        assert await cursor.fetchall() == [
            ("tcp_keepalives_count",),
            ("tcp_keepalives_idle",),
            ("tcp_keepalives_interval",),
            ("tcp_user_timeout",),
        ]
