"""The plain cover fetcher over real TLS on loopback: what it takes, what it refuses, when it stops."""

import gzip
import math
from collections.abc import Collection
from pathlib import Path

import pytest
import trio

from bookmark_appliance.covers.cover_fetcher import CoverFetcher
from bookmark_appliance.covers.image_type import CoverRefused
from bookmark_appliance.lanes.page_errors import FetcherUnavailable
from bookmark_appliance.page import MAX_IMAGE_BYTES
from tests.covers.fetching import CDN, COVER, Names, answering, cover_fetcher_for, gif
from tests.lanes.fetching import at_once
from tests.memory_peak import memory_peak_kb, memory_peak_starts_again
from tests.simulated_sites import SimulatedSites, faults
from tests.simulated_sites.exchange import Exchange
from tests.simulated_sites.faults import Fault
from tests.simulated_sites.images import image
from tests.simulated_sites.world import SHAPES

pytest_plugins = ["tests.simulated_sites.fixtures"]

AT_ONCE_S = 5
"""Measured 2026-11: some ms. The rest is for a busy machine; what ignored us would take the 30 s of a fetch."""


@pytest.mark.parametrize("site", ["asura", "demonic", "lightnovelworld", "novelfull"])
async def test_the_cover_of_each_site_that_is_asked_plainly(simulated_sites: SimulatedSites, site: str) -> None:
    """COV-020: its bytes as they are, by the address that its page gave."""
    series = next(each for each in simulated_sites.world.series if each.site == site)
    cover = await cover_fetcher_for(simulated_sites).fetch(series.cover_address.replace(" ", "%20"), at_once)
    kind = SHAPES[site].cover_type
    assert (cover.body, cover.content_type) == (image(kind, series.slug), kind)
    [request] = simulated_sites.requests
    assert (request.headers["host"], request.target) == (SHAPES[site].cover_host, series.cover_target)


async def test_nothing_is_told_of_us(
    simulated_sites: SimulatedSites, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """COV-021, COV-024: no proxy, no credentials, no cookie and no referrer, of the environment or of a hop before."""
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").write_text(f"machine {CDN} login someone password something\n")

    async def set_cookie(exchange: Exchange) -> None:
        await exchange.answer(302, location="https://readermc.org/x", set_cookie="seen=1; Path=/; Secure")

    simulated_sites.world.misbehave(CDN, set_cookie)
    simulated_sites.world.misbehave("readermc.org", faults.redirect_to(f"https://{CDN}/y"))
    with pytest.raises(CoverRefused, match="too often"):
        await cover_fetcher_for(simulated_sites).fetch(COVER, at_once)
    for request in simulated_sites.requests:
        assert not {"cookie", "authorization", "proxy-connection", "referer"} & request.headers.keys()


@pytest.mark.parametrize(
    ("declared", "body", "kept"),
    [
        ("image/webp", image("image/jpeg", "x"), "image/jpeg"),
        ("image/jpg", image("image/jpeg", "x"), "image/jpeg"),
        ("image/png; charset=utf-8", image("image/png", "x"), "image/png"),
        ("image/jpeg", b"GIF89a/*" + bytes(20) + b"*/=1;alert(1)", "image/gif"),
        ("image/jpeg", b"<!DOCTYPE html><title>Just a moment...</title>", None),
        ("image/jpeg", b"<!--" + image("image/jpeg", "x"), None),
        ("image/svg+xml", b"<svg xmlns='http://www.w3.org/2000/svg'/>", None),
        ("image/png", b"<svg xmlns='http://www.w3.org/2000/svg'/>", None),
        ("text/html", image("image/jpeg", "x"), None),
        ("application/octet-stream", image("image/jpeg", "x"), None),
        ("image/jpeg", b"", None),
        ("image/png", image("image/png", "x")[:7], None),
    ],
)
async def test_header_and_bytes_must_both_be_an_image(
    simulated_sites: SimulatedSites, declared: str, body: bytes, kept: str | None
) -> None:
    """COV-019, COV-020: what is kept is the type of the bytes."""
    simulated_sites.world.misbehave(CDN, answering(body, f"Content-Type: {declared}"))
    fetcher = cover_fetcher_for(simulated_sites)
    if kept is None:
        with pytest.raises(CoverRefused, match="image that we take"):
            await fetcher.fetch(COVER, at_once)
    else:
        assert (await fetcher.fetch(COVER, at_once)).content_type == kept


async def test_an_image_without_a_declared_type_is_refused(simulated_sites: SimulatedSites) -> None:
    """COV-020: nothing is guessed; of several the last counts."""
    body = image("image/png", "x")
    for headers in ((), ("Content-Type: image/png", "Content-Type: text/html")):
        simulated_sites.world.misbehave(CDN, answering(body, *headers))
        with pytest.raises(CoverRefused, match="declared"):
            await cover_fetcher_for(simulated_sites).fetch(COVER, at_once)


@pytest.mark.parametrize("status", ["201 Created", "203 OK", "206 Partial Content", "304 Not Modified", "302 Found"])
async def test_no_status_but_200_brings_an_image(simulated_sites: SimulatedSites, status: str) -> None:
    """COV-024: whatever comes with it; a redirect to nowhere is one of them."""
    body = b"" if status.startswith("304") else image("image/png", "x")
    simulated_sites.world.misbehave(CDN, answering(body, "Content-Type: image/png", status=status))
    with pytest.raises(CoverRefused, match=rf"^status {status[:3]}$"):
        await cover_fetcher_for(simulated_sites).fetch(COVER, at_once)


@pytest.mark.parametrize("status", [403, 404, 410, 429, 500, 503])
async def test_a_refusal_or_an_error_is_no_image(simulated_sites: SimulatedSites, status: int) -> None:
    """COV-024: also where the picture of an error comes with it."""
    simulated_sites.world.misbehave(CDN, faults.status(status, gif(100), content_type="image/gif"))
    with pytest.raises(CoverRefused, match=rf"^status {status}$"):
        await cover_fetcher_for(simulated_sites).fetch(COVER, at_once)


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "undeclared"])
@pytest.mark.parametrize("length", [4 * 2**20 + 1, MAX_IMAGE_BYTES, MAX_IMAGE_BYTES + 1])
async def test_ten_mebibytes_is_the_most(simulated_sites: SimulatedSites, length: int, declared: bool) -> None:
    """COV-025: 4 MiB + 1 and 10,485,760 bytes are taken, one more is not, with or without a declared length."""
    declaration = [] if declared else ["Transfer-Encoding: chunked"]
    body = gif(length) if declared else b"%x\r\n%b\r\n0\r\n\r\n" % (length, gif(length))
    simulated_sites.world.misbehave(CDN, answering(body, "Content-Type: image/gif", *declaration, declared=declared))
    fetcher = cover_fetcher_for(simulated_sites)
    if length > 10_485_760:
        with pytest.raises(CoverRefused, match=r"^more than 10 MiB$"):
            await fetcher.fetch(COVER, at_once)
    else:
        assert (await fetcher.fetch(COVER, at_once)).body == gif(length)


