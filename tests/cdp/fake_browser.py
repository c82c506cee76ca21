"""A browser that does as a test says: `/json/version` and the debugging protocol on one loopback port.

Out of itself it plays one page that answers "{}" to a fetch. `at` holds what it does instead, by the command's name or
by `discovery` and `upgrade`: a dict is the result, a string an error's message, anything else is called.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, wrap_server_stream

Act = Callable[["Channel"], Awaitable[None]]
SEEN = {
    "status": 200,
    "address": "https://site.example/api",
    "headers": {},
    "truncated": False,
    "size": 2,
    "piece": "e30=",
}

WELL: dict[str, dict[str, Any]] = {
    "Browser.getVersion": {"product": "Fake"},
    "Browser.setDownloadBehavior": {},
    "Target.createTarget": {"targetId": "T1"},
    "Target.attachToTarget": {"sessionId": "S1"},
    "Page.enable": {},
    "Page.setBypassCSP": {},
    "Network.enable": {},
    "Network.setBypassServiceWorker": {},
    "Page.navigate": {"frameId": "T1", "loaderId": "L1"},
    "Page.createIsolatedWorld": {"executionContextId": 7},
    "Page.getFrameTree": {"frameTree": {"frame": {"id": "T1", "loaderId": "L1"}}},
    "Runtime.callFunctionOn": {"result": {"value": SEEN}},
    "Target.closeTarget": {"success": True},
}
"""What it answers, in the order in which a read asks; Target.getTargets tells the open tabs."""


@dataclass
class Channel:
    """Where an act finds the client: the connection as bytes, and as messages once it is upgraded."""

    stream: trio.SocketStream
    websocket: WebSocketConnection | None = None
    command: dict[str, Any] = field(default_factory=dict)

    async def say(self, message: object) -> None:
        """One message, as JSON, or as it stands when it is text."""
        assert self.websocket is not None
        await self.websocket.send_message(message if isinstance(message, str) else json.dumps(message))

    async def answer(self, result: object) -> None:
        """The result of the command at hand."""
        await self.say({**self._same(), "result": result})

    async def fail(self, code: int, message: str) -> None:
        """An error in place of its result."""
        await self.say({**self._same(), "error": {"code": code, "message": message}})

    def _same(self) -> dict[str, Any]:
        return {key: value for key, value in self.command.items() if key in ("id", "sessionId")}


async def cut(channel: Channel) -> None:
    """The connection ends."""
    await trio.aclose_forcefully(channel.stream)


async def hang(channel: Channel) -> None:
    """No answer ever."""


class FakeBrowser:
    """What it was asked, and the tabs that are open in it."""

    def __init__(self) -> None:
        self.at: dict[str, dict[str, Any] | str | Act] = {}
        self.port = 0
        self.commands: list[str] = []
        self.tabs: list[dict[str, str]] = []
        self.connections = 0
        self.discovered = b""

    @property
    def endpoint(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    async def serve(self, stream: trio.SocketStream) -> None:
        """One connection."""
        head = b""
        while b"\r\n\r\n" not in head:
            if not (more := await stream.receive_some(4096)):
                return
            head += more
        channel, upgrade = Channel(stream), head.startswith(b"GET /devtools/browser/")
        act = self.at.get("upgrade" if upgrade else "discovery")
        if callable(act):
            await act(channel)
            if act is hang:
                await trio.sleep_forever()
            await stream.aclose()
        elif upgrade:
            await self._converse(channel, head)
        else:
            self.discovered = head
            told = {"webSocketDebuggerUrl": f"ws://127.0.0.1:{self.port}/devtools/browser/{self.connections}"}
            await stream.send_all(json_answer(json.dumps(told if act is None else act)))
            await stream.aclose()

    async def _converse(self, channel: Channel, head: bytes) -> None:
        self.connections += 1
        try:
            async with trio.open_nursery() as nursery:
                request = await wrap_server_stream(nursery, _Replayed(channel.stream, head))
                channel.websocket = await request.accept()
                while True:
                    channel.command = json.loads(await channel.websocket.get_message())
                    await self._obey(channel)
        except* (ConnectionClosed, trio.ClosedResourceError, trio.BrokenResourceError):
            pass
        finally:
            await trio.aclose_forcefully(channel.stream)

    async def _obey(self, channel: Channel) -> None:
        method = channel.command["method"]
        self.commands.append(method)
        if method == "Target.createTarget":
            self.tabs.append({"targetId": "T1", "url": channel.command["params"]["url"]})
        act = self.at.get(method, WELL.get(method, {"targetInfos": self.tabs}))
        if callable(act):
            await act(channel)
        elif isinstance(act, str):
            await channel.fail(-32000, act)
        else:
            await channel.answer(act)
            if method == "Target.closeTarget":
                self.tabs = [tab for tab in self.tabs if tab["targetId"] != channel.command["params"]["targetId"]]


class _Replayed(trio.abc.Stream):
    """A stream of which the first bytes were read already."""

    def __init__(self, stream: trio.SocketStream, first: bytes) -> None:
        self._stream = stream
        self._first = first
        self.socket = stream.socket

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        first, self._first = self._first, b""
        return first or bytes(await self._stream.receive_some(max_bytes))

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()


def json_answer(text: str) -> bytes:
    """A whole answer of the HTTP side."""
    return f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()


@asynccontextmanager
async def fake_browser() -> AsyncIterator[FakeBrowser]:
    """One that is asked while the block runs."""
    fake = FakeBrowser()
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    fake.port = listener.socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, fake.serve, [listener])
        yield fake
        nursery.cancel_scope.cancel()
