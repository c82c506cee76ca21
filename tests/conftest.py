"""What tests of every room share: a real PostgreSQL, a fresh database for each test, a Reader to start from.

database             a pool on a fresh, migrated database, waited for with Trio
blocking_database    the same through the blocking waiter: for tests under `autojump_clock`
database_url         the address of that database, for what opens its own connections
empty_database_url   a database without a table
make_reader          adds a Reader to an open connection
owner_discord_id     the owner's id in `database`; token_key the key that credentials there are derived from
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from uuid import uuid4

import psycopg
import pytest
import trio
from psycopg.conninfo import make_conninfo

from bookmark_appliance.database import Database, open_database
from bookmark_appliance.embedded_postgres import EmbeddedPostgres
from bookmark_appliance.log import PACKAGE
from bookmark_appliance.postgres.migrations import migrate
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.secret import Secret
from bookmark_appliance.store.readers import Reader, add_reader, seed_owner
from tests.blocking_connection import BlockingConnection
from tests.open_folder import open_folder

_TOKEN_KEY = Secret("a token key for tests, 32 characters or more")
_OWNER_DISCORD_ID = "100000000000000001"

# Nothing here outlives the run. A simulated day of Polls takes minutes, so what they leave behind is cleared up as
# often as in a day.
_QUICK_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum_naptime": "1s",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let each of two workers begin with its half of the simulated days: at the end they would keep one waiting.

    xdist hands every worker an equal run of the list, and lets the idle one take from the other's end.
    """
    days = [item for item in items if "simulated_days" in item.nodeid]
    others = [item for item in items if "simulated_days" not in item.nodeid]
    half = len(items) // 2 - len(days[::2])
    items[:] = days[::2] + others[:half] + days[1::2] + others[half:]


@pytest.fixture(autouse=True)
def logging_as_it_was_found() -> Iterator[None]:
    """Whoever sets up logging in this process, the next test begins as the first one did."""
    root, ours = logging.getLogger(), logging.getLogger(PACKAGE)
    before = root.handlers[:], root.level, ours.level, logging.raiseExceptions
    yield
    root.handlers[:], root.level, ours.level, logging.raiseExceptions = before
    logging.captureWarnings(False)


@pytest.fixture(scope="session")
def postgres_conninfo() -> Iterator[str]:
    """One embedded server for all tests of this process."""
    with open_folder() as folder:
        server = EmbeddedPostgres(folder, serve=True, settings=_QUICK_SETTINGS)
        trio.run(server.start)
        try:
            yield server.conninfo
        finally:
            trio.run(server.stop)


@pytest.fixture(scope="session")
def template_database(postgres_conninfo: str) -> str:
    """The name of a migrated database that holds the owner and nothing else."""

    async def prepare() -> None:
        await migrate(
            make_conninfo(postgres_conninfo, dbname="migrated"),
            lambda connection: seed_owner(connection, _OWNER_DISCORD_ID, _TOKEN_KEY),
        )

    with psycopg.connect(postgres_conninfo, autocommit=True) as connection:
        connection.execute("CREATE DATABASE migrated TEMPLATE template0")
    trio.run(prepare)
    return "migrated"


@pytest.fixture
def database_url(postgres_conninfo: str, template_database: str) -> Iterator[str]:
    """A fresh copy of the template."""
    yield from _new_database(postgres_conninfo, template_database)


@pytest.fixture
def empty_database_url(postgres_conninfo: str) -> Iterator[str]:
    """A database without a table."""
    yield from _new_database(postgres_conninfo, "template0")


_stale: list[str] = []
"""Dropped by the next test: the server waits for a tenth of a second where a session has not quite ended."""


def _new_database(conninfo: str, template: str) -> Iterator[str]:
    name = f"test_{uuid4().hex}"
    with psycopg.connect(conninfo, autocommit=True) as connection:
        while _stale:
            connection.execute(f"DROP DATABASE {_stale.pop()} WITH (FORCE)".encode())
        # Of files on no disk a copy costs less than a log of all their pages.
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY".encode())
    yield make_conninfo(conninfo, dbname=name)
    _stale.append(name)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A pool on a fresh database."""
    async with open_database(database_url) as opened:
        yield opened


@pytest.fixture
async def blocking_database(database_url: str) -> AsyncIterator[Database]:
    """A pool whose queries never let the clock run."""
    async with open_database(database_url, connection_class=BlockingConnection) as opened:
        yield opened


@pytest.fixture
def token_key() -> Secret:
    """The TOKEN_KEY behind the credentials of `database`."""
    return _TOKEN_KEY


@pytest.fixture
def owner_discord_id() -> str:
    """The owner of `database`."""
    return _OWNER_DISCORD_ID


@pytest.fixture
def make_reader(token_key: Secret) -> Callable[[TrioConnection, str], Awaitable[Reader]]:
    """`await make_reader(connection, "1002")` adds a Reader in the connection's transaction."""

    async def make(connection: TrioConnection, discord_id: str) -> Reader:
        return await add_reader(connection, discord_id, token_key)

    return make
