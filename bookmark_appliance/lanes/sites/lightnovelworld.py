"""lightnovelworld: lightnovelworld.net, plain. `/novel/<slug>/`; chapters at the root, under slugs of their own.

SITE-032 to SITE-037; all facts were measured once, on 2026-08-11 (docs/SITES.md).
"""

import re
from collections import defaultdict
from operator import itemgetter
from typing import Any, NamedTuple

from bookmark_appliance.chapter import HIGHEST_CHAPTER, NUMBER_PATTERN, Chapter, highest_chapter
from bookmark_appliance.lanes.addresses import cover_address, meta_contents, own_link, own_prefix
from bookmark_appliance.lanes.embedded_json import MAX_EMBEDDED, objects, parse_embedded
from bookmark_appliance.lanes.site import Reading, Site
from bookmark_appliance.lanes.tags import Markup

_HOST = "lightnovelworld.net"
_CHAPTER = re.compile(rf"{own_link(_HOST)}/([^/?# \t\n]+)-chapter-({NUMBER_PATTERN})")
_SERIES = re.compile(rf"{own_prefix(_HOST)}(/novel/[^/?#]+)/?(?:[?#]|\Z)")
_HEAD_END = re.compile(r"</head(?=[\s>])|<body(?=[\s>])", re.IGNORECASE)
_THREAD = frozenset({"wpd-threads", "wpd-thread-wrapper"})
_NO_CONTAINER = frozenset({"a", "base", "link", "meta", "noscript", "script", "style", "title"})
_MAX_GROUPS = 1_000
"""Chapter slugs on one page; with more it is no Series page."""
_COMPLETED = frozenset({"https://schema.org/CompletedActionStatus", "http://schema.org/CompletedActionStatus"})


def read(series_url: str, markup: Markup) -> Reading:
    """What stands above the comment thread; without the thread no number is read, since visitors write on the page."""
    thread = _start_of_thread(markup)
    return Reading(
        latest=_latest(markup.chapter_links(0, thread)) if thread is not None else None,
        cover=cover_address(series_url, meta_contents(markup, "og:image")),
        completed=_completed(series_url, markup, thread),
        landmarks=thread is not None,
    )


def _start_of_thread(markup: Markup) -> int | None:
    """Where the comments start: the first element of the body, no link, whose id or class is the thread's."""
    head_end = _HEAD_END.search(markup.flat)
    body = head_end.start() if head_end else 0
    for tag in markup.tags_naming("wpd-thread"):
        names = {tag.attribute("id").strip(), *tag.attribute("class").split()}
        if tag.start >= body and tag.name not in _NO_CONTAINER and names & _THREAD:
            return tag.start
    return None


class _Group(NamedTuple):
    """The links of one chapter slug."""

    size: int
    lowest: float
    highest: Chapter


def _latest(links: str) -> Chapter | None:
    """The highest chapter of the largest group of links of one chapter slug, and of the groups that continue it.

    A group continues when its lowest number is the next after the highest counted so far. One whose highest number
    comes right before the lowest belongs too, and can't change the answer.
    """
    found = _CHAPTER.findall(links)
    if len(set(map(itemgetter(0), found))) > _MAX_GROUPS:
        return None
    by_slug: defaultdict[str, list[str]] = defaultdict(list)
    for slug, digits in found:
        by_slug[slug].append(digits)
    groups = list(filter(None, map(_group, by_slug.values())))
    if not groups:
        return None
    # Of equals, max gives the first on the page.
    latest = max(groups, key=lambda group: group.size).highest
    for group in sorted(groups, key=lambda group: group.lowest):
        if latest.number < group.lowest <= latest.number + 1:
            latest = group.highest
    return latest


def _group(digits: list[str]) -> _Group | None:
    numbers = [number for number in map(float, digits) if number <= HIGHEST_CHAPTER]
    highest = highest_chapter(digits)
    return _Group(len(numbers), min(numbers), highest) if highest else None


def _completed(series_url: str, markup: Markup, thread: int | None) -> bool:
    """Whether all that the page's own JSON-LD says of this work's status, above the thread, is 'completed'."""
    answers: set[bool] = set()
    length = 0
    for element in markup.raw_elements:
        above = thread is None or element.start < thread
        if not above or "creativeWorkStatus" not in element.text or not _is_json_ld(element.attribute("type")):
            continue
        length += len(element.text)
        if length > MAX_EMBEDDED:
            return False
        for item in objects(parse_embedded(element.text)):
            if "creativeWorkStatus" in item and _may_be_own(series_url, item.get("url")):
                status = item["creativeWorkStatus"]
                answers.add(isinstance(status, str) and status in _COMPLETED)
    return answers == {True}


def _is_json_ld(kind: str) -> bool:
    return kind.partition(";")[0].strip().lower() == "application/ld+json"


def _may_be_own(series_url: str, url: Any) -> bool:
    """A work that names another novel's address is another work; one that names none is the page's."""
    named = _SERIES.match(url) if isinstance(url, str) else None
    own = _SERIES.match(series_url)
    return named is None or (own is not None and named[1] == own[1])


SITE = Site(name="lightnovelworld", host=_HOST, read=read)
