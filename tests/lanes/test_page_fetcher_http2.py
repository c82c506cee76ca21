"""The profile speaks HTTP/2 where the Site does, as Chrome would; the simulated Sites speak HTTP/1.1 alone."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import hypercorn.config
import hypercorn.trio
import pytest
import trio
import trustme

from bookmark_appliance.lanes.address_gate import fetchable
from bookmark_appliance.lanes.page_fetcher import PageFetcher
from bookmark_appliance.page import MAX_BODY_BYTES
from tests.lanes.fetching import ASURA, at_once

TARGET = "/manga/Foo%2527s/../%c3%a9?q=%2f"


@asynccontextmanager
async def http2_server(folder: Path, app: Any) -> AsyncIterator[PageFetcher]:
    """A fetcher that is led to `app` under the name asurascans.com."""
    authority = trustme.CA()
    ca_file, pair = folder / "ca.pem", folder / "pair.pem"
    authority.cert_pem.write_to_path(ca_file)
    authority.issue_cert("asurascans.com").private_key_and_cert_chain_pem.write_to_path(pair)
    listener = socket.create_server(("127.0.0.1", 0))
    config = hypercorn.config.Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.certfile = config.keyfile = str(pair)
    config.errorlog = None
    async with trio.open_nursery() as nursery:
        [origin] = await nursery.start(hypercorn.trio.serve, app, config)
        port = int(origin.rpartition(":")[2])
        yield PageFetcher(fetchable, connect_to={"asurascans.com": ("127.0.0.1", port)}, ca_file=ca_file)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("length", [20_000, MAX_BODY_BYTES + 1])
async def test_a_site_that_speaks_http2_is_read_over_it(tmp_path: Path, length: int) -> None:
    """SITE-040: chosen in the handshake, the address byte for byte, the body cut at its limit."""
    scopes: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await trio.sleep_forever()
        scopes.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"etag", b'"a"')]})
        await send({"type": "http.response.body", "body": b"x" * length})

    with trio.fail_after(20):
        async with http2_server(tmp_path, app) as fetcher:
            page = await fetcher.fetch(ASURA, f"https://asurascans.com{TARGET}", before_request=at_once)
    [scope] = scopes
    assert scope["http_version"] == "2"
    assert scope["raw_path"].decode() + "?" + scope["query_string"].decode() == TARGET
    assert (page.status, page.headers["etag"]) == (200, '"a"')
    assert (len(page.body), page.truncated) == (min(length, MAX_BODY_BYTES), length > MAX_BODY_BYTES)
