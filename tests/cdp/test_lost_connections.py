"""A browser that goes away, hangs, or speaks in tongues, at each point of a read: a fake one on loopback."""

import json
from collections.abc import AsyncIterator

import pytest
import trio
import trio.testing

from bookmark_appliance.cdp import browser as reading
from bookmark_appliance.cdp import connection as connecting
from bookmark_appliance.cdp import discovery
from bookmark_appliance.cdp.browser import Browser
from bookmark_appliance.cdp.discovery import parse_endpoint
from bookmark_appliance.cdp.errors import BrowserGone, PageFailed
from bookmark_appliance.cdp.tab import TabRead
from bookmark_appliance.lanes.challenge import arrived
from bookmark_appliance.page import MAX_BODY_BYTES, Page
from tests.cdp.fake_browser import SEEN, WELL, Act, Channel, FakeBrowser, cut, fake_browser, hang, json_answer
from tests.lanes.fetching import at_once

READ = TabRead("https://site.example/page", "https://site.example/api", MAX_BODY_BYTES)
ASKED = [method for method in WELL if method not in ("Browser.getVersion", "Target.closeTarget")]
HELD = ASKED[ASKED.index("Page.navigate") :]


@pytest.fixture
async def fake(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeBrowser]:
    """One whose clients lose patience in tenths of a second."""
    for room, names in (
        (discovery, ("DISCOVERY_SECONDS",)),
        (connecting, ("UPGRADE_SECONDS", "COMMAND_SECONDS")),
        (reading, ("CLOSE_SECONDS",)),
    ):
        for name in names:
            monkeypatch.setattr(room, name, 0.4)
    async with fake_browser() as started:
        yield started


async def read(fake: FakeBrowser, browser: Browser | None = None) -> Page:
    browser = browser or Browser(fake.endpoint, hold_seconds=0.6, look_seconds=0.05)
    with trio.fail_after(8):
        return await browser.read(READ, arrived, at_once)


async def test_a_well_browser_is_asked_in_this_order(fake: FakeBrowser) -> None:
    """BRO-017: discovered at the address that was configured, by that name; nothing is open afterwards."""
    assert (await read(fake)).text == "{}"
    assert [method for method in fake.commands if method != "Target.getTargets"] == [*ASKED, "Target.closeTarget"]
    assert fake.tabs == []
    assert f"\r\nhost: 127.0.0.1:{fake.port}\r\n".encode() in fake.discovered.lower()


@pytest.mark.parametrize("point", ["discovery", "upgrade", *ASKED])
async def test_a_connection_that_is_cut_is_a_browser_that_is_gone(fake: FakeBrowser, point: str) -> None:
    """BRO-012, BRO-017, LANE-023: at each point; the next read needs no reconnect and closes what is left."""
    browser = Browser(fake.endpoint, hold_seconds=0.6, look_seconds=0.05)
    fake.at[point] = cut
    with pytest.raises(BrowserGone):
        await read(fake, browser)
    if point != "Browser.setDownloadBehavior":  # what follows it is sent without waiting
        assert len(fake.tabs) == (0 if point in ("discovery", "upgrade") else 1)
    fake.at.clear()
    assert (await read(fake, browser)).text == "{}"
    assert fake.tabs == []


@pytest.mark.parametrize("point", ["discovery", "upgrade", "Target.createTarget", "Target.attachToTarget"])
async def test_a_browser_that_does_not_answer_is_gone(fake: FakeBrowser, point: str) -> None:
    """LANE-023: every step of its own has a deadline."""
    fake.at[point] = hang
    with pytest.raises(BrowserGone):
        await read(fake)


@pytest.mark.parametrize("point", HELD)
async def test_a_page_that_does_not_answer_in_a_browser_that_does_is_stuck(fake: FakeBrowser, point: str) -> None:
    """LANE-027: a failure of the page; its tab is closed."""
    fake.at[point] = hang
    with pytest.raises(PageFailed):
        await read(fake)
    assert fake.tabs == []
    assert "Browser.getVersion" in fake.commands


