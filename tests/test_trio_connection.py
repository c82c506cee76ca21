"""The contract with psycopg: every seam that TrioConnection rests on, against a real server (TRAPS 15, 16, 32)."""

import gc
import socket
import threading
from collections.abc import AsyncIterator

import psycopg
import pytest
import trio
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

from bookmark_appliance.database import Database
from bookmark_appliance.postgres import trio_connection
from bookmark_appliance.postgres.trio_connection import TrioConnection
from tests.blocking_connection import BlockingConnection


@pytest.fixture(params=[TrioConnection, BlockingConnection], ids=["trio", "blocking"])
async def connection(request: pytest.FixtureRequest, empty_database_url: str) -> AsyncIterator[TrioConnection]:
    """A connection in autocommit mode, once for either waiter."""
    opened = await request.param.connect(empty_database_url, autocommit=True)
    await opened.execute("CREATE TABLE numbers (n bigint PRIMARY KEY)")
    yield opened
    await opened.close()


@pytest.fixture
async def native(empty_database_url: str) -> AsyncIterator[TrioConnection]:
    """A connection that waits with Trio."""
    opened = await TrioConnection.connect(empty_database_url, autocommit=True)
    await opened.execute("CREATE TABLE numbers (n bigint PRIMARY KEY)")
    yield opened
    await opened.close()


async def insert_in_one_transaction(connection: TrioConnection, *numbers: int) -> None:
    async with connection.transaction():
        for number in numbers:
            await connection.execute("INSERT INTO numbers VALUES (%s)", (number,))


async def rows(connection: TrioConnection) -> list[int]:
    return [n async for (n,) in await connection.execute("SELECT n FROM numbers ORDER BY n")]


async def server_is_busy(conninfo: str, words: str) -> bool:
    """Whether some other session runs a statement that holds these words."""
    async with await TrioConnection.connect(conninfo, autocommit=True) as watcher:
        cursor = await watcher.execute(
            """
            SELECT count(*)
            FROM pg_stat_activity
            WHERE state = 'active' AND pid <> pg_backend_pid() AND position(%s IN query) > 0
            """,
            (words,),
        )
        return await cursor.fetchone() != (0,)


async def until_busy(conninfo: str, words: str, *, busy: bool = True) -> None:
    with trio.fail_after(20):
        while await server_is_busy(conninfo, words) is not busy:
            pass


async def test_transaction_commits_and_rolls_back(connection: TrioConnection) -> None:
    await insert_in_one_transaction(connection, 1)
    with pytest.raises(psycopg.errors.UniqueViolation):
        await insert_in_one_transaction(connection, 2, 1)
    assert await rows(connection) == [1]
    assert connection.info.transaction_status == TransactionStatus.IDLE


async def test_savepoint_undoes_only_what_came_after_it(connection: TrioConnection) -> None:
    async with connection.transaction():
        await connection.execute("INSERT INTO numbers VALUES (1)")
        async with connection.transaction(force_rollback=True):
            await connection.execute("INSERT INTO numbers VALUES (2)")
    assert await rows(connection) == [1]


async def test_pipeline_returns_every_result(connection: TrioConnection) -> None:
    async with connection.pipeline(), connection.transaction():
        cursors = [await connection.execute("SELECT %s::int", (n,)) for n in range(500)]
        await connection.execute("INSERT INTO numbers VALUES (1)")
    assert [await cursor.fetchone() for cursor in cursors] == [(n,) for n in range(500)]
    assert await rows(connection) == [1]


async def test_pipeline_fuller_than_the_socket_does_not_hang(connection: TrioConnection) -> None:
    """TRAPS 32: with both buffers full, only a wait for both directions at once gets on."""
    megabyte = "x" * 1_000_000
    with trio.fail_after(20):
        async with connection.pipeline():
            cursors = [await connection.execute("SELECT %s::text", (megabyte,)) for _ in range(20)]
        assert [len((await cursor.fetchone() or ("",))[0]) for cursor in cursors] == [1_000_000] * 20


async def test_copy_in_and_out(connection: TrioConnection) -> None:
    count = 50_000
    async with connection.cursor() as cursor:
        async with cursor.copy("COPY numbers FROM STDIN") as incoming:
            for n in range(count):
                await incoming.write_row((n,))
        async with cursor.copy("COPY (SELECT n FROM numbers ORDER BY n) TO STDOUT") as outgoing:
            received = b"".join([bytes(block) async for block in outgoing])
    assert received == b"".join(b"%d\n" % n for n in range(count))


async def test_server_cursor_reads_in_parts(connection: TrioConnection) -> None:
    async with connection.transaction(), connection.cursor("parts") as cursor:
        await cursor.execute("SELECT generate_series(1, 1000)")
        cursor.itersize = 64
        assert [n async for (n,) in cursor] == list(range(1, 1001))


