"""The plain fetcher over real TLS on loopback: what it asks, what it takes, when it stops."""

import base64
import gzip
import os
import re
import sys
from pathlib import Path

import pytest
import trio

from bookmark_appliance.lanes.address_gate import fetchable
from bookmark_appliance.lanes.page import MAX_BODY_BYTES, FetcherUnavailable, TransportFailure, Unfetchable
from bookmark_appliance.lanes.page_fetcher import PROFILE, PageFetcher
from bookmark_appliance.lanes.sites import SITES
from tests.lanes.fetching import ASURA, any_address, at_once, fetcher_for, site_at
from tests.memory_peak import memory_peak_kb, memory_peak_starts_again
from tests.simulated_sites import SimulatedSites, faults
from tests.simulated_sites.exchange import Exchange, stored_as_zstd
from tests.simulated_sites.faults import Fault

pytest_plugins = ["tests.simulated_sites.fixtures"]

ADDRESS = "https://asurascans.com/comics/lantern-of-the-ninth-gate-4be1c07a"


def raw_body(body: bytes, *headers: str) -> Fault:
    """These very bytes under these very header lines."""

    async def fault(exchange: Exchange) -> None:
        await exchange.begin(*headers)
        await exchange.stream.send_all(body)
        await exchange.stream.aclose()

    return fault


async def test_every_series_page_is_read_with_its_encoding(simulated_sites: SimulatedSites) -> None:
    """SITE-040, SITE-041: gzip, and zstd at lightnovelworld, arrive as text."""
    fetcher = fetcher_for(simulated_sites)
    for series in simulated_sites.world.series:
        page = await fetcher.fetch(SITES[series.site], series.address, before_request=at_once)
        assert (page.status, page.truncated, page.address) == (200, False, series.address)
        assert "</html>" in page.text
        expected = "zstd" if series.site == "lightnovelworld" else "gzip"
        assert page.headers["content-encoding"] == expected


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"<p>Chapter 12</p>" * 3, mtime=0)),
        ("zstd", stored_as_zstd(b"<p>Chapter 12</p>" * 3)),
        ("br", base64.b64decode("GzIA+I3EOEbymZhV/RLDA6dkfLITUIrJBB5QR7+cogk=")),
    ],
    ids=["gzip", "zstd", "br"],
)
async def test_each_encoding_that_chrome_accepts_is_undone(
    simulated_sites: SimulatedSites, encoding: str, packed: bytes
) -> None:
    """SITE-041: what is asked for is understood."""
    simulated_sites.world.misbehave(
        "asurascans.com", raw_body(packed, f"Content-Encoding: {encoding}", f"Content-Length: {len(packed)}")
    )
    page = await fetcher_for(simulated_sites).fetch(ASURA, ADDRESS, before_request=at_once)
    assert page.body == b"<p>Chapter 12</p>" * 3


async def test_asks_as_one_exact_chrome(simulated_sites: SimulatedSites) -> None:
    """SITE-040: the user agent belongs to the profile, and the headers are those of a person who opens a page."""
    await fetcher_for(simulated_sites).fetch(ASURA, ADDRESS, before_request=at_once)
    [request] = simulated_sites.requests
    version = re.fullmatch(r"chrome([0-9]+)", PROFILE)
    assert version, "a profile is named exactly, never by the alias that moves"
    assert f"Chrome/{version[1]}.0.0.0" in request.headers["user-agent"]
    assert f'"Google Chrome";v="{version[1]}"' in request.headers["sec-ch-ua"]
    assert request.headers["accept-encoding"] == "gzip, deflate, br, zstd"
    assert request.headers["sec-fetch-dest"] == "document"
    assert not {"cookie", "authorization", "proxy-connection", "if-none-match"} & request.headers.keys()


@pytest.mark.parametrize(
    "target",
    [
        "/manga/Widow%2527s-Clockwork",
        "/manga/Foo%25252Ds",
        "/a/./b/../c//d",
        "/%c3%a9/%C3%A9?q=%2f%2F&r=+&amp;s=%",
        "/plain?",
        "/tilde~'()*!;:@$,[]|^`{}\\end",
    ],
)
async def test_an_address_travels_byte_for_byte(simulated_sites: SimulatedSites, target: str) -> None:
    """SITE-040: nothing is decoded, encoded again, squeezed or put into the other case."""
    fetcher = fetcher_for(simulated_sites, gate=any_address)
    await fetcher.fetch(ASURA, f"https://asurascans.com{target}", before_request=at_once)
    assert [request.target for request in simulated_sites.requests] == [target]


