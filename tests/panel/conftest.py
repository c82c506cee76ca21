"""One Chromium, one `serve` and one set of Sites for the tests of a worker; a context is each test's own.

Playwright's own way to wait does not live with Trio: these tests are plain functions. Everything here ends with the
last of them, so that no other test shares its thread with it.
"""

import secrets
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.open_folder import open_folder
from tests.pages.appliance import Appliance, Reader, new_database, running
from tests.panel.device import (
    MANGA,
    Device,
    browser_arguments,
    credential_of,
    new_device,
    served_script,
    sites_on_a_thread,
)
from tests.panel.stage import Stage, set_stage
from tests.simulated_sites import SimulatedSites
from tests.simulated_sites.world import Series


@pytest.fixture(scope="package")
def sites() -> Iterator[SimulatedSites]:
    """The simulated Sites."""
    with sites_on_a_thread() as found:
        yield found


@pytest.fixture(scope="package")
def appliance(postgres_conninfo: str) -> Iterator[Appliance]:
    """It polls nothing by itself."""
    with open_folder() as folder, new_database(postgres_conninfo) as database, running(folder, database) as found:
        yield found


@pytest.fixture(scope="package")
def browser(sites: SimulatedSites, appliance: Appliance) -> Iterator[Browser]:
    """The system's Chromium. It begins behind the others, whose start wants no other loop in this thread."""
    path = shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=browser_arguments(sites))
        yield browser
        browser.close()


@pytest.fixture
def stage(browser: Browser) -> Iterator[Callable[..., Stage]]:
    """`stage(html, library=..., **context options)` sets one; all of them are cleared away behind the test."""
    contexts = []

    def make(*given: str, **options: Any) -> Stage:
        made = set_stage(browser, *given, **options)
        contexts.append(made.page.context)
        return made

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def reader(appliance: Appliance) -> Reader:
    """Somebody new."""
    found = appliance.reader()
    credential_of(found)
    return found


@pytest.fixture
def device(browser: Browser, appliance: Appliance, reader: Reader) -> Iterator[Callable[..., Device]]:
    """`device(name of the script, **context options)`: a fresh browser of the Reader's."""
    contexts = []

    def make(name: str = MANGA, **options: Any) -> Device:
        made = new_device(browser, appliance, served_script(appliance, credential_of(reader), name), **options)
        contexts.append(made.context)
        return made

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def publish(sites: SimulatedSites) -> Callable[..., Series]:
    """`publish(site)` adds a Series that nobody has met."""

    def add(site: str = "asura", **given: Any) -> Series:
        slug = secrets.token_hex(5)
        chapters = ["1", "2", "3", "12", "12.5", "13", "14", "15"]
        return sites.world.add(site, f"{slug}-lantern", **{"title": f"Lantern {slug}", "chapters": chapters, **given})

    return add
