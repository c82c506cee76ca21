"""One turn is one request, though libcurl by itself asks again where a server let a request drop."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import h2.config
import h2.connection
import h2.errors
import h2.events
import pytest
import trio
import trustme

from bookmark_appliance.lanes.address_gate import fetchable
from bookmark_appliance.lanes.page_errors import TransportFailure
from bookmark_appliance.lanes.page_fetcher import PageFetcher
from tests.lanes.fetching import ASURA, at_once

ADDRESS = "https://asurascans.com/comics/lantern-of-the-ninth-gate-4be1c07a"

Connection = trio.SSLStream[trio.SocketStream]


@asynccontextmanager
async def tls_server(
    folder: Path, protocol: str, serve: Callable[[Connection], Awaitable[None]]
) -> AsyncIterator[PageFetcher]:
    """A fetcher that is led to `serve`, which speaks `protocol`, under the name asurascans.com."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("asurascans.com").configure_cert(context)
    context.set_alpn_protocols([protocol])

    async def serve_until_it_ends(stream: Connection) -> None:
        try:
            async with stream:
                await serve(stream)
        except trio.BrokenResourceError:
            pass

    [listener] = await trio.open_ssl_over_tcp_listeners(0, context, host="127.0.0.1", https_compatible=True)
    port = listener.transport_listener.socket.getsockname()[1]  # type: ignore[attr-defined]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve_until_it_ends, [listener])
        yield PageFetcher(fetchable, connect_to={"asurascans.com": ("127.0.0.1", port)}, ca_file=folder / "ca.pem")
        nursery.cancel_scope.cancel()


async def test_a_refused_stream_is_not_asked_for_again(tmp_path: Path) -> None:
    """LANE-056: an HTTP/2 server that is too busy says REFUSED_STREAM, which invites every client to try at once."""
    asked = 0

    async def refuse(stream: Connection) -> None:
        nonlocal asked
        speech = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        speech.initiate_connection()
        while data := await stream.receive_some(65_536):
            for event in speech.receive_data(bytes(data)):
                if isinstance(event, h2.events.RequestReceived):
                    asked += 1
                    speech.reset_stream(event.stream_id, h2.errors.ErrorCodes.REFUSED_STREAM)
            await stream.send_all(speech.data_to_send())

    with trio.fail_after(20):
        async with tls_server(tmp_path, "h2", refuse) as fetcher:
            with pytest.raises(TransportFailure) as failure:
                await fetcher.fetch(ASURA, ADDRESS, before_request=at_once)
    assert asked == 1
    assert str(failure.value) == "not answered at the first try"


async def test_a_hop_goes_over_a_connection_of_its_own(tmp_path: Path) -> None:
    """LANE-056: over a kept one that dies meanwhile it would be asked twice, or not answered."""
    asked: list[bytes] = []
    connections = 0

    async def redirect(stream: Connection) -> None:
        nonlocal connections
        connections += 1
        while data := bytes(await stream.receive_some(65_536)):
            asked.append(data.partition(b" HTTP/")[0])
            head = b"HTTP/1.1 200 OK" if asked[-1].endswith(b"?again") else b"HTTP/1.1 302 Found\r\nLocation: ?again"
            await stream.send_all(head + b"\r\nContent-Length: 0\r\n\r\n")

    with trio.fail_after(20):
        async with tls_server(tmp_path, "http/1.1", redirect) as fetcher:
            page = await fetcher.fetch(ASURA, ADDRESS, before_request=at_once)
    assert page.status == 200
    assert (len(asked), connections) == (2, 2)


async def test_a_connection_that_dies_unanswered_is_not_asked_over_another(tmp_path: Path) -> None:
    """LANE-056, LANE-027: a failure of this turn; the Series has others."""
    asked = 0

    async def hang_up(stream: Connection) -> None:
        nonlocal asked
        await stream.receive_some(65_536)
        asked += 1

    with trio.fail_after(20):
        async with tls_server(tmp_path, "http/1.1", hang_up) as fetcher:
            with pytest.raises(TransportFailure):
                await fetcher.fetch(ASURA, ADDRESS, before_request=at_once)
    assert asked == 1
