"""From settings to a database that is ready: reached, keyed, migrated, with its owner in it (OPS-001)."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from bookmark_appliance.data_folder import prepare_folders, settle_token_key
from bookmark_appliance.database import Database, open_database
from bookmark_appliance.embedded_postgres import EmbeddedPostgres, embedded_postgres
from bookmark_appliance.migrations import migrate
from bookmark_appliance.secret import Secret
from bookmark_appliance.settings import Settings
from bookmark_appliance.store.readers import count_readers, seed_owner
from bookmark_appliance.trio_connection import TrioConnection


@dataclass(frozen=True, slots=True)
class StartedDatabase:
    """A database in use. `settings` are those given, with the signing key that belongs to it."""

    database: Database
    settings: Settings
    url: Secret | str
    version: int
    """Of the schema."""
    server: EmbeddedPostgres | None


@asynccontextmanager
async def started_database(
    settings: Settings, *, serve: bool = False, pool_size: int = 2
) -> AsyncIterator[StartedDatabase]:
    """The database of these settings for a block: an external one, or the embedded one, joined or started.

    `serve` is for the one process that serves. Raises SettingsError, and of DatabaseError whatever ends a start.
    """
    async with AsyncExitStack() as stack:
        prepare_folders(settings)
        server: EmbeddedPostgres | None = None
        if settings.database_url is None:
            server = await stack.enter_async_context(embedded_postgres(settings.data_dir, serve=serve))
        url = settings.database_url or (server.conninfo if server else "")
        database = await stack.enter_async_context(open_database(url, pool_size=pool_size))
        async with database.connection() as connection:
            readers = await count_readers(connection)
        settled = settle_token_key(settings, readers=readers)

        async def seed(connection: TrioConnection) -> None:
            await seed_owner(connection, settled.owner_discord_id, settled.token_key)

        version = await migrate(url, seed)
        yield StartedDatabase(database, settled, url, version, server)


async def bring_up_to_date(settings: Settings) -> int:
    """Take every pending migration; the version reached. Raises what `started_database` raises."""
    async with started_database(settings) as started:
        return started.version
