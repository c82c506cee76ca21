"""comix: comix.to, through the browser, by an in-tab fetch of the Series' own address.

SITE-019 to SITE-023, BRO-003, BRO-004; the facts are those of docs/SITES.md.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from bookmark_appliance.chapter import NUMBER_PATTERN, highest_chapter
from bookmark_appliance.lanes.addresses import cover_address, own_prefix
from bookmark_appliance.lanes.challenge import running_scripts
from bookmark_appliance.lanes.embedded_json import MAX_COMMAS
from bookmark_appliance.lanes.entities import unescape
from bookmark_appliance.lanes.site import NOTHING_READ, BrowserRead, Reading, Site
from bookmark_appliance.lanes.tags import Markup

_HOST = "comix.to"
_PAGE = re.compile(r"(https://comix\.to/title/[^/?#]+/?)(?:[?#].*)?", re.DOTALL)
_ID = re.compile(rf"{own_prefix(_HOST)}/title/([^/?# \t\n-]+)(?=[-/?#]|\Z)")
_CHAPTER = re.compile(
    rf"{own_prefix(_HOST)}/title/([^/?# \t\n-]+)[^/?# \t\n]*/[^/?# \t\n-]+-chapter-({NUMBER_PATTERN})"
)
_IMAGE = re.compile(r"https://static\.comix\.to/[A-Za-z0-9@/_-]+\.(?:jpg|jpeg|png|webp)")
_CHECK_PATH = "/@waf/"
_CHECK_JSON = re.compile(r'\s*\{.*"captcha_required"(?!\s*:\s*(?:false|null|0))', re.DOTALL)
_MAX_DETAILS = 1_000


class _InitialData(msgspec.Struct):
    """The blob of the page; an entry stays bytes until it is ours."""

    queries: dict[str, msgspec.Raw]


class _Detail(msgspec.Struct, rename="camel"):
    """What is read of a detail entry; the types are checked where they are used, so that one oddity spoils one fact."""

    hid: Any = None
    latest_chapter_url: Any = None
    poster: Any = None
    status: Any = None


def read(series_url: str, markup: Markup) -> Reading:
    """What the blob's own detail entry says; recommendations and synopses in it hold look-alike text."""
    own = _ID.match(series_url)
    detail = _own_detail(own[1], markup) if own else None
    if not own or not detail:
        return NOTHING_READ
    chapter = _CHAPTER.match(detail.latest_chapter_url) if isinstance(detail.latest_chapter_url, str) else None
    poster = detail.poster.get("medium") if isinstance(detail.poster, dict) else None
    return Reading(
        latest=highest_chapter([chapter[2]]) if chapter and chapter[1] == own[1] else None,
        cover=cover_address(series_url, [poster]) if isinstance(poster, str) else None,
        completed=detail.status == "finished",
    )


def _own_detail(own_id: str, markup: Markup) -> _Detail | None:
    blob = next((raw.text for raw in markup.raw_elements if raw.attribute("id") == "initial-data"), "")
    if blob.count(",") > MAX_COMMAS:
        return None
    try:
        queries = msgspec.json.decode(blob, type=_InitialData).queries
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None
    spelled = ((key.replace(" ", ""), entry) for key, entry in queries.items() if "detail" in key)
    details = {key: entry for key, entry in spelled if key.startswith('["manga","detail",')}
    if f'["manga","detail","{own_id}"]' in details:
        return _detail(details[f'["manga","detail","{own_id}"]'])
    # One capture keys the entry by a numeric id.
    candidates = map(_detail, list(details.values())[:_MAX_DETAILS])
    return next((detail for detail in candidates if detail and detail.hid == own_id), None)


def _detail(entry: msgspec.Raw) -> _Detail | None:
    try:
        return msgspec.json.decode(entry, type=_Detail)
    except (msgspec.MsgspecError, RecursionError):
        return None


def own_check(address: str, markup: Markup) -> bool:
    """The Site's own check (since July 2026): path `/@waf/`, title "security check", or JSON `captcha_required`."""
    if f"//{_HOST}{_CHECK_PATH}" in address or _CHECK_JSON.match(markup.text):
        return True
    titles = [unescape(raw.text[:200]) for raw in markup.raw_elements if raw.name == "title"]
    if any(title.strip().lower() == "security check" for title in titles):
        return True
    return _CHECK_PATH in markup.text and any(_CHECK_PATH in text for text in _machinery(markup))


def _machinery(markup: Markup) -> Iterator[str]:
    """Where a page says what it runs and where it sends things; a synopsis can say anything, an anchor too."""
    for script in running_scripts(markup):
        yield script.text
        yield script.attribute("src")
    for tag in markup.tags_naming(_CHECK_PATH):
        if tag.name != "a":
            yield from (tag.attribute(name) for name in ("href", "action", "src", "content"))


def page_address(series_url: str) -> str | None:
    """The Series address without query and fragment (BRO-003)."""
    match = _PAGE.fullmatch(series_url)
    return match[1] if match else None


SITE = Site(
    name="comix",
    host=_HOST,
    read=read,
    own_check=own_check,
    browser=BrowserRead(
        page_address=page_address,
        in_tab_fetch=True,
        image_address=lambda address: _IMAGE.fullmatch(address) is not None,
    ),
)
