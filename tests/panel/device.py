"""A Reader's browser with an installed script, on the simulated Sites, against a running `serve`.

The Sites serve on a thread of their own, since Playwright's way to wait does not live with Trio.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import trio
from playwright.sync_api import Browser, BrowserContext, CDPSession, Locator, Page, Request

from bookmark_appliance.credentials import credential_hash, derive_credential
from bookmark_appliance.secret import Secret
from tests.pages.appliance import Appliance, Reader
from tests.panel.stage import DESK, PATIENCE
from tests.simulated_sites import SimulatedSites, simulated_sites
from tests.simulated_sites.world import HOSTS, Series

MANGA, NOVEL = "manga-bookmark.user.js", "novel-bookmark.user.js"

AT_IDLE = """
if (window === top && %(hosts)s.includes(location.host)) {
  %(before)s
  const run = () => { %(script)s };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", run, {once: true});
  else run();
}
"""


@contextmanager
def sites_on_a_thread() -> Iterator[SimulatedSites]:
    """The six Sites; a test may change their world at any time."""
    begun, ended = threading.Event(), trio.Event()
    made: list[Any] = []

    async def serve() -> None:
        async with simulated_sites() as sites:
            made.extend((sites, trio.lowlevel.current_trio_token()))
            begun.set()
            await ended.wait()

    thread = threading.Thread(target=trio.run, args=(serve,), name="sites")
    thread.start()
    begun.wait()
    sites, token = made
    try:
        yield sites
    finally:
        token.run_sync_soon(ended.set)
        thread.join()


def browser_arguments(sites: SimulatedSites) -> list[str]:
    """What lets Chromium find the simulated Sites."""
    rules = ",".join(f"MAP {host} 127.0.0.1:{sites.port}" for host in HOSTS)
    return ["--no-sandbox", "--disable-gpu", f"--host-resolver-rules={rules}", "--ignore-certificate-errors"]


def credential_of(reader: Reader, epoch: int = 0) -> str:
    """Give the Reader the credential of this epoch, and say it."""
    found = reader.appliance.ask("SELECT discord_id FROM readers WHERE id = %s", reader.id)
    key = Secret(reader.appliance.environ["TOKEN_KEY"])
    credential = derive_credential(key, found[0]["discord_id"], epoch).reveal()
    reader.appliance.ask(
        "UPDATE readers SET token_sha256 = %s, token_epoch = %s WHERE id = %s RETURNING id",
        *(credential_hash(credential), epoch, reader.id),
    )
    return credential


def served_script(appliance: Appliance, credential: str, name: str = MANGA) -> str:
    """The Reader's own copy, as an updater gets it."""
    answer = httpx.get(f"{appliance.address}/u/{credential}/{name}", trust_env=False)
    assert answer.status_code == 200, answer.text
    return answer.text


@dataclass
class Device:
    """One browser of a Reader's. `puts` are the bodies that it sent and got an answer to, in that order."""

    context: BrowserContext
    page: Page
    appliance: Appliance
    cdp: CDPSession
    puts: list[dict[str, Any]] = field(default_factory=list)
    installed: str = ""
    """What Chromium calls the script."""

    def install(self, script: str, before: str = "") -> None:
        """For every page from now on, in an isolated world, in place of what was installed."""
        if self.installed:
            self.cdp.send("Page.removeScriptToEvaluateOnNewDocument", {"identifier": self.installed})
        source = AT_IDLE % {"hosts": json.dumps(HOSTS), "before": before, "script": script}
        answer = self.cdp.send("Page.addScriptToEvaluateOnNewDocument", {"source": source, "worldName": "userscripts"})
        self.installed = answer["identifier"]

    def find(self, selector: str) -> Locator:
        return self.page.locator("bookmark-panel").locator(selector)

    def button(self, name: str, within: str = ".page") -> Locator:
        return self.find(within).get_by_role("button", name=name, exact=True)

    def goes_to(self, address: str) -> None:
        """Load it; the tab is there then."""
        self.page.goto(address)
        self.find("#fab").wait_for()

    def opens(self) -> None:
        """The panel, unless it is open."""
        if self.find("#fab").get_attribute("aria-expanded") == "false":
            self.find("#fab").focus()
            self.page.keyboard.press("Enter")
        self.find(".page").wait_for()

    def follows(self, chapter: str) -> None:
        """A link that the Site goes on by without loading."""
        self.page.get_by_role("link", name=f"Chapter {chapter}", exact=True).click()
        self.page.wait_for_function("words => document.title.includes(words)", arg=chapter)

    def reads(self) -> None:
        """Scroll, which tells reading from a mis-tap. Again until it is heard: a page settles first."""
        self.page.mouse.move(300, 500)
        self.page.mouse.wheel(0, 400)

    def reads_until(self, condition: Callable[[], bool]) -> None:
        """Read on, as long as it takes to be believed."""

        def scrolled() -> bool:
            self.reads()
            return condition()

        self.waits_until(scrolled)

    def waits_until(self, condition: Callable[[], bool]) -> None:
        """Look again until it is so."""
        for _ in range(PATIENCE // 50):
            if condition():
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"not within {PATIENCE} ms: {self.find('.panel-root').inner_text()}")

    def heard(self, request: Request) -> None:
        if request.method == "PUT" and request.url.startswith(self.appliance.address):
            self.puts.append(json.loads(request.post_data or "{}"))


def new_device(browser: Browser, appliance: Appliance, script: str, before: str = "", **options: Any) -> Device:
    """A fresh profile with the script in it."""
    context = browser.new_context(
        **{"color_scheme": "dark", "reduced_motion": "reduce", "ignore_https_errors": True, **DESK, **options}
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    device = Device(context, page, appliance, context.new_cdp_session(page))
    device.cdp.send("Page.enable")
    context.on("requestfinished", device.heard)
    device.install(script, before)
    return device


def stored(reader: Reader, series: Series) -> dict[str, Any]:
    """The Bookmark as the database has it; empty when there is none."""
    rows = reader.appliance.ask(
        "SELECT * FROM bookmarks WHERE reader_id = %s AND site = %s AND series_id = %s",
        *(reader.id, series.site, series_id(series)),
    )
    return rows[0] if rows else {}


def series_id(series: Series) -> str:
    return series.slug.partition("-")[0] if series.site == "comix" else series.slug