@pytest.mark.parametrize(
    ("target", "sent"),
    [
        ("/caf\u00e9 au lait", "/caf%C3%A9%20au%20lait"),
        ("/a\r\nX-Injected: 1\r\n\r\n", "/a%0D%0AX-Injected:%201%0D%0A%0D%0A"),
        ("/page#chapters", "/page"),
        ("", "/"),
        ("?p=1", "/?p=1"),
    ],
)
async def test_what_cannot_stand_in_a_request_line_is_encoded(
    simulated_sites: SimulatedSites, target: str, sent: str
) -> None:
    """SITE-040: one address is one request, whatever it holds."""
    fetcher = fetcher_for(simulated_sites, gate=any_address)
    await fetcher.fetch(ASURA, f"https://asurascans.com{target}", before_request=at_once)
    [request] = simulated_sites.requests
    assert (request.target, "x-injected" in request.headers) == (sent, False)


async def test_only_the_host_of_the_site_is_ever_asked(simulated_sites: SimulatedSites) -> None:
    """SITE-001, SITE-040: even past a gate that lets it through, an odd authority leads nowhere else."""
    fetcher = fetcher_for(simulated_sites, gate=any_address)
    for odd in ("https://asurascans.com@127.0.0.1/x", "https://127.0.0.1:8080/x", "https:x", "file:///etc/passwd"):
        page = await fetcher.fetch(ASURA, odd, before_request=at_once)
        assert page.status == 404
    assert {request.host for request in simulated_sites.requests} == {"asurascans.com"}


async def test_the_gate_comes_before_any_request(simulated_sites: SimulatedSites) -> None:
    """LANE-025, SITE-001: a refused address is unfetchable, and nobody's turn is taken."""

    async def never() -> None:
        pytest.fail("a turn was taken")

    with pytest.raises(Unfetchable):
        await fetcher_for(simulated_sites).fetch(ASURA, "https://evil.example/x", before_request=never)
    assert simulated_sites.requests == []


async def test_headers_are_lower_case_and_the_last_of_a_repeated_one_counts(simulated_sites: SimulatedSites) -> None:
    """LANE-022, LANE-055: what judges a refusal and what makes the next request conditional is there."""

    async def answer(exchange: Exchange) -> None:
        await exchange.stream.send_all(
            b"HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n"
            b"HTTP/1.1 503 Busy\r\nRetry-After: 30\r\nRETRY-AFTER:  90 \r\n"
            b'CF-Mitigated: challenge\r\nETag: W/"a"\r\nLast-Modified: Mon, 03 Aug 2026 10:00:00 GMT\r\n'
            b"Content-Length: 0\r\n\r\n"
        )

    simulated_sites.world.misbehave("asurascans.com", answer)
    page = await fetcher_for(simulated_sites).fetch(ASURA, ADDRESS, before_request=at_once)
    assert page.status == 503
    assert dict(page.headers) == {
        "retry-after": "90",
        "cf-mitigated": "challenge",
        "etag": 'W/"a"',
        "last-modified": "Mon, 03 Aug 2026 10:00:00 GMT",
        "content-length": "0",
    }


async def test_a_conditional_request_is_answered_by_304(simulated_sites: SimulatedSites) -> None:
    """LANE-055: the validators go out with the request, and a 304 is a page like any other."""
    simulated_sites.world.validating.add("asura")
    fetcher = fetcher_for(simulated_sites)
    first = await fetcher.fetch(ASURA, ADDRESS, before_request=at_once)
    for name, validator in (("If-None-Match", "etag"), ("If-Modified-Since", "last-modified")):
        headers = {name: first.headers[validator]}
        again = await fetcher.fetch(ASURA, ADDRESS, headers=headers, before_request=at_once)
        assert (again.status, again.body) == (304, b"")
    simulated_sites.world.publish("asura", "lantern-of-the-ninth-gate", "89")
    headers = {"If-None-Match": first.headers["etag"]}
    assert (await fetcher.fetch(ASURA, ADDRESS, headers=headers, before_request=at_once)).status == 200