async def test_the_limit_is_for_what_is_unpacked(simulated_sites: SimulatedSites) -> None:
    """COV-025: a small answer may be a large image."""
    for length in (MAX_IMAGE_BYTES, MAX_IMAGE_BYTES + 1):
        packed = gzip.compress(gif(length), 9)
        assert len(packed) < 20_000
        simulated_sites.world.misbehave(CDN, answering(packed, "Content-Type: image/gif", "Content-Encoding: gzip"))
        if length > MAX_IMAGE_BYTES:
            with pytest.raises(CoverRefused, match="more than 10 MiB"):
                await cover_fetcher_for(simulated_sites).fetch(COVER, at_once)
        else:
            assert len((await cover_fetcher_for(simulated_sites).fetch(COVER, at_once)).body) == length


def endless(*headers: str) -> Fault:
    """A GIF that goes on until the client hangs up."""

    async def fault(exchange: Exchange) -> None:
        await exchange.begin("Content-Type: image/gif", *headers)
        await exchange.stream.send_all(gif(10))
        while True:
            await exchange.stream.send_all(bytes(50_000))

    return fault


@pytest.mark.parametrize(
    "fault",
    [faults.gzip_bomb, endless(), endless("Content-Length: 100000000000")],
    ids=["gzip bomb", "endless", "declared to be 100 GB"],
)
async def test_a_body_without_end_costs_little_memory(simulated_sites: SimulatedSites, fault: Fault) -> None:
    """COV-025: refused at 10 MiB, within 25 MB of memory."""
    fetcher = cover_fetcher_for(simulated_sites)
    await fetcher.fetch(COVER, at_once)
    simulated_sites.world.misbehave(CDN, fault)
    before = memory_peak_starts_again()
    for _ in range(5):  # a body that waited for the garbage collector would show
        with pytest.raises(CoverRefused, match="more than 10 MiB"):
            await fetcher.fetch(COVER, at_once)
    assert memory_peak_kb() - before < 25_000


