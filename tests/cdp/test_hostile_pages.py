"""Pages that lie, block, crash, flee or multiply: each is one page's failure, and nothing stays behind."""

from contextlib import suppress

import pytest
import trio

from bookmark_appliance.cdp.browser import Browser
from bookmark_appliance.cdp.connection import MAX_MESSAGE_BYTES
from bookmark_appliance.cdp.errors import PageFailed
from bookmark_appliance.cdp.tab import TabRead
from bookmark_appliance.lanes.challenge import arrived
from bookmark_appliance.page import MAX_BODY_BYTES, Page
from tests.cdp.chromium import Chromium
from tests.cdp.conftest import no_tab_is_left
from tests.cdp.pages import HTML, Answer, Pages, Request
from tests.lanes.fetching import at_once

PAGE = "https://hostile.example/page"
API = "https://hostile.example/api"


async def read(browser: Browser, fetch: str | None, address: str = PAGE) -> Page:
    return await browser.read(TabRead(address, fetch, MAX_BODY_BYTES), arrived, at_once)


async def test_a_page_that_patches_its_world_does_not_reach_ours(browser: Browser, pages: Pages) -> None:
    """BRO-002: fetch, JSON, String, Promise and the reader of a stream are ours in the world we read from."""
    pages.at[PAGE] = Answer(
        """<script>
        window.fetch = async () => new Response("a lie");
        Response.prototype.text = async () => "a lie";
        String.fromCharCode = window.btoa = () => "a lie";
        JSON.stringify = JSON.parse = () => "a lie";
        Promise.prototype.then = function () { return new Promise(() => {}); };
        Uint8Array.prototype.subarray = ReadableStream.prototype.getReader = () => { throw "a lie"; };
        TextEncoder.prototype.encode = () => new Uint8Array(3);
        Object.defineProperty(Element.prototype, "outerHTML", { get: () => "a lie" });
        </script><img name=fetch><form id=piece></form><p>the truth</p>"""
    )
    pages.at[API] = Answer('{"the": "truth"}')
    assert (await read(browser, API)).text == '{"the": "truth"}'
    page = await read(browser, None)
    assert "<p>the truth</p>" in page.text
    assert page.status == 200


@pytest.mark.parametrize("kind", ["alert(1)", "confirm(1)", "prompt(1)", "alert(document.title = '\\ud800')"])
async def test_a_dialog_does_not_hold_the_page(browser: Browser, pages: Pages, kind: str) -> None:
    """BRO-009: it is answered, and the page read."""
    pages.at[PAGE] = Answer(f"<script>{kind}; {kind}</script><p>read</p>")
    pages.at[API] = Answer("{}")
    assert "<p>read</p>" in (await read(browser, None)).text
    assert (await read(browser, API)).text == "{}"


async def test_a_page_that_asks_to_stay_is_closed(impatient: Browser, pages: Pages) -> None:
    """BRO-009: `beforeunload` is no way to keep a tab, nor to stay on a page that goes on."""
    pages.at[PAGE] = Answer(
        "<script>onbeforeunload = event => { event.preventDefault(); event.returnValue = 'stay'; return 'stay' };"
        "setTimeout(() => location = '/next', 50)</script>"
    )
    pages.at["https://hostile.example/next"] = Answer("<p>next</p>")
    pages.at[API] = Answer("")
    page = await read(impatient, API)
    assert page.body == b""


BLOCKING = {
    "dialogs without end": "<script>while (true) alert(1)</script>",
    "the page is stuck|no answer in time": "<script>while (true) {}</script>",
}


@pytest.mark.parametrize("fetch", [API, None], ids=["api", "document"])
@pytest.mark.parametrize("reason", BLOCKING)
async def test_a_page_that_never_lets_go_is_stuck_and_the_browser_is_not(
    browser: Browser, impatient: Browser, pages: Pages, reason: str, fetch: str | None
) -> None:
    """LANE-027: an endless script, endless dialogs; the next page is read."""
    pages.at[PAGE], pages.at[API] = Answer(BLOCKING[reason]), Answer("{}")
    with pytest.raises(PageFailed, match=reason):
        await read(browser if "dialogs" in reason else impatient, fetch)
    pages.at["https://friendly.example/"] = Answer("<p>friendly</p>")
    assert "friendly" in (await read(browser, None, "https://friendly.example/")).text


