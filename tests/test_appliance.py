"""The wiring of `serve`, where a process of its own would not hit the moment; the rest stands in test_serve."""

import logging
from pathlib import Path

import pytest
import trio

from bookmark_appliance import appliance
from bookmark_appliance.shutdown import Shutdown
from bookmark_appliance.storage import open_storage
from tests.test_storage import settings_of


async def test_an_end_that_was_asked_for_before_it_listens_is_not_followed_by_listening(
    empty_database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """OPS-007: it comes up, has nothing to finish, and ends; whoever reads the log is not told otherwise."""
    off = {"PORT": "0", "TOKEN_KEY": "k" * 32, "LATEST_CHAPTER_POLL_ENABLED": "0"}
    shutdown = Shutdown()
    shutdown.asked.set()
    caplog.set_level(logging.INFO)
    async with open_storage(settings_of(empty_database_url, tmp_path, **off)) as storage:
        with trio.fail_after(20):
            await appliance._run_parts(storage, shutdown)
    assert "polling is off" in caplog.text
    assert "listening on" not in caplog.text