@pytest.mark.parametrize("point", HELD)
async def test_a_page_that_does_not_answer_in_a_browser_that_does_not_either(fake: FakeBrowser, point: str) -> None:
    """LANE-023: the browser hangs as a whole."""
    fake.at[point] = fake.at["Browser.getVersion"] = fake.at["Target.getTargets"] = hang
    with pytest.raises(BrowserGone):
        await read(fake)


@pytest.mark.parametrize("point", HELD[1:])
async def test_an_error_of_a_document_that_went_away_is_tried_again(fake: FakeBrowser, point: str) -> None:
    """BRO-009: a reload under us."""
    answers = iter(["Execution context was destroyed.", "Cannot find context with specified id", None])

    async def torn(channel: Channel) -> None:
        message = next(answers)
        if message is None:
            await channel.answer(WELL[point])
        else:
            await channel.fail(-32000, message)

    fake.at[point] = torn
    assert (await read(fake)).text == "{}"


async def test_an_error_that_no_retry_helps_is_the_pages(fake: FakeBrowser) -> None:
    """LANE-027: of the protocol, in Chrome's words."""

    async def unknown(channel: Channel) -> None:
        await channel.fail(-32601, "'Page.createIsolatedWorld' wasn't found")

    fake.at["Page.createIsolatedWorld"] = unknown
    with pytest.raises(PageFailed, match="wasn't found"):
        await read(fake)
    assert fake.tabs == []


async def raw(channel: Channel, data: bytes) -> None:
    await channel.stream.send_all(data)


async def endless(channel: Channel) -> None:
    await raw(channel, b"HTTP/1.1 200 OK\r\n\r\n")
    try:
        while True:
            await raw(channel, b" " * 60_000)
    except trio.BrokenResourceError:
        return


def version(address: object) -> Act:
    async def act(channel: Channel) -> None:
        await raw(channel, json_answer(json.dumps({"webSocketDebuggerUrl": address})))

    return act


def saying(data: bytes) -> Act:
    async def act(channel: Channel) -> None:
        await raw(channel, data)

    return act


