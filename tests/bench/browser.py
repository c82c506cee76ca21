"""What a read through the browser costs: `python -m tests.bench.browser`, with a real Chromium and pages on loopback.

The page's own time is what Chromium takes to show it and to fetch from it in a tab that is open; what a read adds is
finding the browser, its tab, and closing it. The pages answer at once.
"""

import socket
import statistics
import sys
import time

import trio

from bookmark_appliance.cdp.browser import Browser
from bookmark_appliance.cdp.connection import connect
from bookmark_appliance.cdp.discovery import debugger_path, parse_endpoint
from bookmark_appliance.cdp.tab import TabRead
from bookmark_appliance.clock import SECOND_MS
from bookmark_appliance.lanes.challenge import arrived
from bookmark_appliance.page import MAX_BODY_BYTES
from tests.bench.figures import Figure
from tests.cdp.chromium import CHROMIUM, Chromium
from tests.cdp.pages import Answer, pages_context, serve_pages
from tests.lanes.fetching import at_once

READS = 60
PAGE, API, LONG = "https://site.example/page", "https://site.example/api", "https://site.example/long"


def run() -> list[Figure]:
    """Start a Chromium, measure, and end it: about half a minute."""
    if CHROMIUM is None:
        print("NO CHROMIUM HERE: what a read through the browser costs is not measured", file=sys.stderr)
        return []
    with socket.create_server(("127.0.0.1", 0)) as listening, Chromium(listening.getsockname()[1]) as chromium:
        return trio.run(_measure, chromium, listening)


async def _measure(chromium: Chromium, listening: socket.socket) -> list[Figure]:
    async with serve_pages(listening, pages_context()) as pages:
        pages.at[PAGE] = Answer("<p>a page</p>")
        pages.at[API] = Answer("{}" + " " * 24_500)
        pages.at[LONG] = Answer("x" * MAX_BODY_BYTES)
        browser = Browser(chromium.endpoint)
        await _median_ms(browser, API, 5)
        cpu = time.process_time()
        fetched = await _median_ms(browser, API, READS)
        cpu = (time.process_time() - cpu) / READS * SECOND_MS
        own = await _own_ms(chromium)
        document = await _median_ms(browser, None, READS // 2)
        whole = await _median_ms(browser, LONG, 5)
    return [
        Figure("in-tab read of a cleared page adds", fetched - own, "ms", most=300, note=f"to the page's {own:.0f} ms"),
        Figure("reading a cleared document", document, "ms"),
        Figure("in-tab read of 4 MiB", whole, "ms"),
        Figure("CPU of ours for an in-tab read", cpu, "ms", note="the pages' server included"),
    ]


async def _own_ms(chromium: Chromium) -> float:
    """Without a tab of its own, and without anything that guards it."""
    endpoint, took = parse_endpoint(chromium.endpoint), []
    async with connect(endpoint, await debugger_path(endpoint)) as connection:
        created = await connection.command("Target.createTarget", {"url": PAGE}, dict[str, str])
        to_target = {"targetId": created["targetId"], "flatten": True}
        attached = await connection.command("Target.attachToTarget", to_target, dict[str, str])
        fetch = {"expression": f"fetch('{API}').then(answer => answer.text())", "awaitPromise": True}
        for _ in range(READS // 2):
            began = time.perf_counter()
            await connection.command("Page.navigate", {"url": PAGE}, session=attached["sessionId"])
            await connection.command("Runtime.evaluate", fetch, session=attached["sessionId"])
            took.append((time.perf_counter() - began) * SECOND_MS)
        await connection.command("Target.closeTarget", {"targetId": created["targetId"]})
    return statistics.median(took)


async def _median_ms(browser: Browser, fetch: str | None, reads: int) -> float:
    took = []
    for _ in range(reads):
        began = time.perf_counter()
        await browser.read(TabRead(PAGE, fetch, MAX_BODY_BYTES), arrived, at_once)
        took.append((time.perf_counter() - began) * SECOND_MS)
    return statistics.median(took)


if __name__ == "__main__":
    for figure in run():
        print(figure)
