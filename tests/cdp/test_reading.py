"""What a held tab reads, with a real Chromium."""

import json
from collections.abc import Callable, Iterator

import pytest
import trio

from bookmark_appliance.cdp.browser import TELL_SECONDS, Browser
from bookmark_appliance.cdp.errors import PageFailed
from bookmark_appliance.cdp.tab import TabRead
from bookmark_appliance.lanes.challenge import arrived
from bookmark_appliance.page import MAX_BODY_BYTES, MAX_IMAGE_BYTES, Page
from tests.cdp.pages import HTML, Answer, Handler, Pages, Request, never
from tests.lanes.fetching import at_once

PAGE = "https://site.example/page"
API = "https://site.example/api"
IMAGE = "https://images.example/cover.png"

CHALLENGE = Answer(
    "<script>window._cf_chl_opt = {}</script>", 403, {**HTML, "cf-mitigated": "challenge", "retry-after": "7"}
)
CLEARING = """<title>Just a moment...</title><script>
    window._cf_chl_opt = {};
    setTimeout(() => { document.cookie = "cleared=1; path=/"; location.reload(); }, 600);
</script>"""
STRICT = {
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "cross-origin-opener-policy": "same-origin",
    "content-security-policy": "default-src 'none'; sandbox",
}


async def read(browser: Browser, fetch: str | None, address: str = PAGE, most: int = MAX_BODY_BYTES) -> Page:
    return await browser.read(TabRead(address, fetch, most), arrived, at_once)


def cleared_by_cookie(answer: Answer) -> Handler:
    async def handler(request: Request) -> Answer:
        if "cleared=1" in request.headers.get("cookie", ""):
            return answer
        return Answer(CLEARING, 403, {**HTML, "cf-mitigated": "challenge"})

    return handler


@pytest.mark.parametrize("fetch", [API, PAGE, None], ids=["api", "own address", "document"])
async def test_a_challenge_that_clears_by_a_reload_is_waited_for(
    browser: Browser, pages: Pages, fetch: str | None
) -> None:
    """BRO-002, BRO-004, BRO-006, BRO-009: the tab is held, and read again until the Site's own answer is there."""
    host = {API: "api.clears.example", PAGE: "page.clears.example", None: "document.clears.example"}[fetch]
    shown, asked = f"https://{host}/page", fetch and fetch.replace("site.example", host)
    body = "<html><head></head><body><p>the page</p></body></html>"
    pages.at[shown] = cleared_by_cookie(Answer(body))
    if fetch == API:
        body = '{"the": "answer"}'
        pages.at[f"https://{host}/api"] = cleared_by_cookie(Answer(body, 200, {"content-type": "application/json"}))
    page = await read(browser, asked, shown)
    assert (page.status, page.text, page.address) == (200, body, asked or shown)
    before = {address: pages.asked(address) for address in (shown, asked or shown)}
    await read(browser, asked, shown)
    assert pages.asked(shown) - before[shown] == (2 if asked == shown else 1), "the clearance is not kept"
    assert asked is None or pages.asked(asked) - before[asked] == (2 if asked == shown else 1)


@pytest.mark.parametrize("fetch", [API, PAGE, None], ids=["api", "own address", "document"])
async def test_a_challenge_that_never_clears_is_the_last_answer(
    impatient: Browser, pages: Pages, fetch: str | None
) -> None:
    """BRO-010: with its headers."""
    pages.at[PAGE] = pages.at[API] = CHALLENGE
    page = await read(impatient, fetch)
    assert (page.status, page.headers["cf-mitigated"], page.headers["retry-after"]) == (403, "challenge", "7")
    assert "_cf_chl_opt" in page.text
    assert not arrived(page)


async def test_a_hold_ends_before_its_caller_gives_up(browser: Browser, pages: Pages) -> None:
    """BRO-009, LANE-045: a challenge that was held to a claim's end is an answer, and counts as a refusal."""
    pages.at[PAGE] = CHALLENGE
    with trio.fail_after(TELL_SECONDS + 4):
        page = await read(browser, PAGE)
    assert not arrived(page)