@pytest.mark.parametrize(
    "fault",
    [
        answering(gif(1000), "Content-Type: image/gif", "Content-Length: 2000", declared=False),
        answering(gif(1000), "Content-Type: image/gif", "Content-Length: -1", declared=False),
        answering(gif(1000), "Content-Type: image/gif", declared=False),  # and no word that this was all
        answering(gif(1000), "Content-Type: image/gif", "Content-Length: 1e3", declared=False),
        answering(b"3e8\r\n" + gif(500), "Content-Type: image/gif", "Transfer-Encoding: chunked", declared=False),
        answering(b"not packed", "Content-Type: image/gif", "Content-Encoding: gzip"),
        answering(gif(1000), "Content-Type: image/gif", "Content-Encoding: unheard-of"),
        faults.truncated_body,
        faults.reset,
        faults.endless_headers,
    ],
)
async def test_an_image_that_did_not_come_whole_is_none(simulated_sites: SimulatedSites, fault: Fault) -> None:
    """COV-020: what its own words say of its length does not hold; the next Poll tries again."""
    simulated_sites.world.misbehave(CDN, fault)
    with pytest.raises(CoverRefused):
        await cover_fetcher_for(simulated_sites).fetch(COVER, at_once)


async def test_more_than_was_declared_is_not_read(simulated_sites: SimulatedSites) -> None:
    """COV-025: as in every browser, the answer ends where it said it would."""
    simulated_sites.world.misbehave(
        CDN, answering(gif(1000), "Content-Type: image/gif", "Content-Length: 600", declared=False)
    )
    assert len((await cover_fetcher_for(simulated_sites).fetch(COVER, at_once)).body) == 600


@pytest.mark.parametrize("fault", [faults.silence, faults.drip()], ids=["silence", "drip"])
async def test_a_host_that_takes_too_long_is_given_up(simulated_sites: SimulatedSites, fault: Fault) -> None:
    """COV-024: at the deadline, and nothing of it goes on."""
    simulated_sites.world.misbehave(CDN, fault)
    started = trio.current_time()
    with pytest.raises(CoverRefused, match=r"^no answer in time$"):
        await cover_fetcher_for(simulated_sites, fetch_seconds=0.2).fetch(COVER, at_once)
    assert trio.current_time() - started < 0.2 + AT_ONCE_S


async def test_a_resolver_that_takes_too_long_is_given_up() -> None:
    """COV-024: the time is for lookups too."""

    async def silent(host: str) -> Collection[str]:
        await trio.sleep_forever()

    with trio.fail_after(AT_ONCE_S), pytest.raises(CoverRefused, match="no answer in time"):
        await CoverFetcher({}, None, look_up=silent, fetch_seconds=0.1).fetch("https://cdn.example/x.jpg", at_once)


async def test_the_deadline_is_for_all_hops_together(simulated_sites: SimulatedSites) -> None:
    """COV-024: a hop does not get the whole time again, else the six of them would be through."""

    async def slow_redirect(exchange: Exchange) -> None:
        await trio.sleep(0.15)
        await exchange.answer(302, location=exchange.request.target + "x")

    simulated_sites.world.misbehave(CDN, slow_redirect)
    with pytest.raises(CoverRefused, match="no answer in time"):
        await cover_fetcher_for(simulated_sites, fetch_seconds=0.4).fetch(COVER, at_once)


async def test_waiting_for_a_turn_is_not_the_hosts_time() -> None:
    """COV-024, LANE-056: a queue of our own makes no host too slow, and takes nothing off its 30 s."""
    waited, ends, started = 0.05, [], trio.current_time()

    async def look_up(host: str) -> Collection[str]:
        ends.append(trio.current_effective_deadline())
        return ["8.8.8.8"] if len(ends) == 1 else ["10.0.0.1"]

    async def wait_for_turn() -> None:
        assert trio.current_effective_deadline() == math.inf
        await trio.sleep(waited)

    with pytest.raises(CoverRefused, match="private network"):
        await CoverFetcher({}, None, look_up=look_up).fetch("https://cdn.example/x.jpg", wait_for_turn)
    assert 30 <= ends[0] - started < 30 + AT_ONCE_S
    assert waited <= ends[1] - ends[0] < waited + AT_ONCE_S


def redirects(hops: int) -> Fault:
    """So many, each in another way, then the image."""

    async def fault(exchange: Exchange) -> None:
        hop = int(exchange.request.target.partition("hop=")[2] or 0)
        target = exchange.request.target.partition("?")[0]
        locations = [f"?hop={hop + 1}", f"{target}?hop={hop + 1}", f"//{CDN}{target}?hop={hop + 1}"]
        if hop == hops:
            await exchange.answer(200, gif(100), content_type="image/gif")
        else:
            await exchange.answer((301, 302, 303, 307, 308)[hop % 5], location=locations[hop % 3])

    return fault


