"""What an answer of a Site comes to: one pure function over plain data, in the order of SITES.md."""

import re
from datetime import UTC
from email.utils import parsedate_to_datetime

from bookmark_appliance.clock import DAY_MS, SECOND_MS
from bookmark_appliance.lanes.address_gate import fetchable
from bookmark_appliance.lanes.challenge import challenge_sign
from bookmark_appliance.lanes.outcome import Judgement, Outcome
from bookmark_appliance.lanes.site import MissingSeries, RefusingBody, Site, UnreadableBody
from bookmark_appliance.lanes.tags import Markup
from bookmark_appliance.page import Page

MAX_RETRY_AFTER_MS = DAY_MS
"""A refusing Site is asked again within a day, whatever it says (LANE-022)."""

_SECONDS = re.compile(r"0*+([0-9]*+)")
_LONGEST_DATE = 64


def judge_page(site: Site, series_url: str, page: Page, now_ms: int) -> Judgement:
    """The outcome of a read, with what was read where the page may be believed. Never raises.

    The order decides: the address gate; a refusing status or header; a challenge in the body, whatever the status;
    other statuses, so that nothing is read of a 404 page, which lists other works; then the body (LANE-022, LANE-024 to
    LANE-027). A 404 in which kagane answers HTML is `not_found` and a 502 `errors`: only a body that would be read can
    be of the wrong kind.
    """
    if not fetchable(site, series_url):
        return Judgement(Outcome.UNFETCHABLE, reason="the address gate refuses the address")
    markup = Markup(page.text)
    refusal = _refusal(site, page, markup)
    if refusal:
        return Judgement(Outcome.REFUSED, retry_after_ms=retry_after_ms(page, now_ms), reason=refusal)
    if page.status != 200:
        missing = 400 <= page.status < 500
        return Judgement(Outcome.NOT_FOUND if missing else Outcome.ERRORS, reason=f"status {page.status}")
    try:
        reading = site.read(series_url, markup)
    except RefusingBody as refused:
        return Judgement(Outcome.REFUSED, retry_after_ms=retry_after_ms(page, now_ms), reason=str(refused))
    except MissingSeries as missing_series:
        return Judgement(Outcome.NOT_FOUND, reason=str(missing_series))
    except UnreadableBody as unreadable:
        return Judgement(Outcome.ERRORS, reason=str(unreadable))
    if reading.latest:
        return Judgement(Outcome.SUCCESS, reading)
    known = "no chapter on the page" if reading.landmarks else "not the page we know"
    return Judgement(Outcome.NO_CHAPTER, reading, reason=f"{known}, {len(page.body)} bytes")


def _refusal(site: Site, page: Page, markup: Markup) -> str:
    """Why the answer is a refusal, or `""`."""
    if page.status in (403, 429):
        return f"status {page.status}"
    if page.status == 503 and "retry-after" in page.headers:
        return "status 503 with Retry-After"
    if sign := challenge_sign(page, markup):
        return sign
    if site.own_check and site.own_check(page.address, markup):
        return "the Site's own check"
    return ""


def retry_after_ms(page: Page, now_ms: int) -> int:
    """How long the Site asks us to stay away, in milliseconds from `now_ms`, at most MAX_RETRY_AFTER_MS.

    `Retry-After` holds seconds or an HTTP date (RFC 9110, 10.2.3); 0 when it is missing, past, or neither.
    """
    value = page.headers.get("retry-after", "").strip()
    seconds = _SECONDS.fullmatch(value)
    # Nine digits are 31 years; more of them need not be counted.
    wait_ms = int(seconds[1][:9] or 0) * SECOND_MS if seconds else _ms_until(value, now_ms)
    return max(0, min(wait_ms, MAX_RETRY_AFTER_MS))


def _ms_until(http_date: str, now_ms: int) -> int:
    if not http_date or len(http_date) > _LONGEST_DATE:
        return 0
    try:
        moment = parsedate_to_datetime(http_date)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return int(moment.timestamp()) * SECOND_MS - now_ms
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0
