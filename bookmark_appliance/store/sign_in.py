"""What a sign-in rests on between two requests: OAuth states, sign-in links, and who failed of late.

Rows, since every process must know them, and after a restart too. Each table is swept as it is written to.
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bookmark_appliance.clock import MINUTE_MS
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.secret import Secret

TOKEN_MS: Final = 10 * MINUTE_MS
"""How long a state and a link are good for (SES-015, SES-027)."""

MOST_LIVE: Final = 256
"""States (SES-016); as many links."""

MOST_CLIENTS: Final = 10_000
"""Whose failures are kept: those who failed last."""

_LOCKS: Final = 0x7369_676E
"""The first half of this module's advisory locks, 'sign'; keys of two halves are a space of their own."""


@dataclass(frozen=True, slots=True)
class StateRow:
    """A state that was live, or had expired unseen."""

    browser_sha256: bytes
    expires_at: int

    def is_good(self, browser: str, now_ms: int) -> bool:
        """Whether it is in time and was made for the browser that carries this cookie."""
        same = hmac.compare_digest(self.browser_sha256, _sha256(browser))
        return same and now_ms < self.expires_at


async def add_state(connection: TrioConnection, state: Secret, browser: Secret, now_ms: int) -> None:
    """Keep a state for TOKEN_MS. The expired go, then those nearest to it that would be one too many (SES-016)."""
    await _make_room(connection, "oauth_states", now_ms)
    await connection.execute(
        "INSERT INTO oauth_states (state_sha256, browser_sha256, expires_at) VALUES (%s, %s, %s)",
        (_sha256(state.reveal()), _sha256(browser.reveal()), now_ms + TOKEN_MS),
    )


async def take_state(connection: TrioConnection, state: str) -> StateRow | None:
    """Consume a state: of two who ask at once one gets it. None where there is none."""
    cursor = await connection.execute(
        "DELETE FROM oauth_states WHERE state_sha256 = %s RETURNING browser_sha256, expires_at", (_sha256(state),)
    )
    row = await cursor.fetchone()
    return None if row is None else StateRow(*row)


async def add_link(connection: TrioConnection, token: Secret, reader_id: int, now_ms: int) -> None:
    """Keep a sign-in link of this Reader for TOKEN_MS."""
    await _make_room(connection, "sign_in_links", now_ms)
    await connection.execute(
        "INSERT INTO sign_in_links (token_sha256, reader_id, expires_at) VALUES (%s, %s, %s)",
        (_sha256(token.reveal()), reader_id, now_ms + TOKEN_MS),
    )


async def take_link(connection: TrioConnection, token: str, now_ms: int) -> int | None:
    """Consume a sign-in link: the id of its Reader, or None where there is none or it has expired."""
    cursor = await connection.execute(
        "DELETE FROM sign_in_links WHERE token_sha256 = %s RETURNING reader_id, expires_at", (_sha256(token),)
    )
    row = await cursor.fetchone()
    return row[0] if row is not None and now_ms < row[1] else None


async def lock_failures(connection: TrioConnection, client: str) -> Sequence[int]:
    """When this client failed, the newest first; nobody else changes any failure until the transaction ends."""
    await _lock(connection, "sign_in_failures")
    cursor = await connection.execute("SELECT failed_at FROM sign_in_failures WHERE client = %s", (client,))
    row = await cursor.fetchone()
    return [] if row is None else row[0]


async def write_failures(connection: TrioConnection, client: str, failures: Sequence[int], before_ms: int) -> None:
    """Replace what is known of this client, under the lock of `lock_failures`. Who has none is forgotten (SES-013), and
    so are all who have not failed since `before_ms`."""
    await connection.execute(
        """
        DELETE FROM sign_in_failures
        WHERE client = %(client)s
            OR last_failed_at <= %(before)s
            OR last_failed_at < (
                SELECT last_failed_at
                FROM sign_in_failures
                ORDER BY last_failed_at DESC
                OFFSET %(most)s
                LIMIT 1
            )
        """,
        {"client": client, "before": before_ms, "most": MOST_CLIENTS - 1},
    )
    if failures:
        await connection.execute(
            "INSERT INTO sign_in_failures (client, failed_at, last_failed_at) VALUES (%s, %s, %s)",
            (client, list(failures), failures[0]),
        )


async def _make_room(connection: TrioConnection, table: str, now_ms: int) -> None:
    await _lock(connection, table)
    await connection.execute(
        f"""
        DELETE FROM {table}
        WHERE expires_at <= %s
            OR ctid IN (SELECT ctid FROM {table} ORDER BY expires_at DESC OFFSET %s)
        """.encode(),
        (now_ms, MOST_LIVE - 1),
    )


async def _lock(connection: TrioConnection, table: str) -> None:
    """Let one transaction at a time write to `table`, so that its bounds are exact."""
    await connection.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (_LOCKS, table))


def _sha256(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
