"""Which way a page or an image is read (SITE-003, BRO-013, BRO-014, BRO-018, BRO-021, COV-010)."""

from collections.abc import Iterable
from enum import Enum, auto

from bookmark_appliance.lanes.site import Site


class Route(Enum):
    """The two ways to a page."""

    PLAIN = auto()
    BROWSER = auto()


def route(site: Site | None, *, browser_usable: bool) -> Route | None:
    """How a page of this Site is read now, or None when there is no way.

    `browser_usable` is False when no browser is configured, and just so when it is marked down or out of reach.
    An unknown Site (None) has no route.
    """
    if site is None:
        return None
    if site.browser is not None and browser_usable:
        return Route.BROWSER
    return Route.PLAIN if site.plain else None


def browser_address(site: Site, series_url: str) -> str | None:
    """The address whose body the browser reads for this Series; None when the Site does not claim it (BRO-007)."""
    return site.browser.page_address(series_url) if site.browser else None


def image_needs_browser(sites: Iterable[Site], address: str) -> bool:
    """Whether an image lies behind a Site's gate, by the shape of its address alone."""
    return any(
        site.browser.image_address(address) for site in sites if site.browser and site.browser.image_address is not None
    )
