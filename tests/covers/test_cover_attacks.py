"""Addresses that a hostile page may name: no connection is opened, whether they come from the page or by redirect."""

import ipaddress
from collections.abc import Collection
from typing import Any

import pytest
import trio

from bookmark_appliance.covers.cover_fetcher import CoverFetcher
from bookmark_appliance.covers.image_type import CoverRefused
from bookmark_appliance.lanes import curl_transfer
from bookmark_appliance.lanes.curl_transfer import CurlClient
from bookmark_appliance.lanes.page_errors import TransportFailure
from bookmark_appliance.lanes.page_fetcher import PROFILE
from bookmark_appliance.page import MAX_IMAGE_BYTES
from tests.covers.attacks import CONFUSING, LITERALS, NOT_PUBLIC, UNSENDABLE
from tests.covers.fetching import CDN, COVER, Names, answering, cover_fetcher_for
from tests.lanes.fetching import at_once
from tests.simulated_sites import SimulatedSites
from tests.simulated_sites.exchange import Exchange
from tests.simulated_sites.faults import Fault

pytest_plugins = ["tests.simulated_sites.fixtures"]

PUBLIC = ["93.184.216.34", "2606:4700:4700::1111"]
NOT_ASKED = r"^not an address that is asked for covers$"
HOSTILE = "https://cover.hostile.example/x.jpg"


async def never() -> None:
    """A `before_request` of what never leaves."""
    pytest.fail("a turn was taken")


def redirect(location: str) -> Fault:
    """To `location`, byte for byte."""

    async def fault(exchange: Exchange) -> None:
        head = f"HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\nLocation: {location}\r\n\r\n"
        await exchange.stream.send_all(head.encode())
        await exchange.stream.aclose()

    return fault


def test_there_are_enough_of_them() -> None:
    assert len({*LITERALS, *CONFUSING, *UNSENDABLE}) == len(LITERALS) + len(CONFUSING) + len(UNSENDABLE) > 40
    assert len({ipaddress.ip_address(address) for address in NOT_PUBLIC}) == len(NOT_PUBLIC) > 40


@pytest.mark.parametrize("address", [*LITERALS, *CONFUSING, *UNSENDABLE])
async def test_an_address_that_is_no_plain_https_name_is_refused(address: str, transfers: list[Any]) -> None:
    """COV-021: no lookup, no turn, no connection."""
    fetcher = CoverFetcher({}, None, look_up=Names())
    with pytest.raises(CoverRefused, match=NOT_ASKED):
        await fetcher.fetch(address, never)
    assert transfers == []


async def test_nor_is_it_followed_as_a_redirect(simulated_sites: SimulatedSites, transfers: list[Any]) -> None:
    """COV-021, COV-023: stopped after one request."""
    fetcher = cover_fetcher_for(simulated_sites)
    for address in [*LITERALS, *CONFUSING]:
        transfers.clear()
        simulated_sites.requests.clear()
        simulated_sites.world.misbehave(CDN, redirect(address))
        with pytest.raises(CoverRefused, match=NOT_ASKED):
            await fetcher.fetch(COVER, at_once)
        assert (len(simulated_sites.requests), len(transfers)) == (1, 1), address


@pytest.mark.parametrize("address", NOT_PUBLIC)
async def test_a_name_of_which_one_address_is_private_is_refused(address: str, transfers: list[Any]) -> None:
    """COV-021: alone, first, last or in between; one lookup, no turn, no connection."""
    for answer in ([address], [address, *PUBLIC], [*PUBLIC, address], [PUBLIC[0], address, PUBLIC[1]]):
        names = Names(answer)
        with pytest.raises(CoverRefused, match="private network"):
            await CoverFetcher({}, None, look_up=names).fetch(HOSTILE, never)
        assert (names.lookups, transfers) == (["cover.hostile.example"], []), answer


