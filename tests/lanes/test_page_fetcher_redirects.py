"""Redirects: followed on the same host, five at most, each through the address gate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookmark_appliance.lanes.page_errors import TransportFailure
from bookmark_appliance.lanes.page_fetcher import resolve
from tests.lanes.fetching import ASURA, at_once, fetcher_for
from tests.simulated_sites import SimulatedSites, faults
from tests.simulated_sites.exchange import Exchange

pytest_plugins = ["tests.simulated_sites.fixtures"]

ADDRESS = "https://asurascans.com/comics/lantern-of-the-ninth-gate-4be1c07a"


async def test_the_hash_of_an_earlier_deployment_leads_to_the_page(simulated_sites: SimulatedSites) -> None:
    """SITE-040: one redirect on the same host, as asura answers a stored address after a redeploy."""
    series = simulated_sites.world.find("asura", "lantern-of-the-ninth-gate")
    series.build = "77d0e1aa"
    page = await fetcher_for(simulated_sites).fetch(ASURA, ADDRESS, before_request=at_once)
    assert (page.status, page.address) == (200, series.address)
    assert len(simulated_sites.requests) == 2


async def test_the_sixth_redirect_is_refused(simulated_sites: SimulatedSites) -> None:
    """SITE-040, LANE-027: five are followed; one more and the page counts as not answered."""
    simulated_sites.world.misbehave("asurascans.com", faults.redirect_chain(6))
    with pytest.raises(TransportFailure, match=r"^redirected too often$"):
        await fetcher_for(simulated_sites).fetch(ASURA, ADDRESS, before_request=at_once)
    assert len(simulated_sites.requests) == 6


@pytest.mark.parametrize(
    "location",
    [
        "https://elsewhere.example/comics/x",
        "https://asurascans.com.elsewhere.example/",
        "//elsewhere.example/comics/x",
        "http://asurascans.com/comics/x",
        "https://127.0.0.1/comics/x",
        "https://[::1]/",
        "file:///etc/passwd",
        "javascript:alert(1)",
    ],
)
async def test_a_redirect_elsewhere_is_not_followed(simulated_sites: SimulatedSites, location: str) -> None:
    """SITE-040, LANE-027: another host, another scheme, this machine: one request, and a failure."""
    simulated_sites.world.misbehave("asurascans.com", faults.redirect_to(location))
    with pytest.raises(TransportFailure, match=r"^redirected elsewhere$"):
        await fetcher_for(simulated_sites, more_hosts=("elsewhere.example", "127.0.0.1")).fetch(
            ASURA, ADDRESS, before_request=at_once
        )
    assert len(simulated_sites.requests) == 1


async def test_a_redirect_without_a_location_is_an_answer(simulated_sites: SimulatedSites) -> None:
    """LANE-027: judged by its status, as any other."""
    simulated_sites.world.misbehave("asurascans.com", faults.status(302, "Moved, somewhere."))
    page = await fetcher_for(simulated_sites).fetch(ASURA, ADDRESS, before_request=at_once)
    assert (page.status, page.text) == (302, "Moved, somewhere.")


@pytest.mark.parametrize(
    ("location", "asked"),
    [
        (b"/manga/Foo%2527s/../%c3%a9", "/manga/Foo%2527s/../%c3%a9"),
        (b"/caf\xc3\xa9 au lait", "/caf%C3%A9%20au%20lait"),
    ],
)
async def test_a_location_keeps_its_bytes_on_the_wire(
    simulated_sites: SimulatedSites, location: bytes, asked: str
) -> None:
    """SITE-040: byte for byte holds for hops too; what may not stand in a request line is encoded, as browsers do."""

    async def redirect(exchange: Exchange) -> None:
        await exchange.stream.send_all(
            b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + location + b"\r\n\r\n"
        )
        await exchange.stream.aclose()

    simulated_sites.world.misbehave(ADDRESS, redirect)
    await fetcher_for(simulated_sites).fetch(ASURA, ADDRESS, before_request=at_once)
    assert simulated_sites.requests[-1].target == asked


@pytest.mark.parametrize(
    ("location", "resolved"),
    [
        ("https://other.example/x", "https://other.example/x"),
        ("mailto:someone", "mailto:someone"),
        ("//other.example/x", "https://other.example/x"),
        ("/x/%2527/../y?z", "https://site.example/x/%2527/../y?z"),
        ("/x//%c3%a9/./;?", "https://site.example/x//%c3%a9/./;?"),
        ("\xc3\xa9 y", "https://site.example/a%2527/b/%C3%A9%20y"),
        ("y", "https://site.example/a%2527/b/y"),
        ("./y", "https://site.example/a%2527/b/y"),
        ("../y/../z", "https://site.example/a%2527/z"),
        ("../../../y", "https://site.example/y"),
        ("..", "https://site.example/a%2527/"),
        ("?p=2", "https://site.example/a%2527/b/c?p=2"),
        ("", "https://site.example/a%2527/b/c?p=1"),
        ("#top", "https://site.example/a%2527/b/c?p=1"),
        ("y?u=/../z", "https://site.example/a%2527/b/y?u=/../z"),
        ("y#/../z", "https://site.example/a%2527/b/y"),
    ],
)
def test_a_location_is_seen_from_the_page_it_came_from(location: str, resolved: str) -> None:
    """SITE-040: RFC 3986 for a relative reference; of an address or a path from the root no byte is rewritten."""
    assert resolve("https://site.example/a%2527/b/c?p=1#f", location) == resolved


@given(st.text(), st.sampled_from(["https://site.example", "https://site.example:443?p=1", "https://site.example/a#b"]))
def test_no_location_raises(location: str, base: str) -> None:
    """SITE-040, LANE-027: what leads nowhere is for the address gate to refuse."""
    latin = location.encode().decode("latin-1")
    assert resolve(base, latin)
    assert resolve(base, "/" + latin.lstrip("/")).startswith("https://site.example")
