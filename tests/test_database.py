"""The pool, what it refuses, and the errors it turns losses into."""

import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import psycopg
import pytest
import trio
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus

from bookmark_appliance import database as database_module
from bookmark_appliance.database import (
    Database,
    DatabaseRefused,
    DatabaseUnavailable,
    PoolExhausted,
    Timeouts,
    open_database,
)
from bookmark_appliance.postgres import trio_connection
from bookmark_appliance.postgres.connecting import refuse_shared_sessions
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.secret import Secret


async def backend(connection: TrioConnection) -> int:
    row = await (await connection.execute("SELECT pg_backend_pid()")).fetchone()
    assert row is not None
    return int(row[0])


async def end_other_sessions(connection: TrioConnection) -> None:
    await connection.execute(
        """
        SELECT pg_terminate_backend(pid, 5000)
        FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
        """
    )


async def readers(connection: TrioConnection) -> int:
    row = await (await connection.execute("SELECT count(*) FROM readers")).fetchone()
    assert row is not None
    return int(row[0])


ADD_READER = "INSERT INTO readers (discord_id, token_sha256) VALUES ('7', 'x')"


async def test_transaction_is_kept_or_undone(database: Database) -> None:
    """SER-003: what a block wrote is there as a whole, or not at all."""

    async def fail() -> None:
        async with database.transaction() as connection:
            await connection.execute(ADD_READER)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with database.transaction() as connection:
        assert await readers(connection) == 1
        await connection.execute(ADD_READER)
    async with database.connection() as connection:
        assert await readers(connection) == 2


async def test_connection_is_lent_again(database: Database) -> None:
    """One after another they share one connection; at the same time they do not."""
    async with database.connection() as connection:
        first = await backend(connection)
        async with database.connection() as other:
            assert await backend(other) != first
    async with database.transaction() as connection, database.transaction() as other:
        assert first in (await backend(connection), await backend(other))


async def test_timeouts_are_set_on_every_connection(database_url: str) -> None:
    """Each connection of the pool ends what takes too long by itself."""
    async with (
        open_database(database_url, timeouts=Timeouts(1_000, 2_000, 3_000)) as database,
        database.connection() as connection,
        database.connection() as other,
        database.connection() as third,
    ):
        for one in (connection, other, third):
            row = await one.execute(
                """
                SELECT current_setting('statement_timeout'), current_setting('lock_timeout'),
                       current_setting('idle_in_transaction_session_timeout'), current_setting('TimeZone')
                """
            )
            assert await row.fetchone() == ("1s", "2s", "3s", "UTC")


async def test_statement_that_takes_too_long_is_an_error_of_the_statement(database_url: str) -> None:
    """The connection is whole afterwards and goes on."""
    async with open_database(database_url, timeouts=Timeouts(statement_ms=20)) as database:
        async with database.connection() as connection:
            pid = await backend(connection)
            with pytest.raises(psycopg.errors.QueryCanceled):
                await connection.execute("SELECT pg_sleep(5)")
        async with database.connection() as connection:
            assert await backend(connection) == pid


async def test_transaction_left_idle_is_ended_by_the_server(database_url: str) -> None:
    """A block that forgot its transaction loses it; the next one gets another connection."""
    async with open_database(database_url, timeouts=Timeouts(idle_in_transaction_ms=20)) as database:

        async def dawdle() -> None:
            async with database.transaction() as connection:
                await connection.execute(ADD_READER)
                with trio.fail_after(20):
                    await trio.lowlevel.wait_readable(connection.pgconn.socket)
                await connection.execute("SELECT 1")

        with pytest.raises(DatabaseUnavailable):
            await dawdle()
        async with database.connection() as connection:
            assert await readers(connection) == 1


async def test_pool_has_an_end_and_says_so(database_url: str) -> None:
    """The wait for a connection is bounded, and the pool works again once one is back."""
    async with open_database(database_url, pool_size=2, acquire_seconds=0.02) as database:
        async with database.connection(), database.connection():
            with pytest.raises(PoolExhausted):
                async with database.connection():
                    pass
        async with database.connection() as connection:
            assert await readers(connection) == 1


