"""The server on a loopback port, and a client that shows every byte."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import h11
import trio
from quart import Quart

from bookmark_appliance.web.crowd import Crowd
from bookmark_appliance.web.server import Limits, serve_web


@dataclass
class Server:
    """A running server; `stopped` is set when it has returned."""

    host: str
    port: int
    shutdown: trio.Event
    stopped: trio.Event
    talks: list["Talk"] = field(default_factory=list)

    async def connect(self) -> "Talk":
        """A new connection to it, closed in the end."""
        talk = Talk(await trio.open_tcp_stream(self.host, self.port))
        self.talks.append(talk)
        return talk


class Talk:
    """One connection: sends bytes as they are, reads answers."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream

    async def send(self, data: bytes) -> None:
        """Write all of it."""
        await self.stream.send_all(data)

    async def ask(self, request: bytes, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
        """Send a whole request; its answer."""
        await self.send(request)
        return await self.answer(method)

    async def answer(self, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
        """The next answer: status, headers by lower-case name, body."""
        parser = h11.Connection(h11.CLIENT)
        parser.send(h11.Request(method=method, target="/", headers=[("Host", "x")]))
        parser.send(h11.EndOfMessage())
        status, headers, body = 0, {}, b""
        with trio.fail_after(10):
            while True:
                event = parser.next_event()
                if event is h11.NEED_DATA:
                    parser.receive_data(await self.stream.receive_some(65_536))
                elif isinstance(event, h11.Response):
                    status = event.status_code
                    headers = {name.decode(): value.decode() for name, value in event.headers}
                elif isinstance(event, h11.Data):
                    body += bytes(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    return status, headers, body

    async def closed_by_server(self, within: float = 10) -> bytes:
        """What still comes until the server closes; fails when it resets the connection or keeps it."""
        rest = b""
        with trio.fail_after(within):
            while data := await self.stream.receive_some(65_536):
                rest += data
        return rest


@asynccontextmanager
async def serving(app: Quart, limits: Limits | None = None, crowd: Crowd | None = None) -> AsyncIterator[Server]:
    """`app` on a free port of loopback; shut down at the end."""
    shutdown, stopped = trio.Event(), trio.Event()

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    host, port = listeners[0].socket.getsockname()[:2]

    async def serve(*, task_status: trio.TaskStatus[None]) -> None:
        await serve_web(app, listeners, shutdown=shutdown, limits=limits, crowd=crowd, task_status=task_status)
        stopped.set()

    async with trio.open_nursery() as nursery:
        await nursery.start(serve)
        server = Server(host, port, shutdown, stopped)
        try:
            yield server
        finally:
            shutdown.set()
            for talk in server.talks:
                await trio.aclose_forcefully(talk.stream)
