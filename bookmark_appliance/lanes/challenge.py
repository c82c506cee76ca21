"""Whether a body is Cloudflare's challenge page (SITE-039)."""

import re

from bookmark_appliance.lanes.tags import Markup, RawElement

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


def running_scripts(markup: Markup) -> list[RawElement]:
    """The scripts that a browser would run; a block of data is none, and may quote a visitor."""
    return [
        element
        for element in markup.raw_elements
        if element.name == "script" and _RUNNING_TYPE.fullmatch(element.attribute("type").strip())
    ]


def arrived(text: str) -> bool:
    """Whether the browser's tab holds an answer yet (BRO-008): something, and not the challenge page."""
    return bool(text.strip()) and not is_challenge(Markup(text))