async def test_executemany_and_row_factories(connection: TrioConnection) -> None:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.executemany("INSERT INTO numbers VALUES (%s)", [(n,) for n in range(100)])
        await cursor.execute("SELECT max(n) AS most FROM numbers")
        assert await cursor.fetchone() == {"most": 99}


async def test_notifications_are_handed_over(native: TrioConnection, empty_database_url: str) -> None:
    heard: list[psycopg.Notify] = []
    native.add_notify_handler(heard.append)
    await native.execute("LISTEN news")
    async with await TrioConnection.connect(empty_database_url, autocommit=True) as sender:
        await sender.execute("NOTIFY news, 'one'")
    with trio.fail_after(20):
        while not heard:
            await native.wait_for_notifications()
    assert [(notify.channel, notify.payload) for notify in heard] == [("news", "one")]


async def test_waiting_for_notifications_is_cancellable_and_leaves_the_connection_whole(
    native: TrioConnection,
) -> None:
    await native.execute("LISTEN news")
    with trio.move_on_after(0.01) as scope:
        await native.wait_for_notifications()
    assert scope.cancelled_caught
    assert await rows(native) == []


async def test_psycopgs_own_notification_generator_ends_by_its_timeout(native: TrioConnection) -> None:
    await native.execute("LISTEN news")
    await native.execute("NOTIFY news")
    heard = [notify.channel async for notify in native.notifies(timeout=0.05)]
    assert heard == ["news"]


async def test_cancelled_query_ends_here_and_at_the_server(native: TrioConnection, empty_database_url: str) -> None:
    """TRAPS 16: a query of 10 s ends at once, its connection goes on, no thread is left.

    Within some 10 ms on a quiet machine; the bound leaves room for a busy one.
    """
    threads = threading.active_count()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(native.execute, "SELECT pg_sleep(10)")
        await until_busy(empty_database_url, "pg_sleep(10)")
        before = trio.current_time()
        nursery.cancel_scope.cancel()
    assert trio.current_time() - before < 1.5
    await until_busy(empty_database_url, "pg_sleep(10)", busy=False)
    assert await rows(native) == []
    assert threading.active_count() == threads


async def test_cancelled_transaction_rolls_back_and_leaves_the_connection_whole(
    native: TrioConnection, empty_database_url: str
) -> None:
    async def insert_and_wait() -> None:
        async with native.transaction(), native.transaction():
            await native.execute("INSERT INTO numbers VALUES (1)")
            await native.execute("SELECT pg_sleep(10)")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(insert_and_wait)
        await until_busy(empty_database_url, "pg_sleep(10)")
        nursery.cancel_scope.cancel()
    assert native.info.transaction_status == TransactionStatus.IDLE
    async with native.transaction():
        await native.execute("INSERT INTO numbers VALUES (2)")
    assert await rows(native) == [2]


async def test_transaction_cancelled_at_its_end_rolls_back(connection: TrioConnection) -> None:
    with trio.CancelScope() as scope:
        async with connection.transaction():
            await connection.execute("INSERT INTO numbers VALUES (1)")
            scope.cancel()
    assert scope.cancelled_caught
    assert await rows(connection) == []


async def test_query_in_a_cancelled_scope_is_never_sent(connection: TrioConnection) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await connection.execute("INSERT INTO numbers VALUES (1)")
    assert scope.cancelled_caught
    assert await rows(connection) == []


async def test_sent_commit_is_awaited_although_cancelled(native: TrioConnection, empty_database_url: str) -> None:
    """The COMMIT is held up at the server by a deferred trigger, the scope is cancelled, and the row is there."""
    await native.execute(
        """
        CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END $$
        """
    )
    await native.execute(
        """
        CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON numbers
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION linger()
        """
    )

    async def insert() -> None:
        async with native.transaction():
            await native.execute("INSERT INTO numbers VALUES (1)")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(insert)
        await until_busy(empty_database_url, "COMMIT")
        nursery.cancel_scope.cancel()
    assert await rows(native) == [1]