@pytest.mark.parametrize("fetch", [API, PAGE, None], ids=["api", "own address", "document"])
@pytest.mark.parametrize(
    ("status", "headers"),
    [(404, {}), (410, {}), (429, {"retry-after": "90"}), (503, {"retry-after": "120"}), (403, {}), (500, {})],
)
async def test_any_other_answer_ends_the_read_at_once(
    browser: Browser, pages: Pages, fetch: str | None, status: int, headers: dict[str, str]
) -> None:
    """BRO-002, BRO-010, LANE-022, LANE-026: one look, the real status, the headers that matter."""
    pages.at[PAGE] = Answer("<p>a page</p>")
    pages.at[fetch or PAGE] = Answer("<p>no</p>", status, {**HTML, **headers})
    page = await read(browser, fetch)
    assert page.status == status
    assert headers.items() <= page.headers.items()
    assert "<p>no</p>" in page.text
    assert pages.asked(fetch or PAGE) == (2 if fetch == PAGE else 1)


@pytest.mark.parametrize("status", [404, 403, 500])
async def test_an_error_status_without_a_body_is_an_answer_too(browser: Browser, pages: Pages, status: int) -> None:
    """BRO-010: Chromium shows a page of its own for it, from which nothing can be fetched."""
    pages.at[PAGE] = Answer(b"", status, {**HTML, "retry-after": "5"})
    for fetch in (API, PAGE, None):
        page = await read(browser, fetch)
        assert (page.status, page.body, page.headers["retry-after"]) == (status, b"", "5")


@pytest.mark.parametrize(("fetch", "body"), [(API, " \n"), (None, "")])
async def test_an_empty_page_is_looked_at_again(
    impatient: Browser, browser: Browser, pages: Pages, fetch: str | None, body: str
) -> None:
    """BRO-008: until it holds something, or the time is over."""
    pages.at[PAGE] = Answer(body)
    looks = 0

    async def filling(request: Request) -> Answer:
        nonlocal looks
        looks += 1
        return Answer(body if looks < 3 else "filled")

    pages.at[API] = filling
    if fetch:
        assert (await read(browser, fetch)).text == "filled"
        return
    page = await read(impatient, None)
    assert (page.status, page.body) == (200, b"")


async def test_html_in_place_of_json_is_what_it_is(browser: Browser, pages: Pages) -> None:
    """LANE-022: for the Site's own module to judge."""
    pages.at[PAGE], pages.at[API] = Answer("<p>shell</p>"), Answer("<!doctype html><p>log in</p>")
    page = await read(browser, API)
    assert (page.status, page.text) == (200, "<!doctype html><p>log in</p>")


async def test_a_page_that_is_made_by_scripts_does_not_stand_in_the_way(browser: Browser, pages: Pages) -> None:
    """BRO-002: the API is asked from a page whose own scripts replace everything in it and push addresses."""
    pages.at[PAGE] = Answer(
        "<div id=app></div><script>history.pushState({}, '', '/elsewhere');"
        "setInterval(() => { document.open(); document.write('<p>' + Date.now()); document.close(); }, 20)</script>"
    )
    pages.at[API] = Answer('{"n": 1}', 200, {"content-type": "application/json"})
    page = await read(browser, API)
    assert (page.text, page.address) == ('{"n": 1}', API)


async def test_a_document_is_read_when_it_has_been_parsed(browser: Browser, pages: Pages) -> None:
    """BRO-006: never half of it; a script that is slow to arrive is waited for."""
    pages.at[PAGE] = Answer("<p>first half</p><script src=/slow.js></script><p>second half</p>")

    async def slow(request: Request) -> Answer:
        await trio.sleep(2.5)  # longer than one look waits
        return Answer("document.title = 'ran'", 200, {"content-type": "text/javascript"})

    pages.at["https://site.example/slow.js"] = slow
    page = await read(browser, None)
    assert "second half" in page.text
    assert page.headers["content-type"] == HTML["content-type"]


