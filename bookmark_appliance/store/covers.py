"""The rows of the covers that we keep, and which Series points at which (COV-011 to COV-017, COV-031).

Bytes lie in files, which no transaction covers. So whoever puts a file in place or takes one away holds the lock of its
address meanwhile, until the end of the transaction that writes the row.
"""

from dataclasses import dataclass
from typing import Final

from psycopg import AsyncConnection

from bookmark_appliance.series_key import SeriesKey

RECLAIM_LOCK: Final = 0x626D_6170_0000_0002
"""Key of the advisory lock that every reclaim shares: who holds it alone (a backup) keeps all files where they are."""

_ADDRESS_LOCKS: Final = 0x636F_7672
"""The first half of the advisory locks of addresses, 'covr'; keys of two halves are a space of their own."""


@dataclass(frozen=True, slots=True)
class StoredCover:
    """A row as it is, whoever wrote it: `path` is relative to the cover folder."""

    path: str
    content_type: str


async def lock_address(connection: AsyncConnection, address: str) -> None:
    """Keep every other process from this address's file and row until the transaction ends.

    To be taken before any row is locked, one address a transaction: addresses that share a lock wait for each other.
    """
    half = int.from_bytes(bytes.fromhex(address[:8]), signed=True)
    await connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (_ADDRESS_LOCKS, half))


async def find_cover(connection: AsyncConnection, address: str) -> StoredCover | None:
    """The row of `address`."""
    cursor = await connection.execute("SELECT path, content_type FROM covers WHERE address = %s", (address,))
    row = await cursor.fetchone()
    return None if row is None else StoredCover(*row)


async def record_cover(
    connection: AsyncConnection, key: SeriesKey, address: str, cover: StoredCover, *, source: str, replaces: bool
) -> str:
    """Write the row, and let the Series point at it while it points at none (COV-015), or in any case (COV-014).

    The Series keeps `source` to heal from. Returns the address that may have lost its last Series by this: the one
    that was replaced, or this one where the Series has another one or is gone; empty when there is none.
    """
    await connection.execute(
        """
        INSERT INTO covers (address, path, content_type)
        VALUES (%s, %s, %s)
        ON CONFLICT (address) DO UPDATE
        SET path = excluded.path,
            content_type = excluded.content_type
        """,
        (address, cover.path, cover.content_type),
    )
    cursor = await connection.execute(
        """
        UPDATE series
        SET cover_address = %(address)s,
            cover = %(source)s
        FROM (
            SELECT site, series_id, cover_address
            FROM series
            WHERE site = %(site)s
                AND series_id = %(series_id)s
            FOR NO KEY UPDATE
        ) AS before
        WHERE series.site = before.site
            AND series.series_id = before.series_id
            AND (%(replaces)s OR before.cover_address IN ('', %(address)s))
        RETURNING before.cover_address
        """,
        {
            "address": address,
            "source": source,
            "site": key.site,
            "series_id": key.series_id,
            "replaces": replaces,
        },
    )
    row = await cursor.fetchone()
    lost: str = address if row is None else row[0]
    return "" if row is not None and lost == address else lost


async def adopt_cover(connection: AsyncConnection, key: SeriesKey, address: str) -> bool:
    """Let a Series without an address point at a cover that is stored already (COV-011)."""
    cursor = await connection.execute(
        """
        UPDATE series
        SET cover_address = %(address)s
        WHERE site = %(site)s
            AND series_id = %(series_id)s
            AND cover_address = ''
            AND EXISTS (SELECT FROM covers WHERE address = %(address)s)
        """,
        {"address": address, "site": key.site, "series_id": key.series_id},
    )
    return cursor.rowcount == 1


async def clear_cover(connection: AsyncConnection, address: str) -> list[SeriesKey]:
    """Take the address from every Series that points at it, so that their next Polls heal them (COV-011); which ones.

    On a connection in autocommit mode: the triggers of several held Series in one transaction could deadlock.
    """
    cursor = await connection.execute("SELECT site, series_id FROM series WHERE cover_address = %s", (address,))
    keys = [SeriesKey(*row) for row in await cursor.fetchall()]
    for key in keys:
        await connection.execute(
            """
            UPDATE series
            SET cover_address = ''
            WHERE site = %s
                AND series_id = %s
                AND cover_address = %s
            """,
            (key.site, key.series_id, address),
        )
    return keys


async def delete_unused(connection: AsyncConnection, address: str) -> bool:
    """Delete the row of an address that no Series points at (COV-031); False when one does.

    The caller holds the address's lock, so that none can come to point at it before the file is gone as well.
    """
    cursor = await connection.execute("SELECT EXISTS (SELECT FROM series WHERE cover_address = %s)", (address,))
    row = await cursor.fetchone()
    if row is None or row[0]:
        return False
    await connection.execute("DELETE FROM covers WHERE address = %s", (address,))
    return True


async def may_reclaim(connection: AsyncConnection) -> bool:
    """Share RECLAIM_LOCK until the transaction ends; False when somebody holds reclaim off."""
    cursor = await connection.execute("SELECT pg_try_advisory_xact_lock_shared(%s)", (RECLAIM_LOCK,))
    row = await cursor.fetchone()
    return row is not None and bool(row[0])


async def addresses_under(connection: AsyncConnection, prefix: str) -> set[str]:
    """Every recorded address that begins with these two characters."""
    cursor = await connection.execute("SELECT address FROM covers WHERE left(address, 2) = %s", (prefix,))
    return {address for (address,) in await cursor.fetchall()}
