"""Pages for the tests of the browser: a TLS server that answers for every host, as each test has it."""

import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import h11
import trio
import trustme

HTML = {"content-type": "text/html; charset=utf-8"}


@dataclass(frozen=True)
class Answer:
    """One answer; `body` goes out as it stands, and `rest` after it in chunks, of which no last one ever comes."""

    body: bytes | str = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: HTML)
    rest: Iterable[bytes] | None = None


@dataclass(frozen=True)
class Request:
    """What arrived; `address` begins with https."""

    address: str
    headers: Mapping[str, str]


Handler = Callable[[Request], Awaitable[Answer]]


class Pages:
    """What is served: address to an answer, or to a function that makes one. Anything else is a 404."""

    def __init__(self) -> None:
        self.at: dict[str, Answer | Handler] = {}
        self.requests: list[Request] = []
        self._arrival = trio.lowlevel.ParkingLot()

    def asked(self, address: str) -> int:
        """How often."""
        return sum(request.address == address for request in self.requests)

    async def wait_for(self, address: str) -> None:
        """Until it was asked for once."""
        while not self.asked(address):
            await self._arrival.park()

    async def serve(self, stream: trio.SSLStream[trio.SocketStream]) -> None:
        """One connection, one request."""
        protocol = h11.Connection(h11.SERVER)
        try:
            async with stream:
                while (event := protocol.next_event()) is h11.NEED_DATA:
                    protocol.receive_data(bytes(await stream.receive_some(65_536)))
                if not isinstance(event, h11.Request):
                    return
                headers = {name.decode(): value.decode() for name, value in event.headers}
                request = Request(f"https://{headers['host'].partition(':')[0]}{event.target.decode()}", headers)
                self.requests.append(request)
                self._arrival.unpark_all()
                made = self.at.get(request.address, Answer("<p>nothing here</p>", 404))
                answer = made if isinstance(made, Answer) else await made(request)
                body = answer.body.encode() if isinstance(answer.body, str) else answer.body
                length = {"content-length": str(len(body))} if answer.rest is None else {}
                sent = {**length, "connection": "close", **answer.headers}
                await stream.send_all(
                    protocol.send(h11.Response(status_code=answer.status, headers=[*sent.items()])) or b""
                )
                await stream.send_all(body)
                for chunk in answer.rest or ():
                    await stream.send_all(protocol.send(h11.Data(chunk)) or b"")
        except (trio.BrokenResourceError, h11.RemoteProtocolError):
            pass  # a browser hangs up when it likes


def pages_context() -> ssl.SSLContext:
    """A certificate that nobody trusts: the browser of the tests does not ask for one that it does."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("pages.example").configure_cert(context)
    context.set_alpn_protocols(["http/1.1"])
    return context


@asynccontextmanager
async def serve_pages(listening: socket.socket, context: ssl.SSLContext) -> AsyncIterator[Pages]:
    """Serve on a socket, which stays open, while the block runs."""
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(listening.dup()))
    pages = Pages()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, pages.serve, [trio.SSLListener(listener, context)])
        yield pages
        nursery.cancel_scope.cancel()


async def never(request: Request) -> Answer:
    """A Site that takes the request and never answers."""
    await trio.sleep_forever()
