"""The operator's reach into Readers: what `readers …` does, one call a command, each in a transaction."""

import secrets
from datetime import UTC
from typing import TypeVar

from bookmark_appliance.clock import SystemClock
from bookmark_appliance.credentials import derive_credential
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.secret import Secret
from bookmark_appliance.settings import Settings
from bookmark_appliance.store import readers
from bookmark_appliance.store.readers import ReaderSummary
from bookmark_appliance.store.sign_in import add_link

T = TypeVar("T")


class UnknownReader(Exception):
    """No Reader has this Discord id."""


async def list_all(connection: TrioConnection, settings: Settings) -> list[ReaderSummary]:
    """Every Reader, the oldest first."""
    return await readers.list_readers(connection, settings.owner_discord_id, SystemClock().now_ms())


async def add(connection: TrioConnection, settings: Settings, discord_id: str) -> ReaderSummary:
    """The Reader of this id, made now if there was none."""
    await readers.add_reader(connection, discord_id, settings.token_key)
    return next(reader for reader in await list_all(connection, settings) if reader.discord_id == discord_id)


async def credential(connection: TrioConnection, settings: Settings, discord_id: str) -> Secret:
    """The credential that the Reader's scripts hold. Raises UnknownReader."""
    reader = _known(await readers.find_by_discord_id(connection, discord_id), discord_id)
    return derive_credential(settings.token_key, discord_id, reader.epoch)


async def rotate(connection: TrioConnection, settings: Settings, discord_id: str) -> Secret:
    """A new credential, the old one dead at once (TOK-007). Raises UnknownReader."""
    return _known(await readers.rotate_credential(connection, discord_id, settings.token_key), discord_id)


async def revoke(connection: TrioConnection, settings: Settings, discord_id: str) -> int:
    """End the Reader's sessions; how many there were. Raises UnknownReader."""
    return _known(await readers.end_sessions(connection, discord_id), discord_id)


async def sign_in_link(connection: TrioConnection, settings: Settings, discord_id: str | None = None) -> Secret:
    """An address that signs the Reader, or the owner, in: once, within ten minutes (SES-027). Raises UnknownReader."""
    discord_id = discord_id or settings.owner_discord_id
    reader = _known(await readers.find_by_discord_id(connection, discord_id), discord_id)
    token = Secret(secrets.token_hex(32))
    await add_link(connection, token, reader.id, SystemClock().now_ms())
    return Secret(f"{settings.web_base_url}/sign-in/{token.reveal()}")


def _known(found: T | None, discord_id: str) -> T:
    if found is None:
        raise UnknownReader(f"no Reader has the Discord id {discord_id}")
    return found


def as_json(reader: ReaderSummary) -> dict[str, str | bool | int]:
    """The object of `readers list`; `created_at` is RFC 3339 in UTC."""
    return {
        "discord_id": reader.discord_id,
        "owner": reader.owner,
        "epoch": reader.epoch,
        "bookmarks": reader.bookmarks,
        "sessions": reader.sessions,
        "created_at": reader.created_at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