async def test_connection_that_was_being_asked_when_its_borrower_went_is_closed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no longer at home and not yet lent: nobody else would."""
    monkeypatch.setattr(database_module, "_LONG_IDLE_SECONDS", 0.0)
    async with database.connection() as asked, database.connection():
        pass
    with trio.CancelScope() as scope:
        scope.cancel()
        async with database.connection():
            pass
    assert scope.cancelled_caught
    assert asked.closed
    async with database.connection() as connection:
        assert await readers(connection) == 1


async def test_waiting_for_a_connection_ends_when_one_comes_back(database_url: str) -> None:
    async with open_database(database_url, pool_size=2) as database, trio.open_nursery() as nursery:
        got = trio.Event()

        async def third() -> None:
            async with database.connection():
                got.set()

        async with database.connection():
            async with database.connection():
                nursery.start_soon(third)
                await trio.testing.wait_all_tasks_blocked()
                assert not got.is_set()
            with trio.fail_after(20):
                await got.wait()


async def leave_in_transaction(connection: TrioConnection) -> None:
    await connection.execute("BEGIN")


async def leave_in_error(connection: TrioConnection) -> None:
    await connection.execute("BEGIN")
    with contextlib.suppress(psycopg.Error):
        await connection.execute("SELECT 1/0")


@pytest.mark.parametrize("leave", [leave_in_transaction, leave_in_error])
async def test_connection_is_taken_back_only_when_idle(
    database: Database, leave: Callable[[TrioConnection], Awaitable[None]]
) -> None:
    """Whatever a block left open is closed with its connection and never handed to the next one."""
    async with database.connection() as connection:
        pid = await backend(connection)
        await leave(connection)
    assert connection.closed
    async with database.connection() as connection, database.connection() as other:
        for one in (connection, other):
            assert one.info.transaction_status == TransactionStatus.IDLE
            assert await backend(one) != pid


async def test_connections_that_died_at_home_are_dropped(database: Database) -> None:
    """After a restart of the server no request sees one of the old connections."""
    async with database.connection(), database.connection(), database.connection() as connection:
        await end_other_sessions(connection)
        survivor = await backend(connection)
    async with database.connection() as connection, database.connection() as other, database.connection() as third:
        pids = {await backend(one) for one in (connection, other, third)}
    assert len(pids) == 3
    assert survivor in pids


async def test_connection_that_was_idle_for_long_is_asked_first(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose server is silent, as behind a firewall that forgot it, is dropped after a bounded wait."""
    async with database.connection() as connection, database.connection() as other:
        silent = await backend(connection)
        await backend(other)
    monkeypatch.setattr(database_module, "_LONG_IDLE_SECONDS", 0.0)
    monkeypatch.setattr(database_module, "_CHECK_SECONDS", 0.05)
    monkeypatch.setattr(trio_connection, "CANCEL_SECONDS", 0.05)
    os.kill(silent, signal.SIGSTOP)
    try:
        with trio.fail_after(20):
            async with database.connection() as connection, database.connection() as other:
                assert silent not in (await backend(connection), await backend(other))
    finally:
        os.kill(silent, signal.SIGCONT)


async def test_connection_lost_in_use_is_unavailable(database: Database) -> None:
    """A lost connection is told apart from an error of a statement."""

    async def lose() -> None:
        async with database.connection() as connection:
            async with database.connection() as other:
                await end_other_sessions(other)
            await connection.execute("SELECT 1")

    with pytest.raises(DatabaseUnavailable):
        await lose()
    with pytest.raises(psycopg.errors.DivisionByZero):
        async with database.connection() as connection:
            await connection.execute("SELECT 1/0")


async def test_cancelled_request_rolls_back_and_the_pool_is_whole(database: Database) -> None:
    """A request whose client went away leaves nothing behind, and its connection can be lent again."""
    async with trio.open_nursery() as nursery:
        started = trio.Event()

        async def request() -> None:
            async with database.transaction() as connection:
                await connection.execute(ADD_READER)
                started.set()
                await connection.execute("SELECT pg_sleep(10)")

        nursery.start_soon(request)
        await started.wait()
        await trio.testing.wait_all_tasks_blocked()
        before = trio.current_time()
        nursery.cancel_scope.cancel()
    assert trio.current_time() - before < 1.5
    async with database.connection() as connection:
        assert await readers(connection) == 1
        async with connection.transaction():
            assert await readers(connection) == 1


async def test_closed_pool_leaves_no_session_behind(database_url: str, postgres_conninfo: str) -> None:
    """Lent ones are closed as they come back."""
    async with open_database(database_url) as database:
        lent = database.connection()
        connection = await lent.__aenter__()
        async with database.connection():
            pass
    await lent.__aexit__(None, None, None)
    assert connection.closed
    async with await TrioConnection.connect(postgres_conninfo, autocommit=True) as watcher:
        name = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
        with trio.fail_after(20):
            while await (
                await watcher.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = %s", (name,))
            ).fetchone() != (0,):
                pass


