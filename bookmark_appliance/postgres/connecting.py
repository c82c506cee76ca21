"""How a connection of ours is made, and which servers it is made to.

DatabaseError
├── DatabaseUnavailable      there is no connection now: refused, lost, or none came free in time (an HTTP 503)
│   └── PoolExhausted        every connection stayed lent for too long
└── DatabaseRefused          this server will not do, whenever it is asked: its version, or a pooler between

What goes wrong with a statement itself stays a psycopg error. No text of these errors holds the connection URL.
"""

import re
from dataclasses import dataclass
from typing import Final

import psycopg

from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.secret import Secret

OLDEST_VERSION: Final = 15
NEWEST_VERSION: Final = 18
"""Majors of PostgreSQL that are tested and accepted (INTERFACE.md)."""

# A peer that vanished is noticed after about 10 + 3 * 5 seconds, on an idle connection and on one with bytes on their
# way. Both ends look: the server keeps the locks of a machine that died for as long as it takes it for alive.
_IDLE_SECONDS: Final = 10
_INTERVAL_SECONDS: Final = 5
_PROBES: Final = 3
_UNANSWERED_MS: Final = 25_000

_CONNECTION_DEFAULTS: Final[dict[str, int | str]] = {
    "application_name": "bookmark-appliance",
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": _IDLE_SECONDS,
    "keepalives_interval": _INTERVAL_SECONDS,
    "keepalives_count": _PROBES,
    "tcp_user_timeout": _UNANSWERED_MS,
}

_SERVER_SIDE: Final[dict[str, int | str]] = {
    "TimeZone": "UTC",
    # Over a Unix socket the server takes them and does nothing.
    "tcp_keepalives_idle": _IDLE_SECONDS,
    "tcp_keepalives_interval": _INTERVAL_SECONDS,
    "tcp_keepalives_count": _PROBES,
    "tcp_user_timeout": _UNANSWERED_MS,
}


class DatabaseError(Exception):
    """The tree is drawn at the head of this module."""


class DatabaseUnavailable(DatabaseError):
    """There is no connection to the database at this moment."""


class PoolExhausted(DatabaseUnavailable):
    """Every connection stayed lent for longer than the caller may wait."""


class DatabaseRefused(DatabaseError):
    """The server can be reached, and is none that we can work with."""


DATABASE_ERRORS: Final = (DatabaseError, psycopg.Error)
"""What a task that goes on without the database catches: no connection, or a statement that failed."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """What the server ends by itself, in milliseconds; 0 is never."""

    statement_ms: int = 15_000
    lock_ms: int = 5_000
    idle_in_transaction_ms: int = 30_000


NO_TIMEOUTS: Final = Timeouts(0, 0, 0)
USUAL_TIMEOUTS: Final = Timeouts()


async def connect(
    url: Secret | str, timeouts: Timeouts, connection_class: type[TrioConnection] = TrioConnection
) -> TrioConnection:
    """One connection in autocommit mode, outside any pool, with the timeouts set. The caller closes it.

    Raises DatabaseUnavailable when there is none to be had, DatabaseRefused when the server's version will not do or
    the URL cannot be read.
    """
    text = url.reveal() if isinstance(url, Secret) else url
    try:
        given = psycopg.conninfo.conninfo_to_dict(text)
        if not re.fullmatch(r"[0-9,]*", str(given.get("port") or ""), re.ASCII):
            raise psycopg.ProgrammingError("no port")  # what a slash in a password makes of it
    except psycopg.ProgrammingError:
        # The parser quotes what it could not read, which may be a password with an unescaped slash.
        raise DatabaseRefused("the database URL cannot be read (special characters are percent-encoded)") from None
    try:
        conninfo = psycopg.conninfo.make_conninfo("", **{**_CONNECTION_DEFAULTS, **given})
        connection = await connection_class.connect(conninfo, autocommit=True)
    except psycopg.Error as error:
        raise DatabaseUnavailable(f"no connection to the database: {error}") from None
    try:
        await _prepare(connection, timeouts)
    except BaseException:
        connection.pgconn.finish()
        raise
    return connection


async def _prepare(connection: TrioConnection, timeouts: Timeouts) -> None:
    major = connection.info.server_version // 10_000
    if not OLDEST_VERSION <= major <= NEWEST_VERSION:
        raise DatabaseRefused(
            f"the database server is PostgreSQL {major}; {OLDEST_VERSION} to {NEWEST_VERSION} are supported"
        )
    settings = {
        **_SERVER_SIDE,
        "statement_timeout": timeouts.statement_ms,
        "lock_timeout": timeouts.lock_ms,
        "idle_in_transaction_session_timeout": timeouts.idle_in_transaction_ms,
    }
    try:
        await connection.execute(
            "SELECT set_config(name, value, FALSE) FROM unnest(%s::text[], %s::text[]) AS settings (name, value)",
            (list(settings), [str(value) for value in settings.values()]),
        )
    except psycopg.Error as error:
        raise DatabaseUnavailable("the connection was lost while it was prepared") from error


async def refuse_shared_sessions(one: TrioConnection, other: TrioConnection) -> None:
    """Raise DatabaseRefused when a pooler in transaction or statement mode stands between us and the server.

    A mark is left in the session of `one`. A pooler has by then given that session back: `other` sees the mark when
    it is handed the same session, and while `other` keeps it in a transaction, `one` gets a session without the mark.
    """
    mark = str(id(one))
    refusal = DatabaseRefused(
        "the database is reached through a pooler in transaction mode; connect directly or use session mode"
    )
    read_mark = "SELECT current_setting('bookmark_appliance.mark', TRUE)"
    await one.execute("SELECT set_config('bookmark_appliance.mark', %s, FALSE)", (mark,))
    try:
        async with other.transaction():
            seen_by_other = await (await other.execute(read_mark)).fetchone()
            if seen_by_other == (mark,):
                raise refusal
            if await (await one.execute(read_mark)).fetchone() != (mark,):
                raise refusal
    except psycopg.errors.ProtocolViolation:
        raise refusal from None
