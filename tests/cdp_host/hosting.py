"""The browser host inside the test, with its Chrome; and a few words of the debugging protocol."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio
from trio_websocket import WebSocketConnection, wrap_client_stream

from bookmark_appliance.cdp.chrome_command import ChromeOptions, find_chrome
from bookmark_appliance.cdp.chrome_keeper import ChromeKeeper
from bookmark_appliance.cdp.front import Front
from bookmark_appliance.setting_values import IPNetwork
from tests.serving_process import Serve

ZONE = "Asia/Jakarta"


def chrome_options(profile: Path, program: Path | None = None) -> ChromeOptions:
    """The installed Chrome, or `program` in its place, on this profile."""
    program = program or find_chrome()
    assert program, "the tests need a Chromium: build.py test installs it"
    return ChromeOptions(program, profile, ZONE, {}, None)


@dataclass(frozen=True, slots=True)
class Host:
    """Where a host listens, and what was told of it."""

    address: tuple[str, int]

    @property
    def name(self) -> str:
        """HOST:PORT."""
        return f"{self.address[0]}:{self.address[1]}"

    async def discovery(self) -> dict[str, Any]:
        """Ask for `/json/version` over a connection of its own, and read to the end of the answer."""
        answer = b""
        async with await trio.open_tcp_stream(*self.address) as stream:
            await stream.send_all(f"GET /json/version HTTP/1.1\r\nHost: {self.name}\r\n\r\n".encode())
            with trio.fail_after(60):
                while not answer.endswith(b"}\n") and (chunk := await stream.receive_some()):
                    answer += chunk
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), answer
        return dict(json.loads(body))

    @asynccontextmanager
    async def client(self) -> AsyncIterator["Client"]:
        """A client that drives the browser."""
        with trio.fail_after(60):
            found = await self.discovery()
        path = found["webSocketDebuggerUrl"].removeprefix(f"ws://{self.name}")
        # Ours to close: after a cut, trio-websocket leaves it open (docs/TRAPS.md, 13).
        async with await trio.open_tcp_stream(*self.address) as stream, trio.open_nursery() as nursery:
            socket = await wrap_client_stream(nursery, stream, self.name, path)
            yield Client(socket)
            with trio.move_on_after(5):
                await socket.aclose()
            nursery.cancel_scope.cancel()


@dataclass
class Client:
    """A connection to the browser: one command after the other."""

    socket: WebSocketConnection
    sent: int = field(default=0)

    async def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": parameters}
        with trio.fail_after(30):
            await self.socket.send_message(json.dumps(message | ({"sessionId": session} if session else {})))
            while (answer := json.loads(await self.socket.get_message())).get("id") != self.sent:
                pass
        assert "result" in answer, answer
        return dict(answer["result"])

    async def tab(self, **where: str) -> str:
        """Open a tab; the session that speaks to it."""
        target = await self.call("Target.createTarget", url="about:blank", **where)
        session = await self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        return str(session["sessionId"])

    async def evaluate(self, session: str, expression: str) -> Any:
        """What an expression comes to in a tab."""
        answer = await self.call("Runtime.evaluate", session, expression=expression, awaitPromise=True)
        return answer["result"].get("value")


@asynccontextmanager
async def running_host(
    options: ChromeOptions, *, allow: Sequence[IPNetwork] = (), idle_seconds: float = 300, start_seconds: float = 30
) -> AsyncIterator[Host]:
    """A host on a free port of loopback while the block runs."""
    options.profile.mkdir(exist_ok=True)
    keeper = ChromeKeeper(options, idle_seconds=idle_seconds, start_seconds=start_seconds)
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keeper.run)
        nursery.start_soon(trio.serve_listeners, Front(keeper, allow).serve, listeners)
        yield Host(listeners[0].socket.getsockname())
        nursery.cancel_scope.cancel()


async def host_of(command: Serve) -> Host:
    """Where a `browser` of its own process listens."""
    address, _, port = (await command.listening()).removeprefix("http://").rpartition(":")
    return Host((address, int(port)))
