"""What a command finds and makes of its database before it goes to work."""

import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest

from bookmark_appliance.config import Settings, SettingsError, load_settings
from bookmark_appliance.secret import Secret
from bookmark_appliance.storage import open_storage
from tests.test_migrations import STEPS, TAKEN_OVER, fetch, leave_as_the_earlier_deployment


def settings_of(url: str, data_dir: Path, **environ: str) -> Settings:
    environ |= {"DATA_DIR": str(data_dir), "DATABASE_URL": "postgresql://u:p@db/books"}
    return replace(load_settings(environ, env_file=Path("/dev/null")), database_url=Secret(url))


@pytest.mark.parametrize("version", [5, TAKEN_OVER])
async def test_a_database_of_the_earlier_deployment_is_not_migrated_without_its_key(
    empty_database_url: str, tmp_path: Path, version: int
) -> None:
    """CFG-001: OPERATIONS.md; the earlier deployment could go on with it, and so can we once the key is there."""
    await leave_as_the_earlier_deployment(empty_database_url, version)
    settings = settings_of(empty_database_url, tmp_path)
    with pytest.raises(SettingsError, match="TOKEN_KEY: missing"):
        async with open_storage(settings):
            pass
    assert await fetch(empty_database_url, "SELECT max(version) FROM schema_migrations") == [(version,)]
    assert os.listdir(tmp_path) == []
    async with open_storage(settings_of(empty_database_url, tmp_path, TOKEN_KEY="k" * 32)) as storage:
        assert storage.schema_version == len(STEPS)


async def test_an_empty_database_is_not_begun_with_a_short_key(empty_database_url: str, tmp_path: Path) -> None:
    """CFG-001: it is refused before the first step."""
    short = settings_of(empty_database_url, tmp_path, TOKEN_KEY="short")
    with pytest.raises(SettingsError, match="TOKEN_KEY: must be at least"):
        async with open_storage(short):
            pass
    assert await fetch(empty_database_url, "SELECT to_regclass('readers')::text") == [(None,)]


async def test_a_short_key_that_readers_hold_is_warned_of_once_a_start(
    empty_database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """CFG-001: they go on with it."""
    await leave_as_the_earlier_deployment(empty_database_url, TAKEN_OVER)
    caplog.set_level(logging.WARNING)
    async with open_storage(settings_of(empty_database_url, tmp_path, TOKEN_KEY="short")):
        assert caplog.text.count("TOKEN_KEY is shorter") == 1