@pytest.mark.parametrize("fetch", [API, None], ids=["api", "document"])
async def test_a_page_beyond_the_cap_is_cut_off_in_the_tab(browser: Browser, pages: Pages, fetch: str | None) -> None:
    """BRO-016: 4 MiB, in pieces that no message limit stops."""
    long = "<html><head></head><body>" + "".join(f"{n:09}é" for n in range(MAX_BODY_BYTES // 10))
    pages.at[PAGE] = Answer("<p>a page</p>" if fetch else long)
    pages.at[API] = Answer(long)
    page = await read(browser, fetch)
    assert page.truncated
    assert page.body == long.encode()[:MAX_BODY_BYTES]
    pages.at[PAGE] = Answer("<p>a page</p>" if fetch else long[:-1_000_000] + "</body></html>")
    pages.at[API] = Answer(long[:-1_000_000] + "</body></html>")
    page = await read(browser, fetch)
    assert not page.truncated
    assert page.text == long[:-1_000_000] + "</body></html>"


class Endless:
    """A body that goes on for as long as it is taken; `served` tells how far it came, in bytes."""

    def __init__(self, chunk: bytes) -> None:
        self._chunk = chunk
        self.served = 0

    def __iter__(self) -> Iterator[bytes]:
        while True:
            self.served += len(self._chunk)
            yield self._chunk


@pytest.mark.parametrize("kind", ["document", "blanks", "api", "image"])
async def test_what_loads_without_end_is_stopped_at_the_cap(browser: Browser, pages: Pages, kind: str) -> None:
    """BRO-016, SITE-040: documents and images are cut off; behind an API, the page that it is asked from."""
    chapter = b"<p>a chapter and another, with a name of its own</p>" * 1_000
    shown = Endless({"blanks": b" " * 65_536, "image": b"\xff" * 65_536}.get(kind, chapter))
    asked_before = 0

    async def late(request: Request) -> Answer:
        """A challenge, until the page behind it has been stopped."""
        nonlocal asked_before
        before, asked_before = asked_before, shown.served
        return Answer("{}") if shown.served == before else CHALLENGE

    pages.at[PAGE], pages.at[API] = Answer("", rest=shown), late
    pages.at[IMAGE] = Answer("", 200, {"content-type": "image/jpeg"}, rest=shown)
    most = MAX_IMAGE_BYTES if kind == "image" else MAX_BODY_BYTES
    with trio.fail_after(30):
        if kind == "image":
            page = await browser.read(TabRead(IMAGE, "", most, fresh=False), arrived, at_once)
        else:
            page = await read(browser, API if kind == "api" else None)
    assert (page.status, page.truncated) == (200, kind != "api")
    if kind == "document":
        assert b"<p>a chapter and another, with a name of its own</p>" in page.body
    assert shown.served < 3 * most + 16_000_000, "what lies on the way is counted too"


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (Answer("<p>half of it", 200, {**HTML, "content-length": "1000"}), "net::ERR_CONTENT_LENGTH_MISMATCH"),
        (Answer("", rest=[b"<p>half of it"]), "net::ERR_INCOMPLETE_CHUNKED_ENCODING"),
    ],
)
async def test_a_document_that_breaks_off_fails_at_once(
    browser: Browser, pages: Pages, broken: Answer, reason: str
) -> None:
    """BRO-006, BRO-009, LANE-027: also behind a challenge; to ask an API from it, half of it is enough."""
    pages.at[PAGE], pages.at[API] = broken, Answer("{}")
    pages.at["https://broken.example/"] = cleared_by_cookie(broken)
    with trio.fail_after(20):
        for address in (PAGE, "https://broken.example/"):
            with pytest.raises(PageFailed, match=f"{reason}|the document broke off"):
                await read(browser, None, address)
        assert (await read(browser, API)).text == "{}"


async def test_a_challenge_that_leads_astray_is_the_answer(browser: Browser, pages: Pages) -> None:
    """BRO-010: what can't be fetched afterwards tells less."""
    answers = iter([CHALLENGE])

    async def astray(request: Request) -> Answer:
        return next(answers, Answer("", 302, {"location": "https://elsewhere.example/"}))

    pages.at[PAGE], pages.at[API] = Answer("<p>a page</p>"), astray
    with trio.fail_after(20):
        assert (await read(browser, API)).headers["cf-mitigated"] == "challenge"


