"""What an answer comes to, whatever the Site."""

import pytest

from bookmark_appliance.clock import DAY_MS, MINUTE_MS, SECOND_MS
from bookmark_appliance.lanes.challenge import arrived, is_challenge
from bookmark_appliance.lanes.judgement import judge_page
from bookmark_appliance.lanes.outcome import Judgement, Outcome
from bookmark_appliance.lanes.site import NOTHING_READ
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.lanes.tags import Markup
from bookmark_appliance.page import Page

URL = "https://asurascans.com/comics/glass-tide-4be1c07a"
BODY = b'<a href="/comics/glass-tide/chapter/41">x</a>'
CHALLENGE = b"<script>window._cf_chl_opt={}</script>" + BODY
NOW_MS = 1_800_000_000_000  # 2027-01-15T08:00:00Z


def judged(status: int, headers: dict[str, str] | None = None, body: bytes = BODY) -> Judgement:
    return judge_page(SITES["asura"], URL, Page(status, headers or {}, body, URL), NOW_MS)


@pytest.mark.parametrize(
    ("status", "headers", "body", "outcome"),
    [
        (200, {}, BODY, Outcome.SUCCESS),
        (200, {}, b"<p>nothing</p>", Outcome.NO_CHAPTER),
        (200, {"cf-mitigated": " Challenge "}, BODY, Outcome.REFUSED),
        (200, {"cf-mitigated": "block"}, BODY, Outcome.SUCCESS),
        (200, {"retry-after": "5"}, BODY, Outcome.SUCCESS),
        (200, {}, CHALLENGE, Outcome.REFUSED),
        (403, {}, BODY, Outcome.REFUSED),
        (429, {}, BODY, Outcome.REFUSED),
        (503, {"retry-after": "soon"}, BODY, Outcome.REFUSED),
        (503, {}, BODY, Outcome.ERRORS),
        (503, {}, CHALLENGE, Outcome.REFUSED),
        (404, {}, CHALLENGE, Outcome.REFUSED),
        (404, {"cf-mitigated": "challenge"}, BODY, Outcome.REFUSED),
        (404, {"retry-after": "5"}, BODY, Outcome.NOT_FOUND),
        (400, {}, BODY, Outcome.NOT_FOUND),
        (410, {}, BODY, Outcome.NOT_FOUND),
        (451, {}, BODY, Outcome.NOT_FOUND),
        (500, {}, BODY, Outcome.ERRORS),
        (502, {"retry-after": "5"}, BODY, Outcome.ERRORS),
        (522, {}, BODY, Outcome.ERRORS),
        (204, {}, b"", Outcome.ERRORS),
        (206, {}, BODY, Outcome.ERRORS),
        (304, {}, b"", Outcome.ERRORS),
        (301, {"location": "/"}, BODY, Outcome.ERRORS),
    ],
)
def test_status_header_and_body_in_their_order(
    status: int, headers: dict[str, str], body: bytes, outcome: Outcome
) -> None:
    """LANE-022, LANE-024, LANE-026, LANE-027: and only a page that may be believed gives facts."""
    judgement = judged(status, headers, body)
    assert judgement.outcome is outcome
    if outcome not in (Outcome.SUCCESS, Outcome.NO_CHAPTER):
        assert judgement.reading == NOTHING_READ, "LANE-051: nothing is read of an unreadable page"


