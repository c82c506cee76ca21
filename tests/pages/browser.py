"""A real browser for the pages: contexts whose every complaint fails the test, axe, screenshots."""

import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Route, expect

from tests.pages.appliance import Appliance, Reader
from tests.seed_library import Row

Scheme = Literal["dark", "light"]

PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 800}, "is_mobile": True, "has_touch": True}
DESK: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
WIDTHS = (360, 1280)
SCHEMES: tuple[Scheme, ...] = ("dark", "light")
PATIENCE = 30_000
"""Milliseconds, on a machine that is busy with other tests."""

_SERIOUS = ("serious", "critical")
_AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


@dataclass
class Browsing:
    """Opens pages. What a browser complains of and the test did not announce is a defect."""

    browser: Browser
    complaints: list[str] = field(default_factory=list)
    announced: list[str] = field(default_factory=list)
    contexts: list[BrowserContext] = field(default_factory=list)

    def context(self, reader: Reader | None = None, **options: Any) -> BrowserContext:
        """A browser of somebody's own. Sites are not the internet's: they answer with one word."""
        context = self.browser.new_context(**{"color_scheme": "dark", **options})
        self.contexts.append(context)
        context.set_default_timeout(PATIENCE)
        context.route(re.compile("^https://"), answer_as_site)
        context.on("console", self._on_console)
        context.on("weberror", lambda error: self.complaints.append(f"uncaught: {error.error}"))
        if reader is not None:
            context.add_cookies([{"name": "bmgr_session", "value": reader.session, "url": reader.appliance.address}])
        return context

    def page(self, appliance: Appliance, reader: Reader | None, path: str = "/", **options: Any) -> Page:
        """A page of the appliance in a context of its own."""
        page = self.context(reader, **options).new_page()
        page.goto(appliance.address + path)
        return page

    def expects(self, complaint: str) -> None:
        """Announce words that the browser will complain with, and must."""
        self.announced.append(complaint)

    def close(self) -> None:
        """Close it all, and tell what nobody announced."""
        for context in self.contexts:
            context.close()
        surprises = [said for said in self.complaints if not any(words in said for words in self.announced)]
        assert not surprises, "\n".join(surprises)
        silent = [words for words in self.announced if not any(words in said for said in self.complaints)]
        assert not silent, f"announced and not seen: {silent}"

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text} ({message.location['url']})")


def answer_as_site(route: Route) -> None:
    """Any Site: its page tells what it was given of ours."""
    route.fulfill(content_type="text/html", body="<!doctype html><title>A Site</title><p>A Site</p>")


def card_of(page: Page, reader: Reader, row: Row) -> Locator:
    """The card of a Bookmark."""
    return page.locator(f'[id="card-{reader.key(row)}"]')


def shows(page: Page, *titles: str) -> None:
    """Wait until these are the cards to be seen, in this order."""
    expect(page.locator("#list .card:not([hidden]) h2")).to_have_text(titles)


def focused(page: Page) -> str:
    """The words on what has the focus, or the name of a field."""
    words = page.evaluate("(document.activeElement.textContent || document.activeElement.name || '').trim()")
    assert isinstance(words, str)
    return words


@contextmanager
def answered(page: Page, path: str) -> Iterator[None]:
    """Wait until the page has had an answer from what begins with `path`, and has put it in place."""
    with page.expect_response(lambda response: urlsplit(response.url).path.startswith(path)):
        yield
    expect(page.locator(".htmx-request, .htmx-swapping, .htmx-settling")).to_have_count(0)


def assert_accessible(page: Page, state: str) -> None:
    """No serious and no critical finding of axe-core in the page as it is."""
    page.evaluate(_AXE)
    response = page.evaluate("axe.run({resultTypes: ['violations']})")
    findings = [
        (state, finding["id"], node["target"], node["failureSummary"])
        for finding in response["violations"]
        if finding["impact"] in _SERIOUS
        for node in finding["nodes"]
    ]
    assert not findings, json.dumps(findings, indent=1)


def in_every_look(page: Page, widths: tuple[int, ...] = WIDTHS) -> Iterator[str]:
    """Show the page at each width and in each scheme; what to call that."""
    for width in widths:
        page.set_viewport_size({"width": width, "height": 800})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            yield f"{width}-{scheme}"


def keep_picture(page: Page, name: str) -> None:
    """A screenshot among the artefacts of the run: in PAGES_SCREENSHOTS, else among the temporary files."""
    folder = Path(os.environ.get("PAGES_SCREENSHOTS") or Path(tempfile.gettempdir()) / "bookmark-pages")
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"{name}.png", animations="disabled")
