"""The ways to a page that this machine and its settings allow; one that can't be built is said loudly and left out."""

import logging

from bookmark_appliance.config import Settings
from bookmark_appliance.lanes.address_gate import fetchable
from bookmark_appliance.lanes.page_errors import FetcherUnavailable
from bookmark_appliance.lanes.page_fetcher import PageFetcher
from bookmark_appliance.lanes.series_read import Fetcher
from bookmark_appliance.lanes.sites import SITES

log = logging.getLogger(__name__)


def plain_fetcher(settings: Settings) -> Fetcher | None:
    """None where the plain client can't be built: everything else still works (OPS-004)."""
    try:
        return PageFetcher(fetchable, connect_to=settings.site_connect_to, ca_file=settings.site_ca_file)
    except FetcherUnavailable as error:
        log.error("no page can be read over plain TLS: the plain client cannot be built: %s", error)
        return None


def browser_fetcher(settings: Settings) -> Fetcher | None:
    """None where no browser is configured, or its client can't be built: the same as unset (CFG-007, OPS-005)."""
    if settings.browser_ws_url is None:
        return None
    try:
        # Here, not above: 0.1 s and 10 MB that only this setting needs.
        from bookmark_appliance.lanes.browser_fetcher import BrowserFetcher

        return BrowserFetcher.at(settings.browser_ws_url, SITES.values())
    except (ImportError, ValueError) as error:
        log.error("no page can be read through a browser: its client cannot be built: %s", error)
        return None
