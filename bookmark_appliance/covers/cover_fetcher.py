"""The plain cover fetcher: one image from whatever host a page names, and from no private network (COV-021 to COV-025).

The address is read once, here, and strictly: curl is given the host, the addresses it may connect to and the target,
and parses nothing of its own.
"""

import math
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Final

import trio

from bookmark_appliance.covers.image_type import CoverRefused, Image, checked_image
from bookmark_appliance.covers.public_address import public
from bookmark_appliance.lanes.page_errors import TransportFailure
from bookmark_appliance.lanes.page_fetcher import (
    FETCH_SECONDS,
    MAX_REDIRECTS,
    REDIRECTS,
    browser_like_client,
    resolve,
)
from bookmark_appliance.lanes.series_read import BeforeRequest
from bookmark_appliance.page import MAX_IMAGE_BYTES, Page

_ADDRESS: Final = re.compile(
    r"(?i:https)://(?P<host>[A-Za-z0-9.-]{1,253})(?::443)?(?:[/?#][^\x00-\x20\x7f-\xa0\\\s\ud800-\udfff]*)?"
)
"""No user information, no other port, nothing that two parsers may read differently. A name in other letters than
these has its `xn--` form."""

_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME: Final = re.compile(rf"(?:{_LABEL}\.)+(?![0-9]){_LABEL}")
"""A host name of the internet: of two labels or more, and no spelling of an IPv4 address, whose last label begins with
a digit. (IPv6 has brackets.)"""


async def look_up(host: str) -> Collection[str]:
    """Every address of `host`, as this machine resolves names. Raises OSError."""
    found = await trio.socket.getaddrinfo(host, None, type=trio.socket.SOCK_STREAM)
    return [str(where[0]) for *_, where in found]


class CoverFetcher:
    """Gets images over plain TLS. Holds nothing open between two fetches; any number may run at once."""

    def __init__(
        self,
        connect_to: Mapping[str, tuple[str, int]],
        ca_file: Path | None,
        *,
        look_up: Callable[[str], Awaitable[Collection[str]]] = look_up,
        fetch_seconds: float = FETCH_SECONDS,
    ) -> None:
        """`connect_to` (SITE_CONNECT_TO) maps a host to the (address, port) to connect to, private or not.

        `ca_file` (SITE_CA_FILE) holds trust anchors, PEM, beside the machine's own; `fetch_seconds` is for all lookups
        and requests of one fetch together. Raises FetcherUnavailable.
        """
        self._connect_to = connect_to
        self._look_up = look_up
        self._fetch_seconds = fetch_seconds
        self._client = browser_like_client(connect_to, ca_file)

    async def fetch(self, address: str, before_request: BeforeRequest) -> Image:
        """The image at `address`, after five redirects at most, each through the whole gate again.

        `before_request` is awaited before each request that leaves, outside the time of the fetch; what it raises
        passes through. Raises CoverRefused.
        """
        with trio.move_on_after(self._fetch_seconds) as deadline:
            for _ in range(1 + MAX_REDIRECTS):
                page = await self._ask(address, before_request, deadline)
                location = page.headers.get("location")
                if page.status not in REDIRECTS or location is None:
                    return image_of(page)
                address = resolve(address, location)
            raise CoverRefused("redirected too often")
        raise CoverRefused("no answer in time")

    async def _ask(self, address: str, before_request: BeforeRequest, deadline: trio.CancelScope) -> Page:
        host = _host(address)
        await self._checked_addresses(host)
        left = deadline.deadline - trio.current_time()
        deadline.deadline = math.inf
        leaves = await before_request()
        deadline.deadline = trio.current_time() + left
        # Again, at the moment of connecting: whoever owns the name may have changed what it means.
        addresses = await self._checked_addresses(host)
        with self._client.open(host, {}, MAX_IMAGE_BYTES, addresses) as transfer:
            try:
                return await transfer.get(address, leaves)
            except TransportFailure as error:
                raise CoverRefused(str(error)) from error

    async def _checked_addresses(self, host: str) -> Collection[str]:
        """Where `host` may be reached: all that its name resolves to, or nothing for one the operator has placed."""
        if host in self._connect_to:
            return ()
        try:
            addresses = await self._look_up(host)
        except OSError as error:
            raise CoverRefused("the host's name leads nowhere") from error
        if not addresses or not all(map(public, addresses)):
            raise CoverRefused("the host's name leads into a private network")
        return addresses


def _host(address: str) -> str:
    written = _ADDRESS.fullmatch(address)
    host = written["host"].lower() if written else ""
    if not _NAME.fullmatch(host):
        raise CoverRefused("not an address that is asked for covers")
    return host


def image_of(page: Page) -> Image:
    """The image that a Site answered with, over whichever route. Raises CoverRefused."""
    if page.status != 200:
        raise CoverRefused(f"status {page.status}")
    if page.truncated:
        raise CoverRefused("more than 10 MiB")
    return checked_image(page.headers.get("content-type", ""), page.body)
