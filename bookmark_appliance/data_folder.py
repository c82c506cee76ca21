"""The data folder: made and checked at the start, held by one `serve`, keeper of the generated signing key."""

import contextlib
import dataclasses
import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bookmark_appliance.config import kept_token_key
from bookmark_appliance.durable import sync_folder
from bookmark_appliance.postgres.file_lock import FileLock
from bookmark_appliance.secret import Secret
from bookmark_appliance.setting_values import reason
from bookmark_appliance.settings import Settings, SettingsError

log = logging.getLogger(__name__)

SHORTEST_NEW_TOKEN_KEY = 32
"""Characters (INTERFACE.md)."""

PRIVATE = 0o700
ENTERABLE = 0o711
"""As root, embedded Postgres runs under a user of its own, which has to reach its part of the folder."""


def prepare_folders(settings: Settings) -> None:
    """Make DATA_DIR and COVER_DIR where they are missing (OPS-002); a parent is never changed.

    Raises SettingsError, naming the folder, where one is no folder, can't be written, or lies under a folder that this
    user can't enter. Whether the user of embedded Postgres can enter them is for `postgres.files` to tell.
    """
    shared = settings.database_url is None and os.geteuid() == 0
    mode = ENTERABLE if shared else PRIVATE
    if make_folder("DATA_DIR", settings.data_dir, mode):
        settings.data_dir.chmod(mode)  # whatever the umask
    elif shared:
        settings.data_dir.chmod(settings.data_dir.stat().st_mode | 0o001)
    make_folder("COVER_DIR", settings.cover_dir, 0o777)


def make_folder(key: str, folder: Path, mode: int) -> bool:
    """Make `folder`; True when it was not there before."""
    try:
        existed = folder.is_dir()
        folder.mkdir(mode, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise SettingsError(f"{key}: {folder} is not a folder") from None
    except OSError as error:
        raise SettingsError(f"{key}: {folder} can't be made: {reason(error, folder)}") from None
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise SettingsError(f"{key}: this user can't write in {folder}")
    return not existed


def held_by_serve(settings: Settings) -> contextlib.AbstractContextManager[None]:
    """Hold DATA_DIR for one `serve`, whatever its database. Raises SettingsError when another one has it."""
    return held(settings.data_dir / "serve.lock", f"DATA_DIR: another serve runs on {settings.data_dir}")


@contextlib.contextmanager
def held(path: Path, refusal: str) -> Iterator[None]:
    """Hold a lock for the block. Raises SettingsError with `refusal` when another process has it."""
    lock = FileLock(path)
    if not lock.try_exclusive():
        raise SettingsError(refusal)
    try:
        yield
    finally:
        lock.release()


def settle_token_key(settings: Settings, *, readers: int) -> Settings:
    """The settings with the signing key that this database is to be used with; call before the owner is seeded.

    `readers` is the number of Readers that the database holds already, whose credentials rest on the key. A new key
    is written to DATA_DIR/token_key only here. Raises SettingsError.
    """
    if not settings.token_key_generated:
        if len(settings.token_key.reveal()) >= SHORTEST_NEW_TOKEN_KEY:
            return settings
        if not readers:
            raise SettingsError(f"TOKEN_KEY: must be at least {SHORTEST_NEW_TOKEN_KEY} characters long")
        log.warning("TOKEN_KEY is shorter than %d characters; kept, since Readers hold it", SHORTEST_NEW_TOKEN_KEY)
        return settings
    kept = kept_token_key(settings.token_key_file)
    if kept is None and readers:
        raise SettingsError(
            f"TOKEN_KEY: missing, and {settings.token_key_file} too, though the database holds Readers: "
            "a new key would end every installed script; bring the old one back"
        )
    return dataclasses.replace(settings, token_key=kept or _keep(settings.token_key, settings.token_key_file))


def _keep(key: Secret, path: Path) -> Secret:
    """Write the key, all or nothing and onto the disk; of two processes the first one's key stands for both."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".token_key-")  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{key.reveal()}\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(name, path)
    except FileExistsError:
        return kept_token_key(path) or key
    finally:
        os.unlink(name)
    sync_folder(path.parent)
    return key
