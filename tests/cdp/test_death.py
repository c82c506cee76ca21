"""A real Chromium that dies, hangs or loses its client in the middle of a read, and what is left after many reads."""

import gc
import os
import resource
from collections.abc import Awaitable, Callable

import pytest
import trio

from bookmark_appliance.cdp import connection as connecting
from bookmark_appliance.cdp.browser import Browser
from bookmark_appliance.cdp.errors import BrowserGone
from bookmark_appliance.cdp.tab import TabRead
from bookmark_appliance.lanes.challenge import arrived
from bookmark_appliance.page import MAX_BODY_BYTES, Page
from tests.cdp.chromium import Chromium
from tests.cdp.conftest import no_tab_is_left
from tests.cdp.pages import Answer, Pages, Request
from tests.lanes.fetching import at_once

PAGE = "https://site.example/page"
API = "https://site.example/api"
READ = TabRead(PAGE, API, MAX_BODY_BYTES)
READS = 100


def in_a_thread(act: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        await trio.to_thread.run_sync(act)

    return run


@pytest.mark.parametrize("point", ["discovery", "tab", "navigation", "evaluation", "closing"])
async def test_a_browser_that_is_killed_is_gone_and_the_next_one_is_found(
    own_chromium: Chromium, pages: Pages, point: str
) -> None:
    """BRO-012, BRO-017, LANE-023: at each point of a read; started again it has another id, and needs no reconnect."""
    browser = Browser(own_chromium.endpoint, look_seconds=0.1)
    kill = in_a_thread(own_chromium.kill)
    well = pages.at[PAGE], pages.at[API] = Answer("<p>a page</p>"), Answer("{}")

    async def die(request: Request) -> Answer:
        await kill()
        return Answer()

    def over(page: Page) -> bool:
        own_chromium.kill()
        return True

    if point == "discovery":
        await kill()
    elif point != "closing":
        pages.at |= {"navigation": {PAGE: die}, "evaluation": {API: die}}.get(point, {})
    with trio.fail_after(40):
        if point == "closing":
            assert (await browser.read(READ, over, at_once)).text == "{}"
        else:
            with pytest.raises(BrowserGone):
                await browser.read(READ, arrived, kill if point == "tab" else at_once)
    pages.at[PAGE], pages.at[API] = well
    await trio.to_thread.run_sync(own_chromium.start)
    assert (await browser.read(READ, arrived, at_once)).text == "{}"
    await no_tab_is_left(own_chromium)


async def test_a_browser_that_hangs_is_gone(
    own_chromium: Chromium, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LANE-023: all of it, in the middle of a read, long before its time is over; the next one closes its tab."""
    browser = Browser(own_chromium.endpoint, look_seconds=0.1)
    monkeypatch.setattr(connecting, "PAGE_SECONDS", 0.5)

    async def stop(request: Request) -> Answer:
        monkeypatch.setattr(connecting, "COMMAND_SECONDS", 0.5)
        await trio.to_thread.run_sync(lambda: own_chromium.pause(on=True))
        await trio.sleep_forever()
        raise AssertionError

    pages.at[PAGE], pages.at[API] = Answer("<p>a page</p>"), stop
    with pytest.raises(BrowserGone), trio.fail_after(15):
        await browser.read(READ, arrived, at_once)
    monkeypatch.undo()
    own_chromium.pause(on=False)
    pages.at[API] = Answer("{}")
    assert (await browser.read(READ, arrived, at_once)).text == "{}"
    await no_tab_is_left(own_chromium)


@pytest.mark.parametrize("asked_for", [PAGE, API])
async def test_a_read_that_is_cut_short_leaves_no_tab(chromium: Chromium, pages: Pages, asked_for: str) -> None:
    """BRO-009, OPS-007: whoever gives up; here while the Site keeps us waiting."""

    async def wait(request: Request) -> Answer:
        await trio.sleep_forever()
        raise AssertionError

    pages.at[PAGE] = pages.at[API] = Answer("<p>a page</p>")
    pages.at[asked_for] = wait
    browser = Browser(chromium.endpoint)
    with trio.fail_after(40):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(browser.read, READ, arrived, at_once)
            await pages.wait_for(asked_for)
            nursery.cancel_scope.cancel()
    assert await trio.to_thread.run_sync(chromium.tabs) == []


async def test_many_reads_leave_nothing_behind(chromium: Chromium, pages: Pages) -> None:
    """BRO-009, BRO-011: no tab (the fixture looks), no socket, no process and no memory of ours."""
    pages.at[PAGE], pages.at[API] = Answer("<p>a page</p>"), Answer("{}" + " " * 50_000)
    browser = Browser(chromium.endpoint)
    for _ in range(5):
        await browser.read(READ, arrived, at_once)
    gc.collect()
    before = open_files(), len(chromium.pids()), resident()
    for _ in range(READS):
        await browser.read(READ, arrived, at_once)
    gc.collect()
    # Chromium keeps connections to the pages' server ready as it likes; one left by each read would be a hundred.
    assert open_files() <= before[0] + 10
    assert len(chromium.pids()) <= before[1] + 2
    assert resident() - before[2] < 4_000_000


def open_files() -> int:
    """Descriptors of this process, sockets among them."""
    return len(os.listdir("/proc/self/fd"))


def resident() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as told:
        return int(told.read().split()[1]) * resource.getpagesize()