async def test_edge_that_never_ends_closes_the_connection(
    native: TrioConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A COMMIT without an answer has an end of its own, after which the connection is not used again."""
    monkeypatch.setattr(trio_connection, "TRANSACTION_EDGE_SECONDS", 0.05)
    monkeypatch.setattr(trio_connection, "CANCEL_SECONDS", 0.0)
    await native.execute("CREATE TABLE slow (n int)")
    await native.execute(
        """
        CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(10); RETURN NULL; END $$
        """
    )
    await native.execute(
        """
        CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON slow
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION linger()
        """
    )
    with pytest.raises(psycopg.OperationalError, match="could not be ended in time"):
        async with native.transaction():
            await native.execute("INSERT INTO slow VALUES (1)")
    assert native.closed


async def test_cancelled_pipeline_discards_its_connection(native: TrioConnection, empty_database_url: str) -> None:
    async def run() -> None:
        async with native.pipeline() as pipeline:
            await native.execute("SELECT pg_sleep(10)")
            await pipeline.sync()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await until_busy(empty_database_url, "pg_sleep(10)")
        nursery.cancel_scope.cancel()
    await until_busy(empty_database_url, "pg_sleep(10)", busy=False)
    assert native.closed


@pytest.mark.parametrize(
    "statement", ["COPY (SELECT generate_series(1, 50000000)) TO STDOUT", "COPY numbers FROM STDIN"]
)
async def test_cancelled_copy_ends_at_the_server(
    native: TrioConnection, empty_database_url: str, statement: str
) -> None:
    with trio.CancelScope() as scope:
        async with native.cursor() as cursor, cursor.copy(statement) as copy:
            if "STDIN" in statement:
                await copy.write_row((1,))
            else:
                await copy.read()
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    await until_busy(empty_database_url, "COPY", busy=False)
    if not native.closed:
        assert native.info.transaction_status == TransactionStatus.IDLE
        assert await rows(native) == []


async def test_two_tasks_take_turns_on_one_connection(native: TrioConnection) -> None:
    results: list[int] = []

    async def ask(number: int) -> None:
        row = await (await native.execute("SELECT %s::int, pg_sleep(0.01)", (number,))).fetchone()
        assert row is not None
        results.append(row[0])

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(ask, number)
    assert sorted(results) == list(range(5))


async def test_close_wakes_a_task_that_waits(empty_database_url: str) -> None:
    connection = await TrioConnection.connect(empty_database_url, autocommit=True)

    async def wait() -> None:
        with pytest.raises(psycopg.OperationalError):
            await connection.wait_for_notifications()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        await connection.close()


async def test_long_copy_lets_other_tasks_run(native: TrioConnection) -> None:
    """Generators that never block must not keep the loop."""
    turns = 0
    with trio.CancelScope() as scope:

        async def count() -> None:
            nonlocal turns
            while True:
                await trio.lowlevel.checkpoint()
                turns += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(count)
            async with native.cursor() as cursor, cursor.copy("COPY numbers FROM STDIN") as copy:
                for n in range(20_000):
                    await copy.write_row((n,))
            scope.cancel()
    assert turns > 2


async def test_connection_refused_is_told_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refuses
        port = taken.getsockname()[1]
        with pytest.raises(psycopg.OperationalError, match="refused"):
            await TrioConnection.connect(make_conninfo(host="127.0.0.1", port=port, user="x", password="s3cret"))


async def test_silent_server_ends_in_a_timeout() -> None:
    """The limit is libpq's own `connect_timeout`, two seconds at the least."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        conninfo = make_conninfo(host="127.0.0.1", port=silent.getsockname()[1], connect_timeout=2, password="s3cret")
        before = trio.current_time()
        with pytest.raises(psycopg.errors.ConnectionTimeout) as caught:
            await TrioConnection.connect(conninfo)
        assert 1.9 < trio.current_time() - before < 8
        assert "s3cret" not in repr(caught.value)


async def test_connecting_is_cancellable() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with trio.move_on_after(0.05) as scope:
            await TrioConnection.connect(make_conninfo(host="127.0.0.1", port=silent.getsockname()[1]))
        assert scope.cancelled_caught


async def test_host_names_are_resolved_and_every_address_tried() -> None:
    """A name goes through Trio's resolver; the addresses that refuse are passed over for the next host."""
    with socket.socket() as taken, socket.socket() as silent:
        taken.bind(("127.0.0.1", 0))
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        ports = f"{taken.getsockname()[1]},{silent.getsockname()[1]}"
        accepted = trio.Event()

        async def accept() -> None:
            await trio.lowlevel.wait_readable(silent)
            accepted.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(accept)
            with trio.move_on_after(20) as scope:
                nursery.start_soon(TrioConnection.connect, make_conninfo(host="localhost,127.0.0.1", port=ports))
                await accepted.wait()
            assert not scope.cancelled_caught
            nursery.cancel_scope.cancel()


async def test_unknown_host_name_is_told() -> None:
    with pytest.raises(psycopg.OperationalError, match="does not resolve"):
        await TrioConnection.connect(make_conninfo(host="no-such-host.invalid", password="s3cret"))


async def test_no_connection_is_left_to_the_garbage_collector(empty_database_url: str) -> None:
    """psycopg warns of those, and warnings are errors here."""
    for _ in range(3):
        connection = await TrioConnection.connect(empty_database_url)
        await connection.close()
    del connection
    gc.collect()


async def test_clock_stands_still_while_a_blocking_query_runs(
    blocking_database: Database, autojump_clock: trio.testing.MockClock
) -> None:
    """TRAPS 22: a day of sleep beside a query of 50 ms; the query takes no virtual time, the sleep no real one."""
    async with trio.open_nursery() as nursery, blocking_database.connection() as connection:
        nursery.start_soon(trio.sleep, 86_400)
        before = trio.current_time()
        await connection.execute("SELECT pg_sleep(0.05)")
        assert trio.current_time() == before
    assert trio.current_time() == before + 86_400
