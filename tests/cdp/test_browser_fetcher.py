"""The browser route of the Lanes over a real Chromium: kagane, comix and novelfull, and the images of two of them."""

import json
import os
import sys

import pytest
import trio

from bookmark_appliance.cdp.browser import Browser
from bookmark_appliance.clock import SystemClock
from bookmark_appliance.lanes.browser_fetcher import BrowserFetcher
from bookmark_appliance.lanes.outcome import Outcome
from bookmark_appliance.lanes.page_errors import BrowserLost, ChallengeHeld, TransportFailure, Unfetchable
from bookmark_appliance.lanes.routing import Route
from bookmark_appliance.lanes.series_read import SeriesRead, SeriesReader
from bookmark_appliance.lanes.site import Site
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.page import MAX_IMAGE_BYTES
from tests.cdp.chromium import Chromium
from tests.cdp.pages import HTML, Answer, Pages
from tests.lanes.fetching import at_once

KAGANE, COMIX, NOVELFULL = SITES["kagane"], SITES["comix"], SITES["novelfull"]
ID = "019d0001-1111-7001-8222-333344445501"
ADDRESS = {
    "kagane": f"https://kagane.to/series/{ID}",
    "comix": "https://comix.to/title/7h2qk-tailor-of-rainfall",
    "novelfull": "https://novelfull.com/the-reed-flute-hermit.html",
}
ASKED = {**ADDRESS, "kagane": f"https://kagane.to/api/v2/series/{ID}"}
KAGANE_IMAGE = f"https://kagane.to/api/v2/image/{ID}/compressed"
COMIX_IMAGE = "https://static.comix.to/ab12/i/0/1f/7h2qk0aa@280.jpg"
BODY = {
    "kagane": '{"series_books": [{"chapter_no": "12.5"}]}',
    "comix": """<script id="initial-data" type="application/json">{"queries": {"[\\"manga\\",\\"detail\\",\\"7h2qk\\"]":
        {"latestChapterUrl": "/title/7h2qk-tailor-of-rainfall/27-chapter-12.5"}}}</script>""",
    "novelfull": '<ul id="list-chapter"><li><a href="/the-reed-flute-hermit/chapter-12.5.html">x</a></li></ul>',
}
CHALLENGE = Answer("<script>window._cf_chl_opt = {}</script>", 403, {**HTML, "cf-mitigated": "challenge"})


@pytest.fixture
def fetcher(browser: Browser) -> BrowserFetcher:
    return BrowserFetcher(browser, SITES.values())


@pytest.fixture
def hurried(impatient: Browser) -> BrowserFetcher:
    """One that a challenge does not keep for long."""
    return BrowserFetcher(impatient, SITES.values())


def serve(pages: Pages, site: str, answer: Answer | None = None) -> None:
    pages.at[ADDRESS[site]] = Answer("<p>shell</p>")
    pages.at[ASKED[site]] = answer or Answer(BODY[site])


async def read(fetcher: BrowserFetcher, site: str, address: str = "") -> SeriesRead:
    reader = SeriesReader(SystemClock(), None, fetcher)
    return await reader.read(SITES[site], address or ADDRESS[site], Route.BROWSER, at_once)


@pytest.mark.parametrize("site", ADDRESS)
async def test_each_site_is_read_as_its_entry_says(fetcher: BrowserFetcher, pages: Pages, site: str) -> None:
    """BRO-001, BRO-002, BRO-003, BRO-004, BRO-006, SITE-003: API, own address, document."""
    serve(pages, site)
    result = await read(fetcher, site)
    assert result.judgement.outcome is Outcome.SUCCESS
    assert result.judgement.reading.latest is not None
    assert result.judgement.reading.latest.number == 12.5
    shown, asked = ADDRESS[site], ASKED[site]
    expected = [shown] if site == "novelfull" else [shown, asked]
    # Chromium asks for icons, and its maker for updates.
    assert [seen.address for seen in pages.requests if seen.address in (shown, asked)] == expected


async def test_query_and_fragment_of_a_comix_address_are_dropped(fetcher: BrowserFetcher, pages: Pages) -> None:
    """BRO-003"""
    serve(pages, "comix")
    result = await read(fetcher, "comix", ADDRESS["comix"] + "?a=b#c")
    assert result.judgement.outcome is Outcome.SUCCESS


@pytest.mark.parametrize("site", ADDRESS)
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Answer("<p>gone</p>", 404), Outcome.NOT_FOUND),
        (Answer("<p>slow down</p>", 429, {**HTML, "retry-after": "3600"}), Outcome.REFUSED),
        (Answer("<p>busy</p>", 503, {**HTML, "retry-after": "3600"}), Outcome.REFUSED),
        (Answer("<p>busy</p>", 503), Outcome.ERRORS),
        (Answer("", 302, {"location": "https://elsewhere.example/"}), Outcome.ERRORS),
    ],
)
async def test_answers_are_judged_as_over_the_plain_route(
    fetcher: BrowserFetcher, pages: Pages, site: str, answer: Answer, outcome: Outcome
) -> None:
    """BRO-010, LANE-022, LANE-026, LANE-027: the real status, and how long the Site asks us to stay away."""
    serve(pages, site, answer)
    pages.at["https://elsewhere.example/"] = Answer(BODY[site])
    result = await read(fetcher, site)
    assert result.judgement.outcome is outcome
    if "retry-after" in answer.headers:
        assert result.judgement.retry_after_ms == 3_600_000