@pytest.mark.parametrize("address", NOT_PUBLIC)
async def test_a_name_that_changes_before_the_connection_is_refused(address: str, transfers: list[Any]) -> None:
    """COV-022: the first answer is public, the second is not: two lookups, no request."""
    for second in ([address], [*PUBLIC, address]):
        names = Names(PUBLIC, second)
        with pytest.raises(CoverRefused, match="private network"):
            await CoverFetcher({}, None, look_up=names).fetch(HOSTILE, at_once)
        assert (len(names.lookups), transfers) == (2, []), second


async def test_nor_is_a_redirect_to_such_a_name_followed(simulated_sites: SimulatedSites, transfers: list[Any]) -> None:
    """COV-022, COV-023: stopped after one request, whether the name is private at once or becomes so."""
    simulated_sites.world.misbehave(CDN, redirect(HOSTILE))
    at_once_private = [Names([PUBLIC[0], address]) for address in NOT_PUBLIC]
    for names in [*at_once_private, *(Names(PUBLIC, [address]) for address in NOT_PUBLIC[::4])]:
        transfers.clear()
        simulated_sites.requests.clear()
        with pytest.raises(CoverRefused, match="private network"):
            await cover_fetcher_for(simulated_sites, look_up=names).fetch(COVER, at_once)
        assert (len(simulated_sites.requests), len(transfers)) == (1, 1), names


@pytest.mark.parametrize("answer", [[], ["no address"], ["8.8.8.8", ""]])
async def test_an_answer_that_makes_no_sense_is_refused(answer: list[str], transfers: list[Any]) -> None:
    """COV-021: nothing is left to another lookup."""
    with pytest.raises(CoverRefused, match="private network"):
        await CoverFetcher({}, None, look_up=Names(answer)).fetch(HOSTILE, never)
    assert transfers == []


async def test_a_name_that_does_not_exist_is_refused(transfers: list[Any]) -> None:
    """COV-021, COV-022: at the check or at the connection."""

    async def vanishing(host: str) -> Collection[str]:
        if not turns:
            return PUBLIC
        raise OSError("Name or service not known")

    async def turn() -> None:
        turns.append(None)

    turns: list[None] = []
    with pytest.raises(CoverRefused, match="leads nowhere"):
        await CoverFetcher({}, None, look_up=vanishing).fetch(HOSTILE, turn)
    with pytest.raises(CoverRefused, match="leads nowhere"):
        await CoverFetcher({}, None, look_up=vanishing).fetch(HOSTILE, never)
    assert (len(turns), transfers) == (1, [])


@pytest.mark.parametrize(
    "answers",
    [(["127.0.0.1"],), (["::1", "127.0.0.1"],), (["127.0.0.2"], ["127.0.0.1"])],
    ids=["one", "several", "those of the second lookup"],
)
async def test_the_connection_goes_to_a_checked_address(
    simulated_sites: SimulatedSites, monkeypatch: pytest.MonkeyPatch, answers: tuple[list[str], ...]
) -> None:
    """COV-022: to one of the addresses that the second lookup gave, and the name is verified as ever.

    Only 127.0.0.1 answers. Two constants of the fetcher are bent for it: no public host can be had here.
    """
    monkeypatch.setattr("bookmark_appliance.covers.cover_fetcher.public", lambda address: True)
    monkeypatch.setattr(curl_transfer, "HTTPS_PORT", simulated_sites.port)
    names = Names(*answers)
    image = await CoverFetcher({}, simulated_sites.ca_file, look_up=names).fetch(COVER, at_once)
    assert (image.content_type, names.lookups) == ("image/webp", [CDN, CDN])
    with pytest.raises(CoverRefused, match="certificate"):
        await CoverFetcher({}, simulated_sites.ca_file, look_up=names).fetch(HOSTILE, at_once)
    assert len(simulated_sites.requests) == 1