@pytest.mark.parametrize("policies", [{}, STRICT], ids=["open", "strict"])
@pytest.mark.parametrize("size", [100, 3_000_000])
async def test_an_image_is_read_where_it_is_shown(
    browser: Browser, pages: Pages, policies: dict[str, str], size: int
) -> None:
    """BRO-015: byte for byte, with its type, whatever it forbids other pages."""
    body = bytes(range(256)) * (size // 256 + 1)
    pages.at[IMAGE] = Answer(body, 200, {"content-type": "image/png", "cache-control": "max-age=600", **policies})
    page = await browser.read(TabRead(IMAGE, "", MAX_IMAGE_BYTES, fresh=False), arrived, at_once)
    assert (page.status, page.headers["content-type"], page.truncated) == (200, "image/png", False)
    assert page.body == body
    assert page.address == IMAGE


async def test_an_image_beyond_the_cap_is_cut_off_in_the_tab(browser: Browser, pages: Pages) -> None:
    """BRO-016: 10 MiB."""
    pages.at[IMAGE] = Answer(b"\xff" * (MAX_IMAGE_BYTES + 1), 200, {"content-type": "image/jpeg"})
    page = await browser.read(TabRead(IMAGE, "", MAX_IMAGE_BYTES, fresh=False), arrived, at_once)
    assert page.truncated
    assert len(page.body) == MAX_IMAGE_BYTES


@pytest.mark.parametrize("policies", [{}, STRICT], ids=["open", "strict"])
async def test_a_strict_page_lets_itself_be_read(browser: Browser, pages: Pages, policies: dict[str, str]) -> None:
    """BRO-002, BRO-006: COEP, CORP and a content security policy that forbids every connection."""
    pages.at[PAGE] = Answer("<p>a page</p>", 200, {**HTML, **policies})
    pages.at[API] = Answer("{}", 200, {"content-type": "application/json", **policies})
    assert (await read(browser, API)).text == "{}"
    assert "<p>a page</p>" in (await read(browser, None)).text


async def test_a_fetch_in_the_tab_asks_the_site_each_time(browser: Browser, pages: Pages) -> None:
    """BRO-004: a page is never read from a cache; redirects end where they end."""
    pages.at[PAGE] = Answer("<p>a page</p>", 200, {**HTML, "cache-control": "max-age=600"})
    pages.at["https://site.example/moved"] = Answer("", 302, {"location": "/page"})
    page = await read(browser, "https://site.example/moved")
    assert (page.status, page.address) == (200, PAGE)
    assert pages.asked(PAGE) == 2


def dead_end(pages: Pages) -> None:
    pages.at[PAGE] = Answer("<p>a page</p>")
    pages.at[API] = Answer("", 302, {"location": "https://elsewhere.example/"})


def downloads(pages: Pages) -> None:
    pages.at[PAGE] = Answer(b"\0" * 100, 200, {"content-type": "application/octet-stream"})


def no_content(pages: Pages) -> None:
    pages.at[PAGE] = Answer(b"", 204, {})


@pytest.mark.parametrize(
    ("arranged", "reason"),
    [
        (dead_end, "Failed to fetch"),
        (downloads, "net::ERR_ABORTED"),
        (no_content, "net::ERR_ABORTED"),
    ],
)
async def test_what_does_not_load_is_a_failure_of_the_page(
    browser: Browser, pages: Pages, arranged: Callable[[Pages], None], reason: str
) -> None:
    """LANE-027: never a number, and said in Chromium's words."""
    arranged(pages)
    with pytest.raises(PageFailed, match=reason):
        await read(browser, API)


@pytest.mark.parametrize("fetch", [API, None], ids=["api", "document"])
async def test_a_site_that_never_answers_is_a_failure_of_the_page(
    impatient: Browser, pages: Pages, fetch: str | None
) -> None:
    """BRO-009: the time of the hold is the whole read's."""
    pages.at[PAGE] = Answer("<p>a page</p>")
    pages.at[fetch or PAGE] = never
    with pytest.raises(PageFailed, match="no answer in time"):
        await read(impatient, fetch)


async def test_a_name_that_does_not_resolve_is_a_failure_of_the_page(browser: Browser) -> None:
    """LANE-027"""
    with pytest.raises(PageFailed, match="net::ERR"):
        await read(browser, None, "https://127.0.0.1:1/")
    with pytest.raises(PageFailed, match="Cannot navigate to invalid URL"):
        await read(browser, None, "no address")


async def test_status_of_json(browser: Browser, pages: Pages) -> None:
    """BRO-001: an API's answer is read as it stands."""
    answer = json.dumps({"series_books": [{"chapter_no": "12.5"}]})
    pages.at[PAGE], pages.at[API] = Answer("<p>a page</p>"), Answer(answer, 200, {"content-type": "application/json"})
    assert (await read(browser, API)).text == answer