@pytest.mark.parametrize(
    "script",
    [
        "location.reload()",
        "setInterval(() => location.reload(), 5)",
        "location = '/page?' + Math.random()",
        "setInterval(() => history.pushState({}, '', '/page?' + Math.random()), 1)",
    ],
)
async def test_a_page_that_reloads_for_ever_comes_to_an_end(impatient: Browser, pages: Pages, script: str) -> None:
    """BRO-009: a read that is torn down is tried again, until the time is over."""

    async def again(request: Request) -> Answer:
        return Answer(f"<p>{'x' * 100}</p><script>{script}</script>")

    pages.at[PAGE] = again
    with trio.fail_after(30):
        with suppress(PageFailed):
            assert (await read(impatient, None)).status in (200, 404)


async def test_a_page_that_crashes_is_a_failure_of_the_page(own_chromium: Chromium, pages: Pages) -> None:
    """LANE-027: its process ends, the browser stays."""
    browser = Browser(own_chromium.endpoint, look_seconds=0.1)

    async def kill_it(request: Request) -> Answer:
        await trio.to_thread.run_sync(own_chromium.kill_renderers)
        await trio.sleep_forever()
        raise AssertionError

    pages.at[PAGE], pages.at[API] = Answer("<p>a page</p>"), kill_it
    with pytest.raises(PageFailed, match="crashed"), trio.fail_after(30):
        await read(browser, API)
    pages.at[API] = Answer("{}")
    assert (await read(browser, API)).text == "{}"
    await no_tab_is_left(own_chromium)


@pytest.mark.parametrize(
    "script",
    [
        "open('/popup')",
        "open('/popup', '_blank', 'noopener')",
        "document.write('<a id=a target=_blank rel=noopener href=/popup>x</a>'); document.getElementById('a').click()",
        "for (let i = 0; i < 5; i++) open('/popup?' + i, '_blank', 'popup,width=100,height=100')",
    ],
)
async def test_what_a_page_opens_is_closed_with_it(impatient: Browser, pages: Pages, script: str) -> None:
    """BRO-009: the fixture counts the tabs."""
    pages.at[PAGE] = Answer(f"<p>a page</p><script>{script}</script>")
    pages.at["https://hostile.example/popup"] = Answer("<script>open('/popup?more')</script>")
    pages.at[API] = Answer(" ")
    await read(impatient, API)


async def test_a_page_that_makes_chrome_say_too_much_is_its_own_failure(browser: Browser, pages: Pages) -> None:
    """LANE-027: a message beyond every limit ends the connection; the browser does not count as lost for it."""
    pages.at[PAGE] = Answer(f"<script>fetch('data:text/plain,' + 'x'.repeat({MAX_MESSAGE_BYTES + 1}))</script>")
    pages.at[API] = Answer("{}")
    with pytest.raises(PageFailed, match="say more than"):
        await read(browser, API)
    pages.at[PAGE] = Answer("<p>a page</p>")
    assert (await read(browser, API)).text == "{}"


@pytest.mark.parametrize(
    "headers",
    [
        {"refresh": "0;url=https://elsewhere.example/"},
        {"x-many": "y" * 60_000},
        {"content-type": "text/html; charset=utf-16"},
        {"content-type": "multipart/x-mixed-replace; boundary=x"},
        {"content-type": ""},
    ],
)
@pytest.mark.parametrize("fetch", [API, None], ids=["api", "document"])
async def test_odd_headers_end_in_an_answer_or_a_failure_of_the_page(
    impatient: Browser, pages: Pages, headers: dict[str, str], fetch: str | None
) -> None:
    """LANE-027"""
    pages.at[PAGE] = Answer("<p>a page</p>", 200, {**HTML, **headers})
    pages.at[API] = Answer("{}", 200, {**HTML, **headers})
    with trio.fail_after(30):
        with suppress(PageFailed):
            await read(impatient, fetch)
