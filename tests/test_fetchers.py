"""Which ways to a page a process has."""

import logging
import sys
from pathlib import Path

import pytest

from bookmark_appliance.config import Settings, load_settings
from bookmark_appliance.fetchers import browser_fetcher, plain_fetcher
from bookmark_appliance.lanes.page_errors import BrowserLost
from bookmark_appliance.lanes.sites import SITES
from tests.lanes.fetching import at_once

KAGANE = "https://kagane.to/series/019d0001-1111-7001-8222-333344445501"


def settings_with(tmp_path: Path, browser: str) -> Settings:
    return load_settings({"DATA_DIR": str(tmp_path), "BROWSER_WS_URL": browser}, env_file=Path("/dev/null"))


@pytest.mark.parametrize("unset", ["", "  "])
def test_without_a_browser_in_the_settings_there_is_no_way_through_one(tmp_path: Path, unset: str) -> None:
    """CFG-007, BRO-018: the plain way is there all the same."""
    settings = settings_with(tmp_path, unset)
    assert browser_fetcher(settings) is None
    assert plain_fetcher(settings) is not None


async def test_a_browser_in_the_settings_is_a_way_though_nobody_is_there(tmp_path: Path) -> None:
    """CFG-007, LANE-023: whether it can be reached each read finds out anew."""
    fetcher = browser_fetcher(settings_with(tmp_path, " ws://127.0.0.1:1 "))
    assert fetcher is not None
    with pytest.raises(BrowserLost):
        await fetcher.fetch(SITES["kagane"], KAGANE, before_request=at_once)


def test_a_client_that_cannot_be_built_is_the_same_as_unset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """OPS-005: said once, loudly."""
    monkeypatch.setitem(sys.modules, "bookmark_appliance.lanes.browser_fetcher", None)
    assert browser_fetcher(settings_with(tmp_path, "ws://127.0.0.1:9222")) is None
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert "no page can be read through a browser" in record.getMessage()