@contextlib.asynccontextmanager
async def false_server(answer: bytes, then: bytes = b"") -> AsyncIterator[str]:
    """Something that speaks just enough of the protocol: an answer to the first message, another to the second."""

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            if len(await stream.receive_some(4096)) == 8:  # asks for TLS or GSS first
                await stream.send_all(b"N")
                await stream.receive_some(4096)
            await stream.send_all(answer)
            if then and await stream.receive_some(4096):
                await stream.send_all(then)

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        port = listener.socket.getsockname()[1]
        yield make_conninfo(
            "", host="127.0.0.1", port=port, user="reader", password="s3cret", dbname="x", gssencmode="disable"
        )
        nursery.cancel_scope.cancel()


def message(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


AUTHENTICATED = message(b"R", (0).to_bytes(4, "big"))
ASK_PASSWORD = message(b"R", (3).to_bytes(4, "big"))
READY = message(b"Z", b"I")


def version_is(text: bytes) -> bytes:
    return AUTHENTICATED + message(b"S", b"server_version\0" + text + b"\0") + READY


async def open_and_close(url: Secret | str) -> None:
    async with open_database(url):
        pass


@pytest.mark.parametrize("version", [b"14.19", b"9.6.24", b"19beta1"])
async def test_server_of_another_version_is_refused(version: bytes) -> None:
    """INTERFACE.md: 15 to 18; anything else is detected and refused."""
    async with false_server(version_is(version)) as url:
        with pytest.raises(DatabaseRefused, match="15 to 18 are supported"):
            await open_and_close(url)


async def test_wrong_password_is_told_without_the_password() -> None:
    """OPS-001: neither the password nor the URL is in any text of the error."""
    failure = message(b"E", b'SFATAL\0C28P01\0Mpassword authentication failed for user "reader"\0\0')
    async with false_server(ASK_PASSWORD, failure) as url:
        with pytest.raises(DatabaseUnavailable, match="password authentication failed") as caught:
            await open_and_close(Secret(url))
    assert_hidden(caught.value, "s3cret", url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://reader:s3cret/with/slashes@host/db",
        "postgresql://reader:s3cret@host:port/db",
        "postgresql://reader:s3cret%zz@host/db",
        "host=localhost password='s3cret",
        "mysql://reader:s3cret@host/db",
        "postgresql://reader:s3cret@host/db?nonsense=1",
    ],
)
async def test_unreadable_url_is_refused_without_its_text(url: str) -> None:
    """OPS-001: libpq quotes what it could not read; we do not."""
    with pytest.raises(DatabaseRefused, match="cannot be read") as caught:
        await open_and_close(Secret(url))
    assert_hidden(caught.value, "s3cret", url)


async def test_refused_connection_is_unavailable() -> None:
    """OPS-001: nobody listens there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = make_conninfo("", host="127.0.0.1", port=taken.getsockname()[1], password="s3cret")
        with pytest.raises(DatabaseUnavailable, match="refused") as caught:
            await open_and_close(url)
    assert_hidden(caught.value, "s3cret", url)


def assert_hidden(error: BaseException | None, *texts: str) -> None:
    """None of the texts is in the error or in what a traceback would show of its causes."""
    while error is not None:
        for text in texts:
            assert text not in f"{error} {error!r}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


class ForgetfulConnection(TrioConnection):
    """As behind a pooler in transaction mode: each transaction may get another session."""

    async def execute(self, *arguments: Any, **options: Any) -> Any:
        """Forget the mark as soon as it was set."""
        cursor = await super().execute(*arguments, **options)
        if "bookmark_appliance.mark', %s" in arguments[0]:
            await super().execute("SELECT set_config('bookmark_appliance.mark', '', FALSE)")
        return cursor


async def test_pooler_that_changes_the_session_is_refused(database_url: str) -> None:
    """INTERFACE.md: what was set in one transaction is not there in the next one."""
    with pytest.raises(DatabaseRefused, match="transaction mode"):
        async with open_database(database_url, connection_class=ForgetfulConnection):
            pass


async def test_pooler_that_shares_a_session_is_refused(database: Database) -> None:
    """INTERFACE.md: two connections of ours turn out to be one session of the server."""
    async with database.connection() as connection:
        with pytest.raises(DatabaseRefused, match="transaction mode"):
            await refuse_shared_sessions(connection, connection)