@pytest.mark.parametrize(
    "act",
    [
        endless,
        saying(b""),
        saying(b"SSH-2.0-OpenSSH_9.2\r\n"),
        saying(b"HTTP/1.1 500 Host header is specified and is not an IP address or localhost.\r\n\r\n"),
        saying(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"),
        saying(json_answer("[]")),
        saying(json_answer("")),
        saying(json_answer("\ud800".encode("utf-8", "surrogatepass").decode("latin-1"))),
        version(None),
        version(7),
        version("ws://[::/devtools/browser/1"),
        version("ws://127.0.0.1/json/version"),
        version("ws://127.0.0.1/devtools/browser/1 2\r\nX: y"),
        saying(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/json/version\r\nContent-Length: 0\r\n\r\n"),
    ],
)
async def test_what_is_no_browser_is_a_browser_that_is_gone(fake: FakeBrowser, act: Act) -> None:
    """BRO-017, LANE-023: whatever listens there."""
    fake.at["discovery"] = act
    with pytest.raises(BrowserGone):
        await read(fake)
    assert fake.connections == 0


async def test_an_answer_never_sends_us_to_another_machine(fake: FakeBrowser) -> None:
    """BRO-017: of the address that discovery names only the path counts."""
    fake.at["discovery"] = {"webSocketDebuggerUrl": "ws://203.0.113.7:1/devtools/browser/abc"}
    assert (await read(fake)).text == "{}"


async def test_discovery_is_repeated_for_every_read(fake: FakeBrowser) -> None:
    """BRO-017: a restarted browser has another id."""
    browser = Browser(fake.endpoint)
    for number in range(3):
        fake.discovered = b""
        await read(fake, browser)
        assert fake.discovered
        assert fake.connections == number + 1


async def test_nobody_at_the_endpoint_is_a_browser_that_is_gone() -> None:
    """LANE-023"""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    with pytest.raises(BrowserGone):
        await Browser(f"ws://127.0.0.1:{port}").read(READ, arrived, at_once)


@pytest.mark.parametrize("message", ["no json", "[]", '{"id": "one"}', '{"id": 1, "error": 7}', '{"method": 7}'])
async def test_a_peer_that_speaks_something_else_is_gone(fake: FakeBrowser, message: str) -> None:
    """LANE-023"""

    async def babble(channel: Channel) -> None:
        await channel.say(message)

    fake.at["Page.navigate"] = babble
    with pytest.raises(BrowserGone, match="does not speak"):
        await read(fake)


async def test_what_was_not_asked_for_is_passed_over(fake: FakeBrowser) -> None:
    """LANE-023: answers to nobody, to another session, unknown events, more events than are kept."""

    async def chatter(channel: Channel) -> None:
        number = channel.command["id"]
        await channel.say({"id": 12345, "result": {"frameId": "no"}})
        await channel.say({"id": number, "result": {"errorText": "not ours"}, "sessionId": "S2"})
        await channel.say({"method": "Page.somethingNew", "params": {"a": ["b"]}, "sessionId": "S1"})
        await channel.say({})
        response = {"url": "https://site.example/", "status": 200, "headers": {}}
        event = {"requestId": "L0", "loaderId": "L0", "type": "Document", "response": response, "frameId": "T1"}
        for _ in range(300):
            await channel.say({"method": "Network.responseReceived", "params": event, "sessionId": "S1"})
        await channel.answer(WELL["Page.navigate"])

    fake.at["Page.navigate"] = chatter
    assert (await read(fake)).text == "{}"


@pytest.mark.parametrize("malformed", [{}, {"frameTree": 1}, {"frameTree": {"frame": {"loaderId": 7}}}])
async def test_an_answer_of_another_form_is_the_pages_failure(fake: FakeBrowser, malformed: dict[str, object]) -> None:
    """LANE-027: a later Chrome, or a broken one."""
    fake.at["Page.getFrameTree"] = malformed
    with pytest.raises(PageFailed, match="understand"):
        await read(fake)


@pytest.mark.parametrize(
    "seen",
    [{"status": "200"}, {"piece": "=&"}, {"piece": 7}, {"headers": {"a": 1}}, {"size": 3, "piece": ""}, {"size": 9}],
)
async def test_a_body_of_another_form_is_the_pages_failure(fake: FakeBrowser, seen: dict[str, object]) -> None:
    """LANE-027"""
    fake.at["Runtime.callFunctionOn"] = {"result": {"value": {**SEEN, **seen}}}
    with pytest.raises(PageFailed):
        await read(fake)


async def test_a_message_beyond_the_limit_ends_the_connection_for_this_page(fake: FakeBrowser) -> None:
    """LANE-027: TRAPS 13; the socket does not stay open, and the tab is closed by the next read."""
    browser = Browser(fake.endpoint)

    async def shout(channel: Channel) -> None:
        await channel.say("x" * (connecting.MAX_MESSAGE_BYTES + 1))

    fake.at["Page.navigate"] = shout
    with pytest.raises(PageFailed, match="say more"):
        await read(fake, browser)
    assert len(fake.tabs) == 1
    fake.at.clear()
    await read(fake, browser)
    assert fake.tabs == []


@pytest.mark.parametrize("event", ["Inspector.targetCrashed", "Inspector.detached"])
async def test_a_page_that_is_lost_fails_its_command_at_once(fake: FakeBrowser, event: str) -> None:
    """LANE-027: though its own answer never comes."""

    async def lost(channel: Channel) -> None:
        await channel.say({"method": event, "params": {}, "sessionId": "S1"})

    fake.at["Runtime.callFunctionOn"] = lost
    with pytest.raises(PageFailed, match=r"crashed|closed"), trio.fail_after(10):
        await read(fake, Browser(fake.endpoint))


@pytest.mark.parametrize(("stopped", "reason"), [("T1", "broke off"), ("another frame", "still loading")])
async def test_a_document_that_is_never_whole_is_the_pages_failure(
    fake: FakeBrowser, stopped: str, reason: str
) -> None:
    """BRO-006, LANE-027: what fails while Chrome commits it is told as stopped alone (measured with Chromium 156)."""

    async def stop(channel: Channel) -> None:
        await channel.say({"method": "Page.frameStoppedLoading", "params": {"frameId": stopped}, "sessionId": "S1"})
        await channel.answer({"result": {"value": {"loading": True}}})

    fake.at["Runtime.callFunctionOn"] = stop
    with pytest.raises(PageFailed, match=reason):
        await read(fake)
    assert fake.tabs == []


@pytest.mark.parametrize("text", ["ws://browser.example:9222", "http://127.0.0.1:9222", "ws://127.0.0.1", "", "ws://"])
def test_an_endpoint_is_an_address_or_localhost(text: str) -> None:
    """BRO-017: as the setting is."""
    with pytest.raises(ValueError, match="must be"):
        parse_endpoint(text)
    assert parse_endpoint("ws://[::1]:9222").authority == "[::1]:9222"
    assert parse_endpoint("ws://localhost:80").authority == "localhost:80"


@pytest.mark.parametrize("point", [*ASKED, "Target.closeTarget"])
async def test_a_caller_that_gives_up_is_cancelled_and_the_tab_is_closed(fake: FakeBrowser, point: str) -> None:
    """BRO-009, BRO-012, OPS-007: at each point; cancellation is never an error of the browser's."""
    reached = trio.Event()
    other: dict[str, object] = {**WELL, "Target.closeTarget": {"success": True}}

    async def late(channel: Channel) -> None:
        reached.set()
        await trio.testing.wait_all_tasks_blocked(0.01)
        if point == "Target.closeTarget":
            fake.tabs.clear()
        await channel.answer(other[point])

    fake.at[point] = late
    browser = Browser(fake.endpoint)
    with trio.fail_after(8):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read, fake, browser)
            await reached.wait()
            nursery.cancel_scope.cancel()
    assert nursery.cancel_scope.cancelled_caught
    assert fake.tabs == []


async def test_a_lost_browser_is_not_taken_for_a_caller_that_gave_up(fake: FakeBrowser) -> None:
    """BRO-012: the connection ends first, then the caller gives up: the caller is told of the browser."""
    told: list[Exception] = []

    async def note(channel: Channel) -> None:
        await cut(channel)

    async def reader() -> None:
        try:
            await read(fake)
        except BrowserGone as gone:
            told.append(gone)

    fake.at["Runtime.callFunctionOn"] = note
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reader)
    assert len(told) == 1