@pytest.mark.parametrize("site", ADDRESS)
@pytest.mark.parametrize("answer", [CHALLENGE, Answer("<script>_cf_chl_opt</script>")], ids=["header", "body"])
async def test_a_challenge_that_holds_is_a_refusal(
    hurried: BrowserFetcher, pages: Pages, site: str, answer: Answer
) -> None:
    """BRO-010, LANE-022: by its header, or by its body alone."""
    serve(pages, site, answer)
    assert (await read(hurried, site)).judgement.outcome is Outcome.REFUSED


async def test_html_where_json_was_asked_and_a_check_of_its_own_are_refusals(
    fetcher: BrowserFetcher, pages: Pages
) -> None:
    """LANE-022: known by each Site's own module, at once."""
    serve(pages, "kagane", Answer("<!doctype html><p>log in</p>"))
    assert (await read(fetcher, "kagane")).judgement.reason == "HTML where JSON was asked"
    serve(pages, "comix", Answer("", 302, {"location": "/@waf/check"}))
    pages.at["https://comix.to/@waf/check"] = Answer("<title>Security check</title>")
    assert (await read(fetcher, "comix")).judgement.reason == "the Site's own check"


@pytest.mark.parametrize(
    ("site", "address"),
    [
        (KAGANE, "https://kagane.to/search"),
        (COMIX, "https://comix.to/title/a/1-chapter-2"),
        (NOVELFULL, "https://novelfull.com/genre/x"),
        (SITES["asura"], "https://asurascans.com/comics/a-4be1c07a"),
    ],
)
async def test_an_address_that_no_site_claims_is_not_navigated_to(
    fetcher: BrowserFetcher, pages: Pages, site: Site, address: str
) -> None:
    """BRO-007, LANE-025: nor is a slot taken."""

    async def never() -> None:
        raise AssertionError

    with pytest.raises(Unfetchable):
        await fetcher.fetch(site, address, before_request=never)
    assert pages.requests == []


async def test_a_challenge_that_holds_and_a_browser_that_is_lost_are_told_apart(
    hurried: BrowserFetcher, pages: Pages
) -> None:
    """BRO-010, LANE-022, LANE-023"""
    serve(pages, "kagane", CHALLENGE)
    with pytest.raises(ChallengeHeld):
        await hurried.fetch(KAGANE, ADDRESS["kagane"], before_request=at_once)
    with pytest.raises(BrowserLost):
        await BrowserFetcher.at("ws://127.0.0.1:1", SITES.values()).fetch(
            KAGANE, ADDRESS["kagane"], before_request=at_once
        )


@pytest.mark.parametrize("address", [KAGANE_IMAGE, COMIX_IMAGE])
async def test_covers_behind_a_gate_are_read_through_it(fetcher: BrowserFetcher, pages: Pages, address: str) -> None:
    """BRO-013, BRO-015, COV-010: straight to the image."""
    headers = {"content-type": "image/webp", "cross-origin-resource-policy": "same-origin"}
    pages.at[address] = Answer(b"RIFF\xff\xfe", 200, headers)
    page = await fetcher.fetch_image(address, at_once)
    assert (page.body, page.headers["content-type"], page.status) == (b"RIFF\xff\xfe", "image/webp", 200)


async def test_a_probe_reads_as_a_lane_does(chromium: Chromium, pages: Pages) -> None:
    """SITE-003, SITE-005, BRO-018, BRO-021: over the browser that is set; out of reach it is said so."""
    serve(pages, "kagane")
    for endpoint, outcome, latest in ((chromium.endpoint, "success", 12.5), ("ws://127.0.0.1:1", "unreachable", None)):
        told = await trio.run_process(
            [sys.executable, "-m", "bookmark_appliance", "probe", "kagane", ADDRESS["kagane"]],
            capture_stdout=True,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": os.getcwd(), "BROWSER_WS_URL": endpoint},
        )
        line = json.loads(told.stdout)
        assert (line["outcome"], line["latest"]) == (outcome, latest)


async def test_covers_that_are_none(fetcher: BrowserFetcher, hurried: BrowserFetcher, pages: Pages) -> None:
    """BRO-010, BRO-014, BRO-016: too large, elsewhere, challenged, missing; and no address of another form."""
    with pytest.raises(Unfetchable):
        await fetcher.fetch_image("https://static.comix.to/a.svg", at_once)
    assert pages.requests == []
    pages.at[COMIX_IMAGE] = Answer(b"\xff" * (MAX_IMAGE_BYTES + 1), 200, {"content-type": "image/jpeg"})
    with pytest.raises(TransportFailure, match="too large"):
        await fetcher.fetch_image(COMIX_IMAGE, at_once)
    pages.at[COMIX_IMAGE] = Answer("", 302, {"location": "https://elsewhere.example/x.jpg"})
    pages.at["https://elsewhere.example/x.jpg"] = Answer(b"x", 200, {"content-type": "image/jpeg"})
    with pytest.raises(TransportFailure, match="elsewhere"):
        await fetcher.fetch_image(COMIX_IMAGE, at_once)
    pages.at[COMIX_IMAGE] = CHALLENGE
    with pytest.raises(ChallengeHeld):
        await hurried.fetch_image(COMIX_IMAGE, at_once)
    del pages.at[COMIX_IMAGE]
    assert (await fetcher.fetch_image(COMIX_IMAGE, at_once)).status == 404
