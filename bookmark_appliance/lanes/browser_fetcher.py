"""The browser route: what a Site's entry says about reading through a browser, turned into reads in a tab of it."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType

from bookmark_appliance.cdp.browser import Browser
from bookmark_appliance.cdp.errors import BrowserGone, PageFailed
from bookmark_appliance.cdp.tab import TabRead
from bookmark_appliance.lanes.address_gate import fetchable
from bookmark_appliance.lanes.challenge import arrived, challenge_sign
from bookmark_appliance.lanes.page_errors import BrowserLost, ChallengeHeld, TransportFailure, Unfetchable
from bookmark_appliance.lanes.routing import browser_address, image_needs_browser
from bookmark_appliance.lanes.site import Site
from bookmark_appliance.lanes.tags import Markup
from bookmark_appliance.page import MAX_BODY_BYTES, MAX_IMAGE_BYTES, Page

BeforeRequest = Callable[[], Awaitable[None]]


class BrowserFetcher:
    """Reads Series pages and cover bytes through the browser, one at a time."""

    def __init__(self, browser: Browser, sites: Iterable[Site]) -> None:
        self._browser = browser
        self._sites = tuple(sites)

    @classmethod
    def at(cls, endpoint: str, sites: Iterable[Site]) -> "BrowserFetcher":
        """Over the browser at `ws://IP:PORT`; raises ValueError for an endpoint of any other form."""
        return cls(Browser(endpoint), sites)

    async def fetch(
        self,
        site: Site,
        address: str,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        before_request: BeforeRequest,
    ) -> Page:
        """The page that tells about the Series at `address`; `headers` are the browser's own affair.

        `before_request` is awaited once: a read through the browser counts as one request (LANE-056). Raises
        Unfetchable (the Site does not claim the address, nothing was asked: BRO-007), BrowserLost, ChallengeHeld and
        TransportFailure.
        """
        asked = browser_address(site, address)
        if site.browser is None or asked is None:
            raise Unfetchable("the Site does not claim the address")
        if site.browser.in_tab_fetch:
            read = TabRead(re.split(r"[?#]", address)[0], asked, MAX_BODY_BYTES)
        else:
            read = TabRead(asked, None, MAX_BODY_BYTES)
        page = await self._read(read, before_request)
        if not fetchable(site, page.address):
            raise TransportFailure("redirected elsewhere")
        return page

    async def fetch_image(self, address: str, before_request: BeforeRequest) -> Page:
        """The answer at an image's address behind a Site's gate (BRO-013, BRO-015, BRO-016); raises as `fetch`."""
        if not image_needs_browser(self._sites, address):
            raise Unfetchable("not an image of a Site that is read through the browser")
        page = await self._read(TabRead(address, "", MAX_IMAGE_BYTES, fresh=False), before_request)
        if page.truncated or len(page.body) > MAX_IMAGE_BYTES:
            raise TransportFailure("the image is too large")
        if not image_needs_browser(self._sites, page.address):
            raise TransportFailure("redirected elsewhere")
        return page

    async def _read(self, read: TabRead, before_request: BeforeRequest) -> Page:
        try:
            page = await self._browser.read(read, arrived, before_request)
        except BrowserGone as gone:
            raise BrowserLost(str(gone)) from gone
        except PageFailed as failed:
            raise TransportFailure(str(failed)) from failed
        if sign := challenge_sign(page, Markup(page.text)):
            raise ChallengeHeld(f"the challenge did not clear ({sign})")
        return page
