"""One browser and one `serve` for the tests of a worker; Readers, contexts and pages are each test's own.

Playwright's own way to wait does not live with Trio: these tests are plain functions. Everything here ends with the
last of them, so that no other test shares its thread with it.
"""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.open_folder import open_folder
from tests.pages.appliance import Appliance, new_database, running, with_covers
from tests.pages.browser import PATIENCE, Browsing


@pytest.fixture(scope="package")
def appliance(postgres_conninfo: str) -> Iterator[Appliance]:
    """In local mode, with drawings for covers."""
    with open_folder() as folder, new_database(postgres_conninfo) as database, running(folder, database) as found:
        yield with_covers(found)


@pytest.fixture(scope="package")
def browser(appliance: Appliance) -> Iterator[Browser]:
    """The system's Chromium. It begins behind the appliance, whose start wants no other loop in this thread."""
    path = shutil.which("chromium")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def browsing(browser: Browser) -> Iterator[Browsing]:
    """Pages whose every complaint fails the test."""
    opened = Browsing(browser)
    yield opened
    opened.close()
