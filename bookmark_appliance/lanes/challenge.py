"""Whether a body is Cloudflare's challenge page (SITE-039)."""

import re

from bookmark_appliance.lanes.tags import Markup, Tag
from bookmark_appliance.page import Page

_MARKERS = ("/cdn-cgi/challenge-platform/h/", "_cf_chl_opt", "/orchestrate/chl_page/")
"""Not the bare prefix: the jsd script below it sits in ordinary pages."""

_RUNNING_TYPE = re.compile(r"|module|.*(?:java|ecma)script.*", re.IGNORECASE)


def is_challenge(markup: Markup) -> bool:
    """Whether a script of the page has a marker in its text or its address; visible words and comments do not count."""
    if not any(marker in markup.text for marker in _MARKERS):
        return False
    return any(
        marker in script.text or marker in script.attribute("src")
        for script in running_scripts(markup)
        for marker in _MARKERS
    )


def running_scripts(markup: Markup) -> list[Tag]:
    """The scripts that a browser would run; a block of data is none, and may quote a visitor."""
    return [
        element
        for element in markup.raw_elements
        if element.name == "script" and _RUNNING_TYPE.fullmatch(element.attribute("type").strip())
    ]


def challenge_sign(page: Page, markup: Markup) -> str:
    """What tells that an answer is a challenge, whatever its status: Cloudflare's own header or the body; or `""`."""
    if page.headers.get("cf-mitigated", "").strip().lower() == "challenge":
        return "cf-mitigated: challenge"
    return "Cloudflare's challenge page" if is_challenge(markup) else ""


def arrived(page: Page) -> bool:
    """Whether this answer ends a read in a browser's tab (BRO-002, BRO-008, BRO-010).

    A challenge may clear and an empty page fill itself; any other answer is the Site's, refusals among them.
    """
    return not challenge_sign(page, Markup(page.text)) and (page.status != 200 or bool(page.body.strip()))
