"""The plain fetcher: one page of a Site over TLS, as a current browser would ask for it (SITE-040, SITE-041)."""

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import urljoin

import trio

from bookmark_appliance.lanes.page_errors import FetcherUnavailable, TransportFailure, Unfetchable
from bookmark_appliance.lanes.site import Site
from bookmark_appliance.page import MAX_BODY_BYTES, Page

PROFILE: Final = "chrome152"
"""One exact profile: TLS, HTTP/2 and headers of that Chrome, its user agent among them. The bare alias `chrome` moves
with each release of curl_cffi (TRAPS 20)."""

FETCH_SECONDS: Final = 30.0
"""For all requests of one fetch together (SITE-040). Waiting for the Site's turn does not count."""

MAX_REDIRECTS: Final = 5

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


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
            from bookmark_appliance.lanes.curl_transfer import CurlClient
        except ImportError as error:
            raise FetcherUnavailable(str(error)) from error
        self._client = CurlClient(profile, ca_file, connect_to)

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
        with self._client.open(site.host, headers, MAX_BODY_BYTES) as transfer:
            for _ in range(1 + MAX_REDIRECTS):
                await before_request()
                started = trio.current_time()
                with trio.move_on_after(seconds_left) as deadline:
                    # The host is the Site's own whatever two parsers make of the address: only its target is used.
                    page = await transfer.get(address)
                if deadline.cancelled_caught:
                    raise TransportFailure("no answer in time")
                seconds_left = max(0, seconds_left - (trio.current_time() - started))
                location = page.headers.get("location")
                if page.status not in _REDIRECTS or location is None:
                    return page
                address = resolve(address, location)
                if not self._fetchable(site, address):
                    raise TransportFailure("redirected elsewhere")
        raise TransportFailure("redirected too often")


def resolve(base: str, location: str) -> str:
    """The absolute address that a Location of `base` means, without a fragment.

    `location` is a header's text, one character a byte; what browsers encode in it is encoded here too. A path from the
    root keeps each byte, which `urljoin` does not grant: it drops empty segments and queries, and resolves dots.
    """
    reference = re.sub(r"[^\x21-\x7e]", lambda found: f"%{ord(found[0]):02X}", location).partition("#")[0]
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", reference):
        return reference
    if reference.startswith("//"):
        return f"https:{reference}"
    if reference.startswith("/"):
        return urljoin(base, "/")[:-1] + reference
    return urljoin(base.partition("#")[0], reference)