@pytest.mark.parametrize(
    ("retry_after", "wait_ms"),
    [
        ("120", 120 * SECOND_MS),
        (" 0120 ", 120 * SECOND_MS),
        ("0", 0),
        ("86401", DAY_MS),
        ("9" * 5000, DAY_MS),
        ("0" * 5000, 0),
        ("-5", 0),
        ("1.5", 0),
        ("١٢", 0),
        ("soon", 0),
        ("", 0),
        ("Fri, 15 Jan 2027 08:30:00 GMT", 30 * MINUTE_MS),
        ("Friday, 15-Jan-27 08:30:00 GMT", 30 * MINUTE_MS),
        ("Fri Jan 15 08:30:00 2027", 30 * MINUTE_MS),
        ("Fri, 15 Jan 2027 07:30:00 GMT", 0),
        ("Mon, 15 Jan 9999 08:30:00 GMT", DAY_MS),
        ("Fri, 99 Jan 2027 08:30:00 GMT", 0),
        ("Fri, 15 Jan 2027 08:30:00 GMT" + " " * 5000 + "x", 0),
    ],
)
def test_retry_after_as_seconds_or_date_capped_at_a_day(retry_after: str, wait_ms: int) -> None:
    """LANE-022."""
    assert judged(429, {"retry-after": retry_after}).retry_after_ms == wait_ms


def test_an_address_beyond_the_gate_is_unfetchable_whatever_the_answer() -> None:
    """LANE-025."""
    page = Page(403, {}, CHALLENGE, "https://evil.example/x")
    assert judge_page(SITES["asura"], "https://evil.example/x", page, NOW_MS).outcome is Outcome.UNFETCHABLE


@pytest.mark.parametrize(
    ("body", "challenge"),
    [
        ("<script>window._cf_chl_opt={}</script>", True),
        ("<SCRIPT type=module>window._cf_chl_opt={}", True),
        ('<script type="a1b2-text/javascript">_cf_chl_opt</script>', True),
        ("<script src='https://x.example/cdn-cgi/challenge-platform/h/g/x'></script>", True),
        ("<script async src=/a/orchestrate/chl_page/v1></script>", True),
        ("<script src='/cdn-cgi/challenge-platform/scripts/jsd/main.js'></script>", False),
        ('<script type=\'application/ld+json\'>{"a":"_cf_chl_opt"}</script>', False),
        ("<!-- <script>_cf_chl_opt</script> -->", False),
        ("<template><script>_cf_chl_opt</script></template>", False),
        ("<p title='<script>_cf_chl_opt</script>'>_cf_chl_opt</p>", False),
        ("<textarea><script>_cf_chl_opt</script></textarea>", False),
        ("<title>Just a moment...</title>", False),
        ('{"error":"_cf_chl_opt"}', False),
    ],
)
def test_a_challenge_is_known_by_its_scripts_alone(body: str, challenge: bool) -> None:
    """SITE-039, BRO-008."""
    assert is_challenge(Markup(body)) is challenge
    assert arrived(Page(200, {}, body.encode(), "")) is not challenge


def test_an_empty_tab_has_not_arrived() -> None:
    """BRO-008."""
    assert not arrived(Page(200, {}, b" \n", ""))


@pytest.mark.parametrize(
    ("address", "body"),
    [
        ("https://comix.to/@waf/check", "<p>hello</p>"),
        ("", '<form action="/@waf/verify">'),
        ("", "<script src=/@waf/a.js></script>"),
        ("", '<meta http-equiv="refresh" content="0;url=/@waf/">'),
        ("", '{"error":{"code":"captcha_required"}}'),
    ],
)
def test_comix_own_check_is_a_refusal(address: str, body: str) -> None:
    """LANE-022: by where the answer came from, or by what it holds."""
    url = "https://comix.to/title/n8we-x"
    assert judge_page(SITES["comix"], url, Page(200, {}, body.encode(), address or url), 0).outcome is Outcome.REFUSED


@pytest.mark.parametrize("body", ['<a href="/@waf/x">x</a>', "<p>/@waf/</p>", '{"captcha_required": false}'])
def test_comix_own_check_is_not_what_is_said_about_it(body: str) -> None:
    """LANE-022."""
    url = "https://comix.to/title/n8we-x"
    assert judge_page(SITES["comix"], url, Page(200, {}, body.encode(), url), 0).outcome is Outcome.NO_CHAPTER
