"""Readers: who they are, and the hash of the credential that lets them in."""

from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from bookmark_appliance.credentials import credential_hash, derive_credential
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.secret import Secret


@dataclass(frozen=True, slots=True)
class Reader:
    """One row of `readers`, the hash aside."""

    id: int
    discord_id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class ReaderSummary:
    """What `readers list` shows of one Reader; `sessions` are those that have not expired."""

    discord_id: str
    owner: bool
    epoch: int
    bookmarks: int
    sessions: int
    created_at: datetime


async def seed_owner(connection: TrioConnection, discord_id: str, token_key: Secret) -> None:
    """Make the owner's row where there is none; refresh its hash after a change of key while the epoch is 0.

    TOK-004 to TOK-006. Fit for the schema from version 3 on, which has no epoch yet: a row without one reads as 0.
    """
    digest = credential_hash(derive_credential(token_key, discord_id, 0))
    refreshed = await connection.execute(
        """
        UPDATE readers
        SET token_sha256 = CASE
                WHEN coalesce((to_jsonb(readers) ->> 'token_epoch')::bigint, 0) = 0 THEN %s
                ELSE token_sha256
            END
        WHERE discord_id = %s
        """,
        (digest, discord_id),
    )
    if refreshed.rowcount == 0:
        await connection.execute("INSERT INTO readers (discord_id, token_sha256) VALUES (%s, %s)", (discord_id, digest))


async def count_readers(connection: TrioConnection) -> int:
    """How many Readers there are, whatever version the schema has: none before version 3."""
    row = await (await connection.execute("SELECT to_regclass('readers') IS NOT NULL")).fetchone()
    if row != (True,):
        return 0
    row = await (await connection.execute("SELECT count(*) FROM readers")).fetchone()
    assert row is not None
    return int(row[0])


async def add_reader(connection: TrioConnection, discord_id: str, token_key: Secret) -> Reader:
    """The Reader of this Discord id, made now if there is none. One that exists keeps its hash (TOK-009)."""
    await connection.execute(
        """
        INSERT INTO readers (discord_id, token_sha256)
        SELECT %(discord_id)s, %(digest)s
        WHERE NOT EXISTS (SELECT FROM readers WHERE discord_id = %(discord_id)s)
        ON CONFLICT (discord_id) DO NOTHING
        """,
        {"discord_id": discord_id, "digest": credential_hash(derive_credential(token_key, discord_id, 0))},
    )
    reader = await find_by_discord_id(connection, discord_id)
    assert reader is not None
    return reader


async def find_by_discord_id(connection: TrioConnection, discord_id: str) -> Reader | None:
    """The Reader of this Discord id, or None."""
    async with connection.cursor(row_factory=class_row(Reader)) as cursor:
        await cursor.execute(
            "SELECT id, discord_id, token_epoch AS epoch FROM readers WHERE discord_id = %s", (discord_id,)
        )
        return await cursor.fetchone()


async def list_readers(connection: TrioConnection, owner_discord_id: str, now_ms: int) -> list[ReaderSummary]:
    """Every Reader, the oldest first."""
    async with connection.cursor(row_factory=class_row(ReaderSummary)) as cursor:
        await cursor.execute(
            """
            SELECT discord_id,
                   discord_id = %s AS owner,
                   token_epoch AS epoch,
                   (SELECT count(*) FROM bookmarks WHERE reader_id = readers.id) AS bookmarks,
                   (
                       SELECT count(*)
                       FROM sessions
                       WHERE reader_id = readers.id
                         AND expires_at > to_timestamp(%s / 1000.0)
                   ) AS sessions,
                   created_at
            FROM readers
            ORDER BY id
            """,
            (owner_discord_id, now_ms),
        )
        return await cursor.fetchall()


async def rotate_credential(connection: TrioConnection, discord_id: str, token_key: Secret) -> Secret | None:
    """Raise the Reader's epoch and store the new hash (TOK-007); the new credential, or None for an unknown id.

    The row is locked first, so that two rotations at once give two epochs, and as strongly as the change of a unique
    column needs: a PUT of the same Reader holds its key meanwhile, and a lock that was made stronger in the middle
    would deadlock with it. Sessions stay (SES-009).
    """
    cursor = await connection.execute(
        "SELECT token_epoch + 1 FROM readers WHERE discord_id = %s FOR UPDATE", (discord_id,)
    )
    row = await cursor.fetchone()
    if row is None:
        return None
    (epoch,) = row
    credential = derive_credential(token_key, discord_id, epoch)
    await connection.execute(
        "UPDATE readers SET token_epoch = %s, token_sha256 = %s WHERE discord_id = %s",
        (epoch, credential_hash(credential), discord_id),
    )
    return credential


async def end_sessions(connection: TrioConnection, discord_id: str) -> int | None:
    """Sign the Reader out everywhere; how many sessions ended, or None for an unknown id."""
    if await find_by_discord_id(connection, discord_id) is None:
        return None
    cursor = await connection.execute(
        "DELETE FROM sessions USING readers WHERE readers.id = reader_id AND discord_id = %s", (discord_id,)
    )
    return cursor.rowcount