async def test_a_validator_goes_back_as_it_came(simulated_sites: SimulatedSites) -> None:
    """LANE-055: whatever bytes a Site puts into an ETag, the next check is a request and not a crash."""

    async def odd_etag(exchange: Exchange) -> None:
        await exchange.stream.send_all(b'HTTP/1.1 200 OK\r\nETag: "\x85\xad\t\xe9"\r\nContent-Length: 0\r\n\r\n')
        await exchange.stream.aclose()

    simulated_sites.world.misbehave("asurascans.com", odd_etag)
    fetcher = fetcher_for(simulated_sites)
    headers: dict[str, str] = {}
    for _ in range(2):
        page = await fetcher.fetch(ASURA, ADDRESS, headers=headers, before_request=at_once)
        headers = {"If-None-Match": page.headers["etag"]}
    assert simulated_sites.requests[-1].headers["if-none-match"] == '"\x85\xad\t\xe9"'


async def test_a_header_cannot_smuggle_another(simulated_sites: SimulatedSites) -> None:
    """LANE-055: a stored validator is sent as one header or not at all."""
    with pytest.raises(ValueError, match="If-None-Match"):
        await fetcher_for(simulated_sites).fetch(
            ASURA, ADDRESS, headers={"If-None-Match": "a\r\nX: 1"}, before_request=at_once
        )
    assert simulated_sites.requests == []


async def test_a_body_of_exactly_the_limit_is_whole(simulated_sites: SimulatedSites) -> None:
    """SITE-040: 4,194,304 bytes are a page, one more is a truncated page."""
    fetcher = fetcher_for(simulated_sites)
    for length, truncated in ((MAX_BODY_BYTES, False), (MAX_BODY_BYTES + 1, True)):
        simulated_sites.world.misbehave("asurascans.com", faults.status(200, "x" * length))
        page = await fetcher.fetch(ASURA, ADDRESS, before_request=at_once)
        assert (len(page.body), page.truncated) == (MAX_BODY_BYTES, truncated)


@pytest.mark.parametrize("fault", [faults.gzip_bomb, faults.endless_body])
async def test_a_body_without_end_costs_little_memory(simulated_sites: SimulatedSites, fault: Fault) -> None:
    """SITE-040: a gzip bomb and an endless body are truncated pages, within 20 MB of memory."""
    fetcher = fetcher_for(simulated_sites)
    await fetcher.fetch(ASURA, ADDRESS, before_request=at_once)
    simulated_sites.world.misbehave("asurascans.com", fault)
    before = memory_peak_starts_again()
    page = await fetcher.fetch(ASURA, ADDRESS, before_request=at_once)
    assert (len(page.body), page.truncated) == (MAX_BODY_BYTES, True)
    assert memory_peak_kb() - before < 20_000


async def test_a_header_block_without_end_is_given_up(simulated_sites: SimulatedSites) -> None:
    """LANE-027: headers are bounded too."""
    simulated_sites.world.misbehave("asurascans.com", faults.endless_headers)
    with pytest.raises(TransportFailure, match="header block too long"):
        await fetcher_for(simulated_sites).fetch(ASURA, ADDRESS, before_request=at_once)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (faults.reset, "Failure when receiving.*"),
        (faults.truncated_body, "Failure when receiving.*|.*partial file"),
        (raw_body(b"not gzip at all", "Content-Encoding: gzip"), ".*Content or Transfer-Encoding"),
    ],
)
async def test_a_broken_answer_is_a_transport_failure(
    simulated_sites: SimulatedSites, fault: Fault, reason: str
) -> None:
    """LANE-027: half a page is no page; the reason is one short phrase without an address."""
    simulated_sites.world.misbehave("asurascans.com", fault)
    with pytest.raises(TransportFailure, match=f"^({reason})$"):
        await fetcher_for(simulated_sites).fetch(ASURA, ADDRESS, before_request=at_once)


