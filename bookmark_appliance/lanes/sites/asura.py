"""asura: asurascans.com, plain. `/comics/<slug>-<8 hex>`; the hash is the whole Site's and changes at each redeploy.

SITE-007 to SITE-013; the facts are those of docs/SITES.md.
"""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from bookmark_appliance.chapter import NUMBER_PATTERN, highest_chapter
from bookmark_appliance.lanes.addresses import cover_address, meta_contents, own_link, own_prefix
from bookmark_appliance.lanes.embedded_json import MAX_EMBEDDED, parse_embedded
from bookmark_appliance.lanes.entities import unescape
from bookmark_appliance.lanes.site import NOTHING_READ, Reading, Site
from bookmark_appliance.lanes.tags import MAX_ADDRESS, Markup

_HOST = "asurascans.com"
_SERIES = re.compile(rf"{own_prefix(_HOST)}/comics/([^/?# \t\n]+)(?:[/?#]|\Z)")
_CHAPTER = re.compile(rf"{own_link(_HOST)}/comics/([^/?# \t\n]++)/chapter/({NUMBER_PATTERN})")
_HASH = re.compile(r"-[0-9a-f]{8}\Z")
_TITLE_TAIL = re.compile(r"\s*\|\s*asura scans\Z")
_STATUS_WORDS = frozenset({"ongoing", "completed", "hiatus", "dropped", "axed"})


def read(series_url: str, markup: Markup) -> Reading:
    """What the page says of the work whose slug stands in `series_url`, whatever the hash behind it.

    A page with neither an own chapter link nor its own slug in its canonical or `og:url` address is another page (the
    root, to which old addresses redirect): nothing is read of it, cover included.
    """
    slug = _HASH.sub("", _slug(series_url))
    if not slug:
        return NOTHING_READ
    listed = _CHAPTER.findall(markup.chapter_links())
    own = {written for written in {written for written, _ in listed} if _is_own(slug, unquote(written))}
    digits = [number for written, number in listed if written in own]
    if not digits and not any(_is_own(slug, _slug(address)) for address in _addresses_of_itself(markup)):
        return NOTHING_READ
    return Reading(
        latest=highest_chapter(digits),
        cover=cover_address(series_url, meta_contents(markup, "og:image")),
        completed=_statuses(markup) == {"completed"},
    )


def _slug(address: str) -> str:
    match = _SERIES.match(address)
    return unquote(match[1]) if match else ""


def _is_own(slug: str, written: str) -> bool:
    """Exactly the slug, bare or with one hash; others begin with it, end with it or extend it."""
    return written == slug or (len(written) == len(slug) + 9 and _HASH.sub("", written) == slug)


def _addresses_of_itself(markup: Markup) -> Iterator[str]:
    for link in markup.tags("link"):
        if "canonical" in link.attribute("rel").lower().split():
            yield link.attribute("href").strip()
    for address in meta_contents(markup, "og:url"):
        yield address.strip()


def _statuses(markup: Markup) -> set[str]:
    """The answers to 'what is its status?' in the islands that hold this work's own title; empty when in doubt."""
    own_titles = _own_titles(markup)
    answers: set[str] = set()
    length = 0
    for island in markup.tags("astro-island"):
        props = island.attribute("props", limit=2 * MAX_EMBEDDED)
        if "status" not in props:
            continue
        length += len(props)
        if length > MAX_EMBEDDED:
            return set()
        answers |= _own_statuses(parse_embedded(props), own_titles)
    return answers


def _own_statuses(props: Any, own_titles: set[str]) -> set[str]:
    """The status words of objects that bear one of `own_titles`, or stand below or above the one that does."""
    found: list[tuple[str, str]] = []
    titles: set[str] = set()
    waiting = [(props, "")]
    while waiting:
        item, owner = waiting.pop()
        if isinstance(item, dict):
            owner = _normal(_plain(item.get("title"))) or owner
            titles.add(owner)
            status = _plain(item.get("status"))
            if status in _STATUS_WORDS:
                found.append((owner, status))
            waiting += ((value, owner) for value in item.values())
        elif isinstance(item, list):
            waiting += ((value, owner) for value in item)
    if not titles & own_titles:
        return set()
    return {status for owner, status in found if not owner or owner in own_titles}


def _plain(value: Any) -> str:
    """The text in `[0, "text"]`, which is how an island writes a plain value; `""` for anything else."""
    return value[1] if isinstance(value, list) and len(value) == 2 and isinstance(value[1], str) else ""


def _own_titles(markup: Markup) -> set[str]:
    titles = meta_contents(markup, "og:title")
    titles += [unescape(element.text[:MAX_ADDRESS]) for element in markup.raw_elements if element.name == "title"][:1]
    for heading in markup.tags("h1"):
        inner = markup.flat[heading.end : heading.end + MAX_ADDRESS].partition("</h1")[0]
        titles.append(unescape(re.sub(r"<[^<>]*>", "", inner)))
        break
    return {_TITLE_TAIL.sub("", _normal(title)) for title in titles} - {""}


def _normal(title: str) -> str:
    return " ".join(title.split()).casefold()


SITE = Site(name="asura", host=_HOST, read=read)
