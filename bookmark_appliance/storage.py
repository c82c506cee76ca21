"""The storage of a command: its database, started if it is ours, brought up to date, with the owner and the key."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

import trio

from bookmark_appliance.config import Settings
from bookmark_appliance.data_folder import settle_token_key
from bookmark_appliance.database import Database, open_database
from bookmark_appliance.embedded_postgres import embedded_postgres
from bookmark_appliance.postgres.lock_session import LockSession, open_lock_session
from bookmark_appliance.postgres.migrations import migrate
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.store.readers import count_readers, seed_owner


@dataclass(frozen=True, slots=True)
class Storage:
    """`settings` hold the signing key that this database is used with.

    `wait_lost` returns when a database server of our own has ended by itself, and never where it is not ours.
    """

    database: Database
    settings: Settings
    schema_version: int
    wait_lost: Callable[[], Awaitable[None]]
    open_session: Callable[[], AbstractAsyncContextManager[LockSession]]
    """A session of one's own, outside the pool, for locks and notifications."""


@asynccontextmanager
async def open_storage(settings: Settings, *, serve: bool = False, pool_size: int = 2) -> AsyncIterator[Storage]:
    """Reach the database of `settings`, migrate it, seed the owner (OPS-001); close it all at the end, Postgres last.

    A database whose Readers rest on a key that is missing is left as it was found. `serve` tells whether we are the one
    that serves this data folder. Raises DatabaseError and SettingsError.
    """
    async with AsyncExitStack() as stack:
        if settings.database_url is None:
            server = await stack.enter_async_context(embedded_postgres(settings.data_dir, serve=serve))
            url, wait_lost = server.conninfo, server.wait_ended
        else:
            url, wait_lost = settings.database_url.reveal(), trio.sleep_forever
        settled = settings

        async def settle(connection: TrioConnection) -> None:
            nonlocal settled
            settled = settle_token_key(settings, readers=await count_readers(connection))

        async def seed(connection: TrioConnection) -> None:
            await seed_owner(connection, settled.owner_discord_id, settled.token_key)

        version = await migrate(url, seed, admit=settle)
        database = await stack.enter_async_context(open_database(url, pool_size=pool_size))
        yield Storage(database, settled, version, wait_lost, partial(open_lock_session, url))
