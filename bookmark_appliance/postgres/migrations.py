"""Bring a database to the schema of this code: numbered files, in order, each once (MIG-001).

A database that another deployment left at any version is carried on in place. Two processes that start at once take
turns: the second one finds nothing to do.
"""

import hashlib
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

from bookmark_appliance.postgres.connecting import NO_TIMEOUTS, DatabaseError, DatabaseUnavailable, connect
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.resources import resource_folder
from bookmark_appliance.secret import Secret

logger = logging.getLogger(__name__)

OWNER_IS_SEEDED_AFTER: Final = 3
"""Version 4 attaches what has no Reader to the oldest one, so there must be one by then (MIG-003)."""

_FIRST_CHECKSUM: Final = 21
"""The files before this one were run by an earlier deployment from files of its own."""

_MIGRATION_LOCK: Final = 0x626D_6170_0000_0001
"""Key of the advisory lock; one of ours, 'bmap' and a number."""

_FILE_NAME: Final = re.compile(r"([0-9]{4})_[a-z0-9_]+\.sql", re.ASCII)

Step = Callable[[TrioConnection], Awaitable[None]]


class MigrationRefused(DatabaseError):
    """The files or the database are not in a state from which to go on; nothing was changed."""


class MigrationFailed(DatabaseError):
    """A step failed; the database stands at the version before it."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: its number, its file's name, the statements, and the SHA-256 of the file in hex."""

    version: int
    name: str
    statements: bytes
    checksum: str


def load_migrations(folder: Path | None = None) -> Sequence[Migration]:
    """Every step of this code, in order, from `folder` (by default the one that we ship).

    Raises MigrationRefused on a bad file name, a number that is missing or one that is used twice.
    """
    migrations = []
    for path in sorted((folder or resource_folder("sql") / "migrations").iterdir()):
        match = _FILE_NAME.fullmatch(path.name)
        if match is None:
            raise MigrationRefused(f"migration {path.name!r} is not named like 0001_name.sql")
        content = path.read_bytes()
        migrations.append(Migration(int(match[1]), path.name, content, hashlib.sha256(content).hexdigest()))
    for expected, migration in enumerate(migrations, start=1):
        if migration.version != expected:
            raise MigrationRefused(f"migration {migration.name!r} stands where number {expected:04} should")
    return migrations


def pending(migrations: Sequence[Migration], applied: Mapping[int, str | None]) -> Sequence[Migration]:
    """The steps that are still to be taken, given the recorded versions with their checksums.

    Raises MigrationRefused when the database is newer than the code, when a version is missing between two recorded
    ones, or when a recorded checksum is not that of the file.
    """
    if applied and max(applied) > len(migrations):
        raise MigrationRefused(f"the database is at version {max(applied)}, this code knows {len(migrations)}")
    if set(applied) != set(range(1, len(applied) + 1)):
        raise MigrationRefused(f"the recorded versions have a gap: {sorted(applied)}")
    for migration in migrations[: len(applied)]:
        recorded = applied[migration.version]
        if migration.version >= _FIRST_CHECKSUM and recorded not in (None, migration.checksum):
            raise MigrationRefused(f"migration {migration.name!r} was edited after it had been applied")
    return migrations[len(applied) :]


async def migrate(
    url: Secret | str,
    seed: Step,
    migrations: Sequence[Migration] | None = None,
    *,
    admit: Step | None = None,
) -> int:
    """Take every pending step under an advisory lock, and return the version reached.

    `admit` may look at the database as it was found, and raise to leave it so. `seed` is called with a transaction
    open, on the way past OWNER_IS_SEEDED_AFTER and again at the end of every run: it makes the owner where there is
    none and must be fit for either schema. Raises DatabaseUnavailable, MigrationRefused or MigrationFailed.
    """
    steps = load_migrations() if migrations is None else migrations
    # No timeouts: a step may rewrite a large table, and the other process that we wait for may be taking it.
    connection = await connect(url, NO_TIMEOUTS)
    try:
        await _take_turn(connection)
        applied = await _applied(connection)
        still_to_take = pending(steps, applied)
        if admit is not None:
            await admit(connection)
        return await _run(connection, len(applied), still_to_take, seed)
    except psycopg.Error as error:
        if connection.closed:
            raise DatabaseUnavailable("the connection was lost while migrating") from error
        raise
    finally:
        await connection.close()


async def _take_turn(connection: TrioConnection) -> None:
    """Wait for the lock, which belongs to the session and ends with it."""
    cursor = await connection.execute("SELECT pg_try_advisory_lock(%s)", (_MIGRATION_LOCK,))
    if await cursor.fetchone() != (True,):
        logger.info("waiting for another process that migrates this database")
        await connection.execute("SELECT pg_advisory_lock(%s)", (_MIGRATION_LOCK,))


async def _run(connection: TrioConnection, version: int, migrations: Sequence[Migration], seed: Step) -> int:
    for migration in migrations:
        if version == OWNER_IS_SEEDED_AFTER:
            async with connection.transaction():
                await seed(connection)
        await _apply(connection, migration)
        version = migration.version
    if version >= OWNER_IS_SEEDED_AFTER:
        async with connection.transaction():
            await seed(connection)
    return version


async def _applied(connection: TrioConnection) -> dict[int, str | None]:
    await connection.execute(
        """
        CREATE TABLE IF NOT EXISTS schema_migrations (
            version bigint PRIMARY KEY,
            applied_at timestamptz NOT NULL DEFAULT now()
        )
        """
    )
    # The column came with version 21; a row as JSON has it or has it not, without an error.
    cursor = await connection.execute(
        """
        SELECT version, to_jsonb(schema_migrations) ->> 'checksum'
        FROM schema_migrations
        """
    )
    return {version: checksum async for version, checksum in cursor}


async def _apply(connection: TrioConnection, migration: Migration) -> None:
    try:
        async with connection.transaction():
            await connection.execute(migration.statements)
            if migration.version >= _FIRST_CHECKSUM:
                await connection.execute(
                    "INSERT INTO schema_migrations (version, checksum) VALUES (%s, %s)",
                    (migration.version, migration.checksum),
                )
            else:
                await connection.execute("INSERT INTO schema_migrations (version) VALUES (%s)", (migration.version,))
    except psycopg.Error as error:
        if connection.closed:
            raise
        raise MigrationFailed(f"migration {migration.name!r} failed: {error}") from error
    logger.info("applied migration %s", migration.name)
