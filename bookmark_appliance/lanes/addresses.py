"""Addresses found on a page: which are the Site's own, and what becomes of a cover's (SITE-038, SITES.md)."""

import re
from collections.abc import Iterable
from urllib.parse import urljoin

from bookmark_appliance.lanes.tags import Markup

_ABSOLUTE_HTTPS = re.compile(r"(?i:https)://[^/?#@\s\\]+(?:[/?#]\S*)?")


def own_prefix(host: str) -> str:
    """A pattern for what may stand before the path of a link to `host`: its origin or nothing."""
    return rf"(?:(?i:(?:https?:)?//{re.escape(host)})(?::443)?(?=/))?"


def own_link(host: str) -> str:
    """`own_prefix` for the lines of `Markup.chapter_links`; each begins with a line break and may have a quote left."""
    return rf"""\n["' \t]*+{own_prefix(host)}"""


def cover_address(series_url: str, candidates: Iterable[str]) -> str | None:
    """The absolute https address of the first candidate that is not empty, or None when that one is not fit for use.

    Candidates are decoded attribute values or JSON fields. Their spaces become `%20`; the rest travels as it stands.
    """
    for candidate in candidates:
        # A browser drops tabs and line breaks inside an address.
        written = re.sub(r"[\t\r\n]", "", candidate).strip().replace(" ", "%20")
        if written:
            return _absolute(series_url, written)
    return None


def _absolute(series_url: str, written: str) -> str | None:
    try:
        # urljoin would rewrite an address that is absolute already (empty queries, dots).
        address = written if _ABSOLUTE_HTTPS.match(written) else urljoin(series_url, written)
    except ValueError:
        return None
    unprintable = any(character < " " or character == "\x7f" for character in address)
    return address if _ABSOLUTE_HTTPS.fullmatch(address) and not unprintable else None


def meta_contents(markup: Markup, name: str) -> list[str]:
    """The `content` of each `<meta>` whose `property` or `name` is exactly `name`, in page order (SITE-038)."""
    return [
        tag.attribute("content")
        for tag in markup.metas
        if name in (tag.attribute("property").lower(), tag.attribute("name").lower())
    ]
