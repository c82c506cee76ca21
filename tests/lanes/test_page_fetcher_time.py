"""The plain fetcher and time: its deadline, its place in the Site's queue, and how fast it lets go."""

import functools
import math

import pytest
import trio

from bookmark_appliance.lanes.address_gate import fetchable
from bookmark_appliance.lanes.page_errors import TransportFailure
from bookmark_appliance.lanes.page_fetcher import PageFetcher
from tests.lanes.fetching import ASURA, at_once, fetcher_for
from tests.simulated_sites import SimulatedSites, faults
from tests.simulated_sites.exchange import Exchange
from tests.simulated_sites.faults import Fault

pytest_plugins = ["tests.simulated_sites.fixtures"]

ADDRESS = "https://asurascans.com/comics/lantern-of-the-ninth-gate-4be1c07a"
AT_ONCE_S = 5
"""Measured 2026-11: about 1 ms. The rest is for a busy machine; what ignored us would take the 30 s of a fetch."""


@pytest.mark.parametrize("fault", [faults.silence, faults.drip()])
async def test_a_site_that_takes_too_long_is_given_up(simulated_sites: SimulatedSites, fault: Fault) -> None:
    """SITE-040, LANE-027: silence and a slow drip both end at the deadline."""
    simulated_sites.world.misbehave("asurascans.com", fault)
    started = trio.current_time()
    with pytest.raises(TransportFailure, match=r"^no answer in time$"):
        await fetcher_for(simulated_sites, fetch_seconds=0.2).fetch(ASURA, ADDRESS, before_request=at_once)
    assert 0.2 <= trio.current_time() - started < 0.2 + AT_ONCE_S


async def test_the_deadline_is_for_all_hops_together(simulated_sites: SimulatedSites) -> None:
    """SITE-040: a hop does not get the whole time again, else the six of them would be through."""

    async def slow_redirect(exchange: Exchange) -> None:
        await trio.sleep(0.15)
        await exchange.answer(302, location=exchange.request.target + "x")

    simulated_sites.world.misbehave("asurascans.com", slow_redirect)
    with pytest.raises(TransportFailure, match=r"^no answer in time$"):
        await fetcher_for(simulated_sites, fetch_seconds=0.4).fetch(ASURA, ADDRESS, before_request=at_once)


async def test_waiting_for_a_turn_is_not_the_sites_time(simulated_sites: SimulatedSites) -> None:
    """SITE-040, LANE-056: a queue of our own makes no Site too slow."""

    async def wait_for_turn() -> None:
        await trio.lowlevel.checkpoint()
        assert trio.current_effective_deadline() == math.inf

    page = await fetcher_for(simulated_sites).fetch(ASURA, ADDRESS, before_request=wait_for_turn)
    assert page.status == 200


async def test_a_turn_is_taken_before_every_request(simulated_sites: SimulatedSites) -> None:
    """LANE-056: each hop waits for its own turn and leaves only then."""
    simulated_sites.world.misbehave("asurascans.com", faults.redirect_chain(5))
    seen_at_turn: list[int] = []

    async def take_turn() -> None:
        await trio.lowlevel.checkpoint()
        seen_at_turn.append(len(simulated_sites.requests))

    page = await fetcher_for(simulated_sites).fetch(ASURA, ADDRESS, before_request=take_turn)
    assert (page.status, page.address) == (200, f"{ADDRESS}?hop=5")
    assert seen_at_turn == [0, 1, 2, 3, 4, 5]


async def test_a_turn_that_cannot_be_had_ends_the_fetch(simulated_sites: SimulatedSites) -> None:
    """LANE-056: without the row nothing is asked, and the caller learns why."""

    async def no_database() -> None:
        raise ConnectionError("no database")

    with pytest.raises(ConnectionError, match="no database"):
        await fetcher_for(simulated_sites).fetch(ASURA, ADDRESS, before_request=no_database)
    assert simulated_sites.requests == []


async def test_a_cancelled_fetch_lets_go_at_once(simulated_sites: SimulatedSites) -> None:
    """LANE-020: shutdown does not wait for a silent Site."""
    simulated_sites.world.misbehave("asurascans.com", faults.silence)
    fetcher = fetcher_for(simulated_sites)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: fetcher.fetch(ASURA, ADDRESS, before_request=at_once))
        with trio.fail_after(5):
            await simulated_sites.wait_until(lambda: len(simulated_sites.requests) == 1)
        cancelled = trio.current_time()
        nursery.cancel_scope.cancel()
    assert trio.current_time() - cancelled < AT_ONCE_S


async def test_a_fetch_is_cancelled_in_the_middle_of_a_handshake() -> None:
    """LANE-020: a server that accepts and never speaks TLS is let go as fast."""
    accepted = trio.Event()

    async def say_nothing(stream: trio.SocketStream) -> None:
        accepted.set()
        await trio.sleep_forever()

    async with trio.open_nursery() as server:
        serve = functools.partial(trio.serve_tcp, say_nothing, 0, host="127.0.0.1")
        [listener] = await server.start(serve)
        port = listener.socket.getsockname()[1]
        fetcher = PageFetcher(fetchable, connect_to={"asurascans.com": ("127.0.0.1", port)})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: fetcher.fetch(ASURA, ADDRESS, before_request=at_once))
            with trio.fail_after(5):
                await accepted.wait()
            cancelled = trio.current_time()
            nursery.cancel_scope.cancel()
        assert trio.current_time() - cancelled < AT_ONCE_S
        server.cancel_scope.cancel()
