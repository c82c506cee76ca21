"""Browser sessions. Ids stand in clear, as the earlier deployment wrote them, whose rows go on working (SES-001)."""

from typing import Final

from psycopg.rows import class_row

from bookmark_appliance.clock import DAY_MS
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.store.readers import Reader

SESSION_MS: Final = 60 * DAY_MS
"""SES-002."""


async def find_session(connection: TrioConnection, session_id: str, now_ms: int) -> Reader | None:
    """The Reader of a live session. One that has expired is deleted on the way out (SES-005)."""
    async with connection.cursor(row_factory=class_row(Reader)) as cursor:
        await cursor.execute(
            """
            SELECT readers.id, discord_id, token_epoch AS epoch
            FROM sessions
            JOIN readers ON readers.id = reader_id
            WHERE sessions.id = %s
                AND expires_at > to_timestamp(%s / 1000.0)
            """,
            (session_id, now_ms),
        )
        reader = await cursor.fetchone()
    if reader is None:
        await connection.execute(
            "DELETE FROM sessions WHERE id = %s AND expires_at <= to_timestamp(%s / 1000.0)", (session_id, now_ms)
        )
    return reader


async def create_session(connection: TrioConnection, session_id: str, reader_id: int, now_ms: int) -> None:
    """Write a session that lasts SESSION_MS, and sweep those that have expired (SES-006)."""
    await connection.execute("DELETE FROM sessions WHERE expires_at <= to_timestamp(%s / 1000.0)", (now_ms,))
    await connection.execute(
        """
        INSERT INTO sessions (id, reader_id, created_at, expires_at)
        VALUES (%s, %s, to_timestamp(%s / 1000.0), to_timestamp(%s / 1000.0))
        """,
        (session_id, reader_id, now_ms, now_ms + SESSION_MS),
    )


async def delete_session(connection: TrioConnection, session_id: str) -> None:
    """End one session; an unknown id is no error (SES-007)."""
    await connection.execute("DELETE FROM sessions WHERE id = %s", (session_id,))
