"""The host's way for bytes, with a server of the test in Chrome's place."""

import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import pytest
import trio

from bookmark_appliance.cdp import front
from bookmark_appliance.cdp.chrome_keeper import ChromeKeeper
from bookmark_appliance.cdp.front import Front
from tests.serving_process import eventually


@dataclass
class Standing:
    """A keeper whose Chrome is always there."""

    port: int
    users: int = 0
    ended: trio.Event = field(default_factory=trio.Event)

    async def chrome(self) -> "Standing":
        return self

    @contextmanager
    def used(self) -> Iterator[None]:
        self.users += 1
        try:
            yield
        finally:
            self.users -= 1


@dataclass
class Way:
    """A host in front of a server that the test answers for."""

    address: tuple[str, int]
    keeper: Standing
    server: trio.MemoryReceiveChannel[trio.SocketStream]

    async def connect(self) -> tuple[trio.SocketStream, trio.SocketStream]:
        """A client's connection, and what the server got of it."""
        client = await trio.open_tcp_stream(*self.address)
        with trio.fail_after(10):
            return client, await self.server.receive()


@asynccontextmanager
async def open_way() -> AsyncIterator[Way]:
    send, receive = trio.open_memory_channel[trio.SocketStream](10)

    async def take(stream: trio.SocketStream) -> None:
        await send.send(stream)
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        [server] = await nursery.start(partial(trio.serve_tcp, take, 0, host="127.0.0.1"))
        keeper = Standing(server.socket.getsockname()[1])
        host_front = Front(cast("ChromeKeeper", keeper), [])
        [host] = cast(
            "list[trio.SocketListener]",
            await nursery.start(partial(trio.serve_tcp, host_front.serve, 0, host="127.0.0.1")),
        )
        yield Way(("127.0.0.1", host.socket.getsockname()[1]), keeper, receive)
        nursery.cancel_scope.cancel()


async def read_all(stream: trio.SocketStream) -> bytes:
    with trio.fail_after(20):
        return b"".join([bytes(chunk) async for chunk in stream])


async def test_bytes_pass_both_ways_as_they_are_and_a_half_that_ended_is_told() -> None:
    """BRO-017: more than any buffer holds, each way; whoever has said all may still listen."""
    question, answer = b"GET / HTTP/1.1\r\nHost: 100.64.0.9:9222\r\n\r\n" * 50_000, bytes(range(256)) * 10_000
    async with open_way() as way:
        client, server = await way.connect()
        heard = b""

        async def ask() -> None:
            await client.send_all(question)
            await client.send_eof()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            heard = await read_all(server)
            nursery.start_soon(server.send_all, answer)
            got = b""
            with trio.fail_after(20):
                while len(got) < len(answer):
                    got += await client.receive_some()
        assert heard == question
        assert got == answer
        assert way.keeper.users == 1
        await server.aclose()
        assert await read_all(client) == b""
        await eventually(lambda: way.keeper.users == 0)
        await client.aclose()


async def test_a_client_that_was_cut_is_forgotten_at_once() -> None:
    """BRO-019: it must not keep Chrome running."""
    async with open_way() as way:
        client, server = await way.connect()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await client.aclose()
        assert await read_all(server) == b""
        await eventually(lambda: way.keeper.users == 0)


async def test_a_chrome_that_never_closes_does_not_keep_the_connection_of_a_client_that_did(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(front, "_LISTEN_SECONDS", 0.05)
    async with open_way() as way:
        client, server = await way.connect()
        await client.aclose()
        assert await read_all(server) == b""
        await eventually(lambda: way.keeper.users == 0)


async def test_both_ends_notice_a_peer_that_went_away_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """BRO-019: on loopback no packet is ever lost, so what is asked of the kernel stands for it."""
    watched: list[trio.SocketStream] = []

    def watch(stream: trio.SocketStream) -> None:
        real(stream)
        watched.append(stream)

    real = front._notice_death
    monkeypatch.setattr(front, "_notice_death", watch)
    async with open_way() as way:
        client, _ = await way.connect()
        await eventually(lambda: len(watched) == 2)
        for stream in watched:
            assert stream.socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            idle, interval, count = (
                stream.socket.getsockopt(socket.IPPROTO_TCP, option)
                for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            )
            assert idle + interval * count <= 60
            assert stream.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 60_000
            assert stream.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        await client.aclose()


async def test_no_more_connections_are_taken_than_chrome_should_have(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(front, "MOST_CONNECTIONS", 2)
    async with open_way() as way:
        taken = [await way.connect() for _ in range(2)]
        for _ in range(3):
            async with await trio.open_tcp_stream(*way.address) as turned_away:
                assert await read_all(turned_away) == b""
        [record] = caplog.records
        assert "2 connections are open" in record.getMessage()
        await taken[0][0].aclose()
        await taken[0][1].aclose()
        await eventually(lambda: way.keeper.users == 1)
        client, _ = await way.connect()
        await client.aclose()
        await taken[1][0].aclose()
