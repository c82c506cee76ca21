"""The operator's reach into Readers: what `readers …` does, one call a command."""

from datetime import UTC

from bookmark_appliance.clock import SystemClock
from bookmark_appliance.credentials import derive_credential
from bookmark_appliance.secret import Secret
from bookmark_appliance.settings import Settings
from bookmark_appliance.storage import open_storage
from bookmark_appliance.store import readers
from bookmark_appliance.store.readers import ReaderSummary


class UnknownReader(Exception):
    """No Reader has this Discord id."""

    def __init__(self, discord_id: str) -> None:
        super().__init__(f"no Reader has the Discord id {discord_id}")


async def list_all(settings: Settings) -> list[ReaderSummary]:
    """Every Reader, the oldest first."""
    async with open_storage(settings) as storage, storage.database.connection() as connection:
        return await readers.list_readers(connection, settings.owner_discord_id, SystemClock().now_ms())


async def add(settings: Settings, discord_id: str) -> ReaderSummary:
    """The Reader of this id, made now if there was none."""
    async with open_storage(settings) as storage, storage.database.transaction() as connection:
        await readers.add_reader(connection, discord_id, storage.settings.token_key)
        listed = await readers.list_readers(connection, settings.owner_discord_id, SystemClock().now_ms())
        return next(reader for reader in listed if reader.discord_id == discord_id)


async def credential(settings: Settings, discord_id: str) -> Secret:
    """The credential that the Reader's scripts hold. Raises UnknownReader."""
    async with open_storage(settings) as storage, storage.database.connection() as connection:
        reader = await readers.find_by_discord_id(connection, discord_id)
        if reader is None:
            raise UnknownReader(discord_id)
        return derive_credential(storage.settings.token_key, discord_id, reader.epoch)


async def rotate(settings: Settings, discord_id: str) -> Secret:
    """A new credential, the old one dead at once (TOK-007). Raises UnknownReader."""
    async with open_storage(settings) as storage, storage.database.transaction() as connection:
        new = await readers.rotate_credential(connection, discord_id, storage.settings.token_key)
        if new is None:
            raise UnknownReader(discord_id)
        return new


async def revoke(settings: Settings, discord_id: str) -> int:
    """End the Reader's sessions; how many there were. Raises UnknownReader."""
    async with open_storage(settings) as storage, storage.database.transaction() as connection:
        ended = await readers.end_sessions(connection, discord_id)
        if ended is None:
            raise UnknownReader(discord_id)
        return ended


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