async def test_a_closed_port_is_a_transport_failure() -> None:
    """LANE-027: nobody listens."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    fetcher = PageFetcher(fetchable, connect_to={"asurascans.com": ("127.0.0.1", port)})
    with pytest.raises(TransportFailure, match="connect to server"):
        await fetcher.fetch(ASURA, ADDRESS, before_request=at_once)


async def test_a_name_without_an_address_is_a_transport_failure() -> None:
    """LANE-027: a resolver that says no, or nothing."""
    fetcher = PageFetcher(fetchable, fetch_seconds=2)
    site = site_at("nowhere.invalid")
    with pytest.raises(TransportFailure, match=r"resolve hostname|no answer in time"):
        await fetcher.fetch(site, "https://nowhere.invalid/", before_request=at_once)


async def test_a_certificate_for_another_name_is_refused(simulated_sites: SimulatedSites) -> None:
    """SITE-040: SITE_CONNECT_TO changes where to connect and not whose certificate is asked for."""
    fetcher = fetcher_for(simulated_sites, more_hosts=("elsewhere.example",))
    site = site_at("elsewhere.example")
    with pytest.raises(TransportFailure, match="certificate"):
        await fetcher.fetch(site, "https://elsewhere.example/", before_request=at_once)
    assert simulated_sites.requests == []


async def test_an_unknown_authority_is_refused(simulated_sites: SimulatedSites) -> None:
    """SITE-040: without SITE_CA_FILE the simulated Sites are strangers."""
    fetcher = PageFetcher(fetchable, connect_to={"asurascans.com": ("127.0.0.1", simulated_sites.port)})
    with pytest.raises(TransportFailure, match="certificate"):
        await fetcher.fetch(ASURA, ADDRESS, before_request=at_once)


async def test_the_environment_and_the_home_folder_have_no_say(
    simulated_sites: SimulatedSites, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """SITE-040: no proxy, no .netrc, no profile is taken from outside the settings."""
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("CURL_IMPERSONATE", "chrome99")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").write_text("machine asurascans.com login someone password something\n")
    page = await fetcher_for(simulated_sites).fetch(ASURA, ADDRESS, before_request=at_once)
    [request] = simulated_sites.requests
    assert page.status == 200
    assert "authorization" not in request.headers
    assert "Chrome/99" not in request.headers["user-agent"]


async def test_cookies_last_for_one_fetch(simulated_sites: SimulatedSites) -> None:
    """SITE-040: a hop sees the cookie that sent it there, the next Series does not."""

    async def set_cookie(exchange: Exchange) -> None:
        if exchange.request.target.endswith("?again"):
            await exchange.answer(200, exchange.body)
        else:
            await exchange.answer(302, location="?again", set_cookie="seen=1; Path=/; Secure")

    simulated_sites.world.misbehave("asurascans.com", set_cookie)
    fetcher = fetcher_for(simulated_sites)
    for _ in range(2):
        await fetcher.fetch(ASURA, ADDRESS, before_request=at_once)
    assert [request.headers.get("cookie") for request in simulated_sites.requests] == [None, "seen=1"] * 2


def test_a_client_that_cannot_be_built_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OPS-004: an unknown profile, trust anchors that are none, a binary that can't be loaded."""
    empty = tmp_path / "empty.pem"
    empty.write_text("no certificate here")
    with pytest.raises(FetcherUnavailable, match="chrome1"):
        PageFetcher(fetchable, profile="chrome1")
    for ca_file in (empty, tmp_path / "missing.pem"):
        with pytest.raises(FetcherUnavailable, match="trust anchors"):
            PageFetcher(fetchable, ca_file=ca_file)
    monkeypatch.setitem(sys.modules, "bookmark_appliance.lanes.curl_transfer", None)
    monkeypatch.delattr("bookmark_appliance.lanes.curl_transfer")
    with pytest.raises(FetcherUnavailable, match="curl_transfer"):
        PageFetcher(fetchable)


async def test_fetches_at_the_same_time_do_not_mix_and_need_no_thread(simulated_sites: SimulatedSites) -> None:
    """SITE-040: each fetch has its own connection, and all of them run in this one thread."""
    fetcher = fetcher_for(simulated_sites)
    titles: dict[str, str] = {}
    threads = set(os.listdir("/proc/self/task"))

    async def read(site_name: str, address: str) -> None:
        page = await fetcher.fetch(SITES[site_name], address, before_request=at_once)
        titles[address] = re.findall("<title>(.*?)</title>", page.text)[0]
        assert set(os.listdir("/proc/self/task")) == threads

    async with trio.open_nursery() as nursery:
        for series in simulated_sites.world.series:
            nursery.start_soon(read, series.site, series.address)
    assert titles == {series.address: series.title.replace("'", "&#x27;") for series in simulated_sites.world.series}
