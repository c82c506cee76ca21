"""One Chromium for the tests of a worker; a context, and what is in it, is each test's own.

Playwright's own way to wait does not live with Trio: these tests are plain functions.
"""

import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.panel.stage import Stage, set_stage


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """The system's Chromium."""
    path = shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def stage(browser: Browser) -> Iterator[Callable[..., Stage]]:
    """`stage(html, library=..., **context options)` sets one; all of them are cleared away behind the test."""
    contexts = []

    def make(*given: str, **options: object) -> Stage:
        made = set_stage(browser, *given, **options)
        contexts.append(made.page.context)
        return made

    yield make
    for context in contexts:
        context.close()
