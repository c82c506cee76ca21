"""The plain fetcher: one page of a Site over TLS, as a current browser would ask for it (SITE-040, SITE-041)."""

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import trio

from bookmark_appliance.lanes.page import MAX_BODY_BYTES, Page, TransportFailure, Unfetchable
from bookmark_appliance.lanes.site import Site

PROFILE: Final = "chrome152"
"""One exact profile: TLS, HTTP/2 and headers of that Chrome, its user agent among them. The bare alias `chrome` moves
with each release of curl_cffi (TRAPS 20)."""

FETCH_SECONDS: Final = 30.0
"""For all requests of one fetch together (SITE-040). Waiting for the Site's turn does not count."""

MAX_REDIRECTS: Final = 5

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)?(//[^/?#]*)?([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
"""Scheme, authority, path, query, fragment, each with its marks (RFC 3986, appendix B); matches any text."""


class FetcherUnavailable(Exception):
    """The plain client can't be built on this machine; the service goes on without it (OPS-004)."""


class PageFetcher:
    """Reads pages over plain TLS. Holds nothing open between two fetches; any number may run at once."""

    def __init__(
        self,
        fetchable: Callable[[Site, str], bool],
        *,
        connect_to: Mapping[str, tuple[str, int]] = MappingProxyType({}),
        ca_file: Path | None = None,
        profile: str = PROFILE,
        fetch_seconds: float = FETCH_SECONDS,
    ) -> None:
        """`fetchable` is the address gate (SITE-001).

        `connect_to` (SITE_CONNECT_TO) maps a host to the (address, port) to connect to; `ca_file` (SITE_CA_FILE) holds
        trust anchors, PEM, beside the machine's own. Raises FetcherUnavailable.
        """
        self._fetchable = fetchable
        self._fetch_seconds = fetch_seconds
        try:
            # Here, not above: where its binary can't be loaded the appliance still starts.
            from bookmark_appliance.lanes import curl_transfer
        except ImportError as error:
            raise FetcherUnavailable(str(error)) from error
        try:
            self._client = curl_transfer.build_client(profile, ca_file, connect_to)
        except curl_transfer.ClientUnusable as error:
            raise FetcherUnavailable(str(error)) from error
        self._open_transfer = curl_transfer.open_transfer

    async def fetch(
        self,
        site: Site,
        address: str,
        *,
        headers: Mapping[str, str] = _NOTHING,
        before_request: Callable[[], Awaitable[None]],
    ) -> Page:
        """The page at `address`, which travels byte for byte; redirects are followed on the same host.

        `headers` go out with every request, beside the browser's own. `before_request` is awaited before each request
        that leaves, redirect hops included: there the Site's floor is taken (LANE-056); what it raises passes through.

        Raises Unfetchable (the gate refused `address`, nothing was asked) and TransportFailure.
        """
        if not self._fetchable(site, address):
            raise Unfetchable("address refused")
        seconds_left = self._fetch_seconds
        with self._open_transfer(self._client, site.host, headers, MAX_BODY_BYTES) as transfer:
            for _ in range(1 + MAX_REDIRECTS):
                await before_request()
                started = trio.current_time()
                with trio.move_on_after(seconds_left) as deadline:
                    # The host is the Site's own whatever two parsers make of the address: only its target is used.
                    answer = await transfer.get(_target(address))
                if deadline.cancelled_caught:
                    raise TransportFailure("no answer in time")
                seconds_left = max(0, seconds_left - (trio.current_time() - started))
                location = answer.headers.get("location")
                if answer.status not in _REDIRECTS or location is None:
                    return Page(answer.status, answer.headers, answer.body, address, answer.truncated)
                address = resolve(address, _printable(location))
                if not self._fetchable(site, address):
                    raise TransportFailure("redirected elsewhere")
        raise TransportFailure("redirected too often")


def resolve(base: str, location: str) -> str:
    """`location` as seen from `base`, with no byte of either rewritten.

    Only what makes a reference relative is worked off: `.` and `..` at its beginning. Any other dot segment and every
    percent escape stays as the Site wrote it, which `urllib.parse.urljoin` does not grant.
    """
    scheme, authority, path, query, _ = _parts(base)
    to_scheme, to_authority, to_path, to_query, _ = _parts(location)
    if to_scheme:
        return location
    if to_authority:
        return scheme + location
    if to_path.startswith("/"):
        return scheme + authority + to_path + to_query
    if not to_path:
        return scheme + authority + path + (to_query or query)
    folder = path.rpartition("/")[0]
    while dots := re.match(r"\.\.?(/|$)", to_path):
        if dots[0].startswith(".."):
            folder = folder.rpartition("/")[0]
        to_path = to_path[dots.end() :]
    return f"{scheme}{authority}{folder}/{to_path}{to_query}"


def _printable(location: str) -> str:
    """A header's text, one character a byte, as an address: what browsers encode in a Location is encoded here too."""
    return re.sub(r"[^\x21-\x7e]", lambda found: f"%{ord(found[0]):02X}", location)


def _target(address: str) -> str:
    """Path and query of an absolute address."""
    _, _, path, query, _ = _parts(address)
    return (path or "/") + query


def _parts(address: str) -> tuple[str, ...]:
    matched = _ADDRESS.fullmatch(address)
    assert matched, "the pattern takes any text"
    return matched.groups("")
