"""One websocket to a browser: commands with their answers, events to who subscribed, one end for all of it.

Sessions are flat: the commands and events of each attached page share this connection under the session's id. A
connection ends once, for whatever reason, and with it fails at once every command in flight.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, TypeVar

import msgspec
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, wrap_client_stream
from wsproto.utilities import LocalProtocolError

from bookmark_appliance.cdp.discovery import Endpoint
from bookmark_appliance.cdp.errors import BrowserGone, CdpError, CommandFailed, PageFailed, TornDown

CONNECT_SECONDS: Final = 10.0
"""trio-websocket waits for ever where the peer closes before the upgrade (TRAPS 12)."""

COMMAND_SECONDS: Final = 10.0
"""For a command that only the browser itself has to answer."""

ALIVE_SECONDS: Final = 5.0
"""How long a browser may take to say its version before it counts as gone."""

MAX_MESSAGE_BYTES: Final = 4 * 1024 * 1024
"""Ours ask for 512 KiB at a time; what a page makes Chrome tell (a dialog's text, a `data:` address) has no bound."""

EVENTS_KEPT: Final = 64
"""A subscriber that falls behind loses the oldest: each event tells a state that a newer one has replaced."""

_TOO_BIG: Final = 1009
_TORN_DOWN: Final = -32000
"""Chrome's code for whatever can't be done at the moment: no such context, navigated, destroyed."""

_PAGE_GONE: Final = {"Inspector.targetCrashed": "the page crashed", "Inspector.detached": "the page was closed"}

_NOTHING: Final = msgspec.Raw(b"{}")

T = TypeVar("T")

log = logging.getLogger(__name__)


class _Error(msgspec.Struct):
    code: int = 0
    message: str = ""


class _Message(msgspec.Struct):
    id: int | None = None
    result: msgspec.Raw = _NOTHING
    error: _Error | None = None
    method: str = ""
    params: msgspec.Raw = _NOTHING
    session: str = msgspec.field(name="sessionId", default="")


@dataclass(frozen=True, slots=True)
class Event:
    """What the browser tells by itself; `params` is JSON."""

    method: str
    params: msgspec.Raw


class _Reply:
    def __init__(self, session: str, told: str = "") -> None:
        self.number = 0
        self.session = session
        self.told = told
        self.arrived = trio.Event()
        self.result = _NOTHING
        self.error: CdpError | None = None

    def fail(self, error: CdpError) -> None:
        if not self.arrived.is_set():
            self.error = error
            self.arrived.set()


@dataclass(frozen=True, slots=True)
class _Subscription:
    session: str
    methods: frozenset[str]
    send: trio.MemorySendChannel[Event]
    receive: trio.MemoryReceiveChannel[Event]

    def put(self, event: Event) -> None:
        try:
            self.send.send_nowait(event)
        except trio.WouldBlock:
            self.receive.receive_nowait()
            self.send.send_nowait(event)


class Connection:
    """An open connection; made by `connect`, and closed by it."""

    def __init__(self, websocket: WebSocketConnection, nursery: trio.Nursery) -> None:
        self._websocket = websocket
        self._nursery = nursery
        self._ids = count(1)
        self._replies: dict[int, _Reply] = {}
        self._subscriptions: list[_Subscription] = []
        self._ended: CdpError | None = None
        self._gone: dict[str, str] = {}

    async def command(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        answer: type[T] = msgspec.Raw,  # type: ignore[assignment]
        *,
        session: str = "",
        seconds: float | None = None,
    ) -> T:
        """The answer to one command, to the browser itself or to the page attached as `session`.

        Raises BrowserGone, CommandFailed and, of a page, PageFailed: gone, or without an answer within `seconds`
        (COMMAND_SECONDS) from a page whose browser does answer.
        """
        reply = _Reply(session)
        self._raise_ended(session)
        try:
            with trio.move_on_after(COMMAND_SECONDS if seconds is None else seconds) as deadline:
                await self._send(reply, method, params, session)
                await reply.arrived.wait()
        finally:
            self._replies.pop(reply.number, None)
        if reply.error:
            raise reply.error
        if deadline.cancelled_caught:
            if not session:
                raise BrowserGone(f"no answer to {method}")
            await self.check_alive()
            raise PageFailed(f"the page is stuck at {method}")
        try:
            return msgspec.json.decode(reply.result, type=answer)
        except msgspec.MsgspecError as error:
            raise CommandFailed(f"{method}: an answer that we don't understand: {error}") from error

    async def tell(self, method: str, params: Mapping[str, Any], *, session: str = "") -> None:
        """A command whose answer is not waited for, since what follows is done after it; an error is logged."""
        reply = _Reply(session, told=method)
        with trio.move_on_after(COMMAND_SECONDS):
            await self._send(reply, method, params, session)

    async def _send(self, reply: "_Reply", method: str, params: Mapping[str, Any] | None, session: str) -> None:
        reply.number = next(self._ids)
        self._replies[reply.number] = reply
        message = {"id": reply.number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        try:
            await self._websocket.send_message(msgspec.json.encode(message).decode())
        except (ConnectionClosed, LocalProtocolError):  # the latter while it is closing (TRAPS 14)
            self.end()

    async def check_alive(self) -> None:
        """Return when the browser itself answers; raises BrowserGone."""
        await self.command("Browser.getVersion", seconds=ALIVE_SECONDS)

    def subscribe(self, session: str, *methods: str) -> trio.MemoryReceiveChannel[Event]:
        """The events of these methods from now on; iterating over it ends with the connection."""
        send, receive = trio.open_memory_channel[Event](EVENTS_KEPT)
        self._subscriptions.append(_Subscription(session, frozenset(methods), send, receive))
        return receive.clone()

    def start_soon(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` for as long as the connection is open."""
        self._nursery.start_soon(work)

    def fail_session(self, session: str, reason: str) -> None:
        """This page is lost: every command to it, in flight or to come, raises PageFailed."""
        self._gone.setdefault(session, reason)
        for reply in self._replies.values():
            if reply.session == session:
                reply.fail(PageFailed(reason))

    async def listen(self) -> None:
        """Hand out what arrives until the connection ends."""
        try:
            while True:
                self._take(msgspec.json.decode(await self._websocket.get_message(), type=_Message))
        except ConnectionClosed:
            self.end()
        except msgspec.MsgspecError as error:
            self.end(BrowserGone(f"the peer does not speak the debugging protocol: {error}"))
        finally:
            self.end()

    def _take(self, message: _Message) -> None:
        if message.id is not None:
            reply = self._replies.get(message.id)
            if reply is None or reply.session != message.session:
                return  # its command was given up
            if reply.told:
                del self._replies[message.id]
                if message.error:
                    log.warning("%s: %s", reply.told, message.error.message)
            elif message.error:
                kind = TornDown if message.error.code == _TORN_DOWN else CommandFailed
                reply.fail(kind(message.error.message))
            else:
                reply.result = message.result
                reply.arrived.set()
            return
        if message.method in _PAGE_GONE:
            self.fail_session(message.session, _PAGE_GONE[message.method])
        for subscription in self._subscriptions:
            if message.session == subscription.session and message.method in subscription.methods:
                subscription.put(Event(message.method, message.params))

    def end(self, error: CdpError | None = None) -> None:
        """Fail what is in flight and what is still to come with `error`; the first one counts."""
        if self._ended is None:
            closed = self._websocket.closed
            if closed is not None and closed.code == _TOO_BIG:
                error = PageFailed("the page made the browser say more than is taken in one message")
            self._ended = error or BrowserGone("the connection to the browser has ended")
        for reply in self._replies.values():
            reply.fail(type(self._ended)(*self._ended.args))
        for subscription in self._subscriptions:
            subscription.send.close()

    def _raise_ended(self, session: str) -> None:
        if self._ended is not None:
            raise type(self._ended)(*self._ended.args)
        if session in self._gone:
            raise PageFailed(self._gone[session])


@asynccontextmanager
async def connect(endpoint: Endpoint, path: str) -> AsyncIterator[Connection]:
    """A connection to the browser at `path` while the block runs. Raises BrowserGone, and what the block raises.

    It outlives a cancellation until the block has ended, so that the block can still close what it opened.
    """
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        kept = trio.CancelScope()
        try:
            yield await nursery.start(_keep, kept, endpoint, path)
        except Exception as error:
            failure = error
        finally:
            kept.cancel()
    if failure is not None:
        raise failure


async def _keep(
    kept: trio.CancelScope, endpoint: Endpoint, path: str, *, task_status: trio.TaskStatus[Connection]
) -> None:
    connection: Connection | None = None
    broken: BrowserGone | None = None
    try:
        with trio.fail_after(CONNECT_SECONDS):
            stream = await trio.open_tcp_stream(endpoint.host, endpoint.port)
    except (OSError, trio.TooSlowError) as error:
        raise BrowserGone(f"no connection to {endpoint.authority}: {error}") from error
    try:
        with kept:
            async with trio.open_nursery() as nursery:
                with trio.fail_after(CONNECT_SECONDS):
                    websocket = await wrap_client_stream(
                        nursery, stream, endpoint.authority, path, max_message_size=MAX_MESSAGE_BYTES
                    )
                kept.shield = True
                connection = Connection(websocket, nursery)
                nursery.start_soon(connection.listen)
                task_status.started(connection)
    except* Exception as crash:  # what trio-websocket does not expect it raises in its reader (TRAPS 14)
        broken = BrowserGone(f"the connection to the browser broke: {crash.exceptions[0]!r}")
    finally:
        await trio.aclose_forcefully(stream)  # trio-websocket leaves the socket open (TRAPS 13)
    if broken is not None:
        if connection is None:
            raise broken
        connection.end(broken)
