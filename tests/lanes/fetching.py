"""What the tests of the plain fetcher share."""

from collections.abc import Callable

import trio

from bookmark_appliance.lanes.address_gate import fetchable
from bookmark_appliance.lanes.page_fetcher import FETCH_SECONDS, PageFetcher
from bookmark_appliance.lanes.site import NOTHING_READ, Site
from bookmark_appliance.lanes.sites import SITES
from tests.simulated_sites import SimulatedSites
from tests.simulated_sites.world import HOSTS

ASURA = SITES["asura"]


def site_at(host: str) -> Site:
    """A Site with nothing to read, at a host of the test's choice."""
    return Site("somewhere", host, lambda series_url, markup: NOTHING_READ)


def any_address(site: Site, address: str) -> bool:
    """A gate that stands open."""
    return True


def fetcher_for(
    sites: SimulatedSites,
    *,
    gate: Callable[[Site, str], bool] = fetchable,
    more_hosts: tuple[str, ...] = (),
    fetch_seconds: float = FETCH_SECONDS,
) -> PageFetcher:
    """A fetcher that is led to `sites` and trusts its certificate."""
    connect_to = dict.fromkeys((*HOSTS, *more_hosts), ("127.0.0.1", sites.port))
    return PageFetcher(gate, connect_to=connect_to, ca_file=sites.ca_file, fetch_seconds=fetch_seconds)


async def at_once() -> None:
    """A `before_request` that lets every request go."""
    await trio.lowlevel.checkpoint()