async def test_one_page_at_a_time(fake: FakeBrowser) -> None:
    """BRO-011, LANE-056: in the order of asking; the slot is used when the turn has come, once a read."""
    browser = Browser(fake.endpoint)
    inside, most, slots = 0, 0, 0

    async def before_request() -> None:
        nonlocal inside, most, slots
        inside, slots = inside + 1, slots + 1
        most = max(most, inside)
        assert len(fake.tabs) == 1
        await trio.testing.wait_all_tasks_blocked(0.01)

    def over(page: Page) -> bool:
        nonlocal inside
        inside -= 1
        return True

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(browser.read, READ, over, before_request)
    assert (most, slots, fake.connections) == (1, 5, 5)


async def test_a_tab_that_does_not_close_holds_up_nobody(fake: FakeBrowser, caplog: pytest.LogCaptureFixture) -> None:
    """BRO-009, BRO-011: it is said, remembered, and tried again before the next read, which goes on all the same."""

    async def stays(channel: Channel) -> None:
        await channel.answer({"success": True})

    browser = Browser(fake.endpoint)
    fake.at["Target.closeTarget"] = stays
    for _ in range(2):
        assert (await read(fake, browser)).text == "{}"
    assert "could not be closed" in caplog.text
    fake.at.clear()
    assert (await read(fake, browser)).text == "{}"
    assert fake.tabs == []


async def test_a_slot_that_is_refused_asks_the_site_nothing(fake: FakeBrowser) -> None:
    """LANE-056: what the database raises passes through, and the tab is closed."""

    async def refused() -> None:
        raise ConnectionError("no database")

    with pytest.raises(ConnectionError, match="no database"):
        await Browser(fake.endpoint).read(READ, arrived, refused)
    assert "Page.navigate" not in fake.commands
    assert fake.tabs == []