async def test_nothing_is_asked_of_an_address_that_was_not_checked(simulated_sites: SimulatedSites) -> None:
    """COV-022: should curl ever connect elsewhere, no request follows."""
    client = CurlClient(PROFILE, simulated_sites.ca_file, {CDN: ("127.0.0.1", simulated_sites.port)})
    with client.open(CDN, {}, MAX_IMAGE_BYTES, PUBLIC) as transfer, pytest.raises(TransportFailure):
        await transfer.get(COVER)
    assert simulated_sites.requests == []
    with client.open(CDN, {}, MAX_IMAGE_BYTES, [*PUBLIC, "127.0.0.1"]) as transfer:
        assert (await transfer.get(COVER)).status == 200


async def test_a_host_that_the_operator_placed_needs_no_public_address(simulated_sites: SimulatedSites) -> None:
    """COV-021: SITE_CONNECT_TO, in any case of letters, with a port; the other rules hold for it too."""
    fetcher = cover_fetcher_for(simulated_sites)
    for written in (COVER, COVER.replace(CDN, CDN.upper()), COVER.replace(CDN, f"{CDN}:443")):
        assert (await fetcher.fetch(written, at_once)).content_type == "image/webp"
    for refused in (COVER.replace("https", "http"), COVER.replace(CDN, f"me@{CDN}"), COVER.replace(CDN, f"{CDN}:8443")):
        with pytest.raises(CoverRefused, match=NOT_ASKED):
            await fetcher.fetch(refused, never)


async def test_another_address_of_the_cover_host_is_refused_without_its_name(simulated_sites: SimulatedSites) -> None:
    """COV-021: its loopback address, by the port that it listens at."""
    with pytest.raises(CoverRefused, match=NOT_ASKED):
        await cover_fetcher_for(simulated_sites).fetch(f"https://127.0.0.1:{simulated_sites.port}/x.webp", never)
    assert simulated_sites.requests == []


class Resolver(trio.abc.HostnameResolver):
    """What Trio asks in the place of the machine's resolver."""

    async def getaddrinfo(
        self, host: bytes | None, port: bytes | str | int | None, family: int = 0, type: int = 0, *_: Any, **__: Any
    ) -> list[Any]:
        assert host == b"cover.hostile.example"
        return [
            (trio.socket.AF_INET6, type, 6, "", ("2606:4700:4700::1111", 0, 0, 0)),
            (trio.socket.AF_INET, type, 6, "", ("10.0.0.1", 0)),
        ]

    async def getnameinfo(self, sockaddr: Any, flags: int) -> tuple[str, str]:
        raise NotImplementedError


async def test_without_another_resolver_the_machines_is_asked(transfers: list[Any]) -> None:
    """COV-021: for all addresses of both families."""
    trio.socket.set_custom_hostname_resolver(Resolver())
    with pytest.raises(CoverRefused, match="private network"):
        await CoverFetcher({}, None).fetch(HOSTILE, never)
    assert transfers == []


async def test_a_name_in_other_letters_is_asked_by_its_ascii_form(transfers: list[Any]) -> None:
    """COV-021: whatever it looks like, what counts is where it leads."""
    names = Names(["10.0.0.1"])
    with pytest.raises(CoverRefused, match="private network"):
        await CoverFetcher({}, None, look_up=names).fetch("https://xn--dn-8kc.example/x.jpg", never)
    assert (names.lookups, transfers) == (["xn--dn-8kc.example"], [])


async def test_an_image_is_no_way_to_an_address(simulated_sites: SimulatedSites) -> None:
    """COV-020: what a page's image names is not asked for either."""
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><image href="http://127.0.0.1/"/></svg>'
    simulated_sites.world.misbehave(CDN, answering(svg, "Content-Type: image/svg+xml"))
    with pytest.raises(CoverRefused, match="no image that we take"):
        await cover_fetcher_for(simulated_sites).fetch(COVER, at_once)
    assert len(simulated_sites.requests) == 1