async def test_five_redirects_are_followed_and_no_more(simulated_sites: SimulatedSites) -> None:
    """COV-022, COV-024, LANE-056: a turn is taken before each request, and both lookups are made for each."""
    turns: list[int] = []

    async def take_turn() -> None:
        turns.append(len(simulated_sites.requests))

    fetcher = cover_fetcher_for(simulated_sites)
    simulated_sites.world.misbehave(CDN, redirects(5))
    assert (await fetcher.fetch(COVER, take_turn)).body == gif(100)
    assert turns == [0, 1, 2, 3, 4, 5]
    simulated_sites.world.misbehave(CDN, redirects(6))
    with pytest.raises(CoverRefused, match=r"^redirected too often$"):
        await fetcher.fetch(COVER, at_once)
    assert len(simulated_sites.requests) == 12


async def test_a_redirect_leads_to_another_host_by_its_own_gate(simulated_sites: SimulatedSites) -> None:
    """COV-022, COV-023: the host that the operator placed is exempt, the one it leads to is looked up, and back."""
    simulated_sites.world.misbehave(CDN, faults.redirect_to("https://elsewhere.example/x.jpg"))
    names = Names(["8.8.8.8"], ["8.8.8.8", "10.0.0.1"])
    with pytest.raises(CoverRefused, match="private network"):
        await cover_fetcher_for(simulated_sites, look_up=names).fetch(COVER, at_once)
    assert names.lookups == ["elsewhere.example"] * 2
    simulated_sites.world.misbehave(
        CDN, faults.redirect_to(simulated_sites.world.find("novelfull", "lord-of-quiet-rivers").cover_address)
    )
    assert (await cover_fetcher_for(simulated_sites).fetch(COVER, at_once)).content_type == "image/webp"


@pytest.mark.parametrize(
    ("target", "sent"),
    [
        ("/a/./b/../c//d%2f%2F.jpg?q=%c3%a9&amp;r=+", "/a/./b/../c//d%2f%2F.jpg?q=%c3%a9&amp;r=+"),
        ("/café.jpg", "/caf%C3%A9.jpg"),
        ("/x.jpg#fragment", "/x.jpg"),
        ("?x", "/?x"),
        ("", "/"),
    ],
)
async def test_an_address_travels_as_it_was_published(simulated_sites: SimulatedSites, target: str, sent: str) -> None:
    """COV-021: judged, never rewritten; what can't stand in a request line is encoded."""
    with pytest.raises(CoverRefused, match="status 404"):
        await cover_fetcher_for(simulated_sites).fetch(f"https://{CDN}{target}", at_once)
    assert [request.target for request in simulated_sites.requests] == [sent]


async def test_what_the_turn_raises_passes_through(simulated_sites: SimulatedSites) -> None:
    """LANE-056: without a turn nothing is asked."""

    async def no_database() -> None:
        raise ConnectionError("no database")

    with pytest.raises(ConnectionError, match="no database"):
        await cover_fetcher_for(simulated_sites).fetch(COVER, no_database)
    assert simulated_sites.requests == []


async def test_a_cancelled_fetch_lets_go_at_once(simulated_sites: SimulatedSites) -> None:
    """COV-024: shutdown does not wait for a silent image host."""
    simulated_sites.world.misbehave(CDN, faults.silence)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cover_fetcher_for(simulated_sites).fetch, COVER, at_once)
        with trio.fail_after(AT_ONCE_S):
            await simulated_sites.wait_until(lambda: len(simulated_sites.requests) == 1)
        cancelled = trio.current_time()
        nursery.cancel_scope.cancel()
    assert trio.current_time() - cancelled < AT_ONCE_S


async def test_a_certificate_that_is_not_the_hosts_is_refused(simulated_sites: SimulatedSites) -> None:
    """COV-021: SITE_CONNECT_TO changes where to connect, SITE_CA_FILE whom to trust, and neither whose name it is."""
    there = ("127.0.0.1", simulated_sites.port)
    for fetcher in (CoverFetcher({CDN: there}, None), CoverFetcher({"else.example": there}, simulated_sites.ca_file)):
        for address in (COVER, "https://else.example/x.jpg"):
            with pytest.raises(CoverRefused):
                await fetcher.fetch(address, at_once)
    assert simulated_sites.requests == []


def test_a_client_that_cannot_be_built_says_so(tmp_path: Path) -> None:
    """OPS-004: the service goes on without it."""
    with pytest.raises(FetcherUnavailable, match="trust anchors"):
        CoverFetcher({}, tmp_path / "missing.pem")
