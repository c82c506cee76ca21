"""What the tests of the plain fetcher share."""

from collections.abc import Callable

import trio

from bookmark_appliance.lanes.page_fetcher import FETCH_SECONDS, PageFetcher
from bookmark_appliance.lanes.site import NOTHING_READ, Site
from tests.simulated_sites import SimulatedSites
from tests.simulated_sites.world import HOSTS, SHAPES


def site_named(name: str, host: str = "") -> Site:
    """A Site with nothing to read."""
    return Site(name, host or SHAPES[name].host, lambda series_url, text: NOTHING_READ)


ASURA = site_named("asura")


def on_its_host(site: Site, address: str) -> bool:
    """The address gate in its simplest form."""
    return address.startswith(f"https://{site.host}/")


def fetcher_for(
    sites: SimulatedSites,
    *,
    gate: Callable[[Site, str], bool] = on_its_host,
    more_hosts: tuple[str, ...] = (),
    fetch_seconds: float = FETCH_SECONDS,
) -> PageFetcher:
    """A fetcher that is led to `sites` and trusts its certificate."""
    connect_to = dict.fromkeys((*HOSTS, *more_hosts), ("127.0.0.1", sites.port))
    return PageFetcher(gate, connect_to=connect_to, ca_file=sites.ca_file, fetch_seconds=fetch_seconds)


async def at_once() -> None:
    """A `before_request` that lets every request go."""
    await trio.lowlevel.checkpoint()
