"""The ways in which a Site misbehaves. A fault answers an exchange in the Site's place."""

import socket
import struct
import zlib
from collections.abc import Awaitable, Callable

import trio

from tests.simulated_sites.exchange import Exchange

Fault = Callable[[Exchange], Awaitable[None]]

CHALLENGE = """<!DOCTYPE html><html lang="en-US"><head><title>Just a moment...</title></head><body>
<div class="main-wrapper" role="main"><noscript>Scripts have to be switched on to go further.</noscript></div>
<script>window._cf_chl_opt={cvId:'3',cType:'managed',cRay:'77aa00ff11ee22dd'};var a=document.createElement('script');
a.src='/cdn-cgi/challenge-platform/h/g/orchestrate/chl_page/v1?ray=77aa00ff11ee22dd';
document.head.appendChild(a);</script></body></html>
"""
MISSING = "<!DOCTYPE html><html><head><title>Error 404 - page not found</title></head><body><h1>404</h1></body></html>"
REDESIGN = "<!DOCTYPE html><html><head><title>A new look</title></head><body><main id='root'></main></body></html>"


def status(code: int, body: bytes | str = "<h1>Sorry</h1>", **headers: str) -> Fault:
    """Answer with `code`; `retry_after="60"` becomes a Retry-After header."""

    async def fault(exchange: Exchange) -> None:
        exchange.headers.clear()
        await exchange.answer(code, body, **headers)

    return fault


def redirect_chain(hops: int) -> Fault:
    """`hops` redirects on the same host, then the page itself."""

    async def fault(exchange: Exchange) -> None:
        _, _, taken = exchange.request.target.partition("hop=")
        hop = int(taken or 0)
        if hop == hops:
            await exchange.answer(200, exchange.body)
        else:
            await exchange.answer(302, location=f"{exchange.request.path}?hop={hop + 1}")

    return fault


def redirect_to(location: str) -> Fault:
    """Redirect to `location`, whatever that is."""
    return status(302, "", location=location)


async def silence(exchange: Exchange) -> None:
    """Take the request and say nothing until the client has gone."""
    await exchange.stream.receive_some()


def drip(seconds: float = 0.05) -> Fault:
    """The page, one byte every `seconds`."""

    async def fault(exchange: Exchange) -> None:
        await exchange.begin(f"Content-Length: {len(exchange.body)}")
        for position in range(len(exchange.body)):
            await exchange.stream.send_all(exchange.body[position : position + 1])
            await trio.sleep(seconds)

    return fault


def in_halves(seconds: float = 0.5) -> Fault:
    """The page in two halves, `seconds` apart: who reads a document while it is loading sees the first."""

    async def fault(exchange: Exchange) -> None:
        await exchange.begin(f"Content-Length: {len(exchange.body)}")
        await exchange.stream.send_all(exchange.body[: len(exchange.body) // 2])
        await trio.sleep(seconds)
        await exchange.stream.send_all(exchange.body[len(exchange.body) // 2 :])

    return fault


async def endless_body(exchange: Exchange) -> None:
    """A body that goes on until the client hangs up."""
    await exchange.begin()
    while True:
        await exchange.stream.send_all(b"<p>and another thing</p>" * 2_000)


async def endless_headers(exchange: Exchange) -> None:
    """A header block that goes on until the client hangs up."""
    await exchange.stream.send_all(b"HTTP/1.1 200 OK\r\n")
    while True:
        await exchange.stream.send_all(b"X-Filler: and another thing\r\n" * 100)


async def gzip_bomb(exchange: Exchange) -> None:
    """A gigabyte of blanks in a megabyte of gzip."""
    await exchange.begin("Content-Encoding: gzip")
    packer = zlib.compressobj(9, wbits=31)
    blanks = b" " * 2**20
    # A full flush makes a piece independent of what came before, so that one serves for all.
    await exchange.stream.send_all(packer.compress(blanks) + packer.flush(zlib.Z_FULL_FLUSH))
    piece = packer.compress(blanks) + packer.flush(zlib.Z_FULL_FLUSH)
    for _ in range(1023):
        await exchange.stream.send_all(piece)


async def truncated_body(exchange: Exchange) -> None:
    """Half of the page under the length of all of it."""
    await exchange.begin(f"Content-Length: {len(exchange.body)}")
    await exchange.stream.send_all(exchange.body[: len(exchange.body) // 2])


async def reset(exchange: Exchange) -> None:
    """Reset the connection instead of answering."""
    exchange.stream.transport_stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    exchange.stream.transport_stream.socket.close()


challenge = status(403, CHALLENGE, cf_mitigated="challenge")
challenge_in_body = status(200, CHALLENGE)
soft_404 = status(200, MISSING)
redesign = status(200, REDESIGN)

BY_NAME: dict[str, Fault] = {
    "challenge": challenge,
    "challenge_in_body": challenge_in_body,
    "drip": drip(),
    "endless_body": endless_body,
    "forbidden": status(403),
    "gzip_bomb": gzip_bomb,
    "in_halves": in_halves(),
    "not_found": status(404, MISSING),
    "redesign": redesign,
    "redirect_chain": redirect_chain(6),
    "redirect_elsewhere": redirect_to("https://elsewhere.example/"),
    "reset": reset,
    "server_error": status(500),
    "silence": silence,
    "soft_404": soft_404,
    "too_many_requests": status(429, retry_after="60"),
    "truncated_body": truncated_body,
    "unavailable": status(503, retry_after="60"),
}
"""For the control address of a running server."""
