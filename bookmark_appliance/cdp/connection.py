"""One websocket to a browser: commands with their answers, events to who hears a page, one end for all of it.

Sessions are flat: the commands and events of each attached page share this connection under the session's id. A
connection ends once, for whatever reason, and with it fails at once every command in flight.
"""

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, Final, TypeVar

import msgspec
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, wrap_client_stream
from wsproto.utilities import LocalProtocolError

from bookmark_appliance.cdp.discovery import Endpoint, dial
from bookmark_appliance.cdp.errors import BrowserGone, CdpError, CommandFailed, PageFailed, TornDown

UPGRADE_SECONDS: Final = 10.0
"""trio-websocket waits for ever where the peer closes before the upgrade (TRAPS 12)."""

COMMAND_SECONDS: Final = 5.0
"""For a command that the browser itself has to answer; one that does not is gone."""

PAGE_SECONDS: Final = 10.0
"""A page may take the time of the whole read; after each such while its browser is asked whether it lives."""

MAX_MESSAGE_BYTES: Final = 4 * 1024 * 1024
"""Ours ask for 512 KiB at a time; what a page makes Chrome tell (a dialog's text, a `data:` address) has no bound."""

_TOO_BIG: Final = 1009
_TORN_DOWN: Final = -32000
"""Chrome's code for whatever can't be done at the moment: no such context, navigated, destroyed."""

_NOTHING: Final = msgspec.Raw(b"{}")

Hear = Callable[[str, msgspec.Raw], None]
"""Takes an event's method and its parameters, as JSON."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class _Error(msgspec.Struct):
    code: int = 0
    message: str = ""

    def failure(self) -> CommandFailed:
        return (TornDown if self.code == _TORN_DOWN else CommandFailed)(self.message)


class _Message(msgspec.Struct):
    id: int | None = None
    result: msgspec.Raw = _NOTHING
    error: _Error | None = None
    method: str = ""
    params: msgspec.Raw = _NOTHING
    session: str = msgspec.field(name="sessionId", default="")


@dataclass(slots=True, eq=False)
class _Reply:
    session: str
    outcome: msgspec.Raw | CdpError | None
    arrived: trio.Event = field(default_factory=trio.Event)

    def settle(self, outcome: msgspec.Raw | CdpError) -> None:
        if self.outcome is None:
            self.outcome = outcome
            self.arrived.set()


class Connection:
    """An open connection; made by `connect`, and closed by it."""

    def __init__(self, websocket: WebSocketConnection, nursery: trio.Nursery) -> None:
        self._websocket = websocket
        self._nursery = nursery
        self._ids = count(1)
        self._replies: dict[int, _Reply] = {}
        self._hearing: dict[str, Hear] = {}
        self._lost: dict[str, CdpError] = {}
        """What became of a session, or of the whole connection, which is "" here as it is in a message."""

    async def command(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        answer: type[T] = msgspec.Raw,  # type: ignore[assignment]
        *,
        at: Sequence[str] = (),
        session: str = "",
    ) -> T:
        """The answer to one command, or what stands in it `at` these names.

        The browser itself has COMMAND_SECONDS for it; the page attached as `session` has for ever, while the browser
        lives. Raises BrowserGone, CommandFailed and, of a page that is lost, PageFailed.
        """
        number, reply = next(self._ids), _Reply(session, self._lost.get("") or self._lost.get(session))
        self._replies[number] = reply
        try:
            if reply.outcome is None:
                await self._send(number, method, params, session)
            while (outcome := reply.outcome) is None:
                with trio.move_on_after(PAGE_SECONDS if session else COMMAND_SECONDS):
                    await reply.arrived.wait()
                    continue
                if session:
                    await self.check_alive()
                else:
                    self.fail(BrowserGone(f"no answer to {method}"))
        finally:
            del self._replies[number]
        if isinstance(outcome, CdpError):
            raise type(outcome)(*outcome.args)
        try:
            for name in at:
                outcome = msgspec.json.decode(outcome, type=dict[str, msgspec.Raw])[name]
            return msgspec.json.decode(outcome, type=answer)
        except (msgspec.MsgspecError, KeyError) as error:
            raise CommandFailed(f"{method}: an answer that we don't understand: {error}") from error

    async def tell(self, method: str, params: Mapping[str, Any], *, session: str = "") -> None:
        """A command whose answer is not waited for, since what follows is done after it; an error is logged."""
        await self._send(next(self._ids), method, params, session)

    def tell_soon(self, method: str, params: Mapping[str, Any], *, session: str = "") -> None:
        """The same for one who can't wait until it is sent."""
        self._nursery.start_soon(partial(self.tell, method, params, session=session))

    async def _send(self, number: int, method: str, params: Mapping[str, Any] | None, session: str) -> None:
        message = {"id": number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        try:
            with trio.fail_after(COMMAND_SECONDS):
                await self._websocket.send_message(msgspec.json.encode(message).decode())
        except (ConnectionClosed, LocalProtocolError):  # the latter while it is closing (TRAPS 14)
            self._end()
        except trio.TooSlowError:
            self.fail(BrowserGone(f"{method} could not be sent"))

    async def check_alive(self) -> None:
        """Return when the browser itself answers; raises BrowserGone."""
        await self.command("Browser.getVersion")

    def hear(self, session: str, hear: Hear) -> None:
        """Call it with the events of this page from now on."""
        self._hearing[session] = hear

    def fail(self, error: CdpError, session: str = "") -> None:
        """Every command, or every one to this page, in flight or to come, raises `error`; the first one counts."""
        error = self._lost.setdefault(session, error)
        for reply in self._replies.values():
            if session in ("", reply.session):
                reply.settle(error)

    async def listen(self) -> None:
        """Hand out what arrives until the connection ends."""
        try:
            while True:
                self._take(msgspec.json.decode(await self._websocket.get_message(), type=_Message))
        except ConnectionClosed:
            pass
        except msgspec.MsgspecError as error:
            self.fail(BrowserGone(f"the peer does not speak the debugging protocol: {error}"))
        finally:
            self._end()

    def _take(self, message: _Message) -> None:
        if message.id is None:
            if hear := self._hearing.get(message.session):
                hear(message.method, message.params)
        elif (reply := self._replies.get(message.id)) and reply.session == message.session:
            reply.settle(message.error.failure() if message.error else message.result)
        elif message.error and message.error.code != _TORN_DOWN:
            log.warning("a command that nobody waits for failed: %s", message.error.message)

    def _end(self) -> None:
        closed = self._websocket.closed
        if closed is not None and closed.code == _TOO_BIG:
            self.fail(PageFailed("the page made the browser say more than is taken in one message"))
        self.fail(BrowserGone("the connection to the browser has ended"))


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
    stream = await dial(endpoint)
    try:
        with kept:
            async with trio.open_nursery() as nursery:
                with trio.fail_after(UPGRADE_SECONDS):
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
        connection.fail(broken)
