"""Serves the application over HTTP/1.1: Hypercorn's connection handling on trio, contained and drained.

A failing connection is logged and ends alone. A failure to accept connections ends the server, and with it the
appliance.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from math import inf

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework, ConnectionState
from hypercorn.utils import parse_socket_addr

from bookmark_appliance.web.crowd import Crowd
from bookmark_appliance.web.http11 import Http11

_logger = logging.getLogger(__name__)

_READ_BYTES = 64 * 1024
_WRITE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a connection may take, in seconds."""

    head: float = 10.0
    """From connecting, or from the first byte of a later request, to the end of its headers (OPS-006)."""
    idle: float = 120.0
    """Between an answer and the next request: longer than a proxy in front keeps its end (Traefik 90 s, nginx 60 s), so
    that it closes first and sends no request into a closing connection."""
    write: float = 30.0
    """For each 64 KiB of an answer: a client that reads nothing is dropped, a slow one is not."""
    linger: float = 1.0
    """After our end of the answer, for the client to read it; closing over unread bytes resets the connection."""
    drain: float = 7.0
    """At shutdown, for requests in flight (OPS-007)."""


async def serve_web(
    app: ASGIFramework,
    listeners: list[trio.SocketListener],
    *,
    shutdown: trio.Event,
    limits: Limits | None = None,
    crowd: Crowd | None = None,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve `app` on `listeners` until `shutdown` is set and the requests in flight are answered or cut.

    `task_status` is told when connections are accepted. The application's lifespan is not run: what must start, starts
    before, in a nursery of ours.
    """
    limits = limits or Limits()
    crowd = crowd or Crowd.of_this_process()
    config = Config()
    config.errorlog = _logger
    config.include_server_header = False
    config.keep_alive_timeout = limits.idle
    config.keep_alive_max_requests = 1_000_000  # the default, 1,000, cuts a busy proxy's connection under its feet
    context = WorkerContext(None)
    wrapper = ASGIWrapper(app)

    async def run_connection(stream: trio.SocketStream) -> None:
        if not crowd.has_room_for(len(connections.child_tasks)):
            await trio.aclose_forcefully(stream)
            return
        await _Connection(wrapper, config, context, stream, limits).run()

    async with trio.open_nursery() as connections:
        async with trio.open_nursery() as accepting:
            await accepting.start(_accept, run_connection, listeners, connections)
            task_status.started()
            await shutdown.wait()
            accepting.cancel_scope.cancel()
        await context.terminated.set()
        connections.cancel_scope.deadline = trio.current_time() + limits.drain


async def _accept(
    handler: Callable[[trio.SocketStream], Awaitable[None]],
    listeners: list[trio.SocketListener],
    connections: trio.Nursery,
    *,
    task_status: trio.TaskStatus[list[trio.SocketListener]],
) -> None:
    await trio.serve_listeners(handler, listeners, handler_nursery=connections, task_status=task_status)


class _Connection(TCPServer):
    """One connection, whose errors end with it."""

    def __init__(
        self, app: ASGIWrapper, config: Config, context: WorkerContext, stream: trio.SocketStream, limits: Limits
    ) -> None:
        # Hypercorn's annotations know a TLS stream, and one protocol class; it runs on what is given here as well.
        super().__init__(app, config, context, ConnectionState({}), stream)  # type: ignore[arg-type]
        self._limits = limits
        self._between_requests = True
        self._head_deadline = trio.current_time() + limits.head
        self._reader: trio.lowlevel.Task | None = None
        self._read_to_end = trio.Event()

    async def run(self) -> None:
        """Serve requests until either side closes. Raises nothing but cancellation."""
        try:
            await self._serve()
        except* OSError:
            pass  # the client was gone before it was asked for its address
        except* Exception:
            _logger.exception("a connection failed and was closed")
        finally:
            await trio.aclose_forcefully(self.stream)

    async def _serve(self) -> None:
        socket = self.stream.socket
        client = parse_socket_addr(socket.family, socket.getpeername())
        server = parse_socket_addr(socket.family, socket.getsockname())
        async with TaskGroup() as self._task_group:
            self._http = Http11(
                self.app,
                self.config,
                self.context,
                self._task_group,
                ConnectionState({}),
                False,
                client,
                server,
                self.protocol_send,
            )
            self.protocol = self._http  # type: ignore[assignment]
            await self.idle_task.restart(self._task_group, self._idle_timeout)
            await self._read_data()

    async def protocol_send(self, event: Event) -> None:
        """What the protocol wants done with the connection: bytes sent, the end, or that it fell idle or busy."""
        if isinstance(event, RawData):
            await self._write(event.data)
            return
        if isinstance(event, Updated):
            self._between_requests = event.idle
            self._head_deadline = inf
            if self._read_to_end.is_set():
                return  # the client has gone: no idle time to wait out
        if isinstance(event, Closed):
            await self._http.hear_no_more()
        await super().protocol_send(event)

    async def _write(self, data: bytes) -> None:
        """Send in pieces with a time limit each. Not shielded as Hypercorn's is: a client that stopped reading would
        hold up a shutdown for ever."""
        async with self.send_lock:
            try:
                for start in range(0, len(data), _WRITE_BYTES):
                    with trio.fail_after(self._limits.write):
                        await self.stream.send_all(data[start : start + _WRITE_BYTES])
            except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
                await trio.aclose_forcefully(self.stream)
                await self._http.hear_no_more()
                await self.protocol.handle(Closed())

    async def _read_data(self) -> None:
        """Feed the protocol until the client closes, or takes too long over the head of a request."""
        self._reader = trio.lowlevel.current_task()
        while data := await self._receive():
            if self._between_requests and self._head_deadline == inf:
                self._head_deadline = trio.current_time() + self._limits.head
            await self.protocol.handle(RawData(data))
        self._read_to_end.set()
        await self.protocol.handle(Closed())
        await self.idle_task.stop()

    async def _receive(self) -> bytes:
        """The next bytes; empty at the end, on an error and past the deadline of a head."""
        try:
            with trio.CancelScope(deadline=self._head_deadline):
                return bytes(await self.stream.receive_some(_READ_BYTES))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        return b""

    async def _close(self) -> None:
        """End our side, let the client read what was sent, then close."""
        with suppress(trio.BrokenResourceError, trio.BusyResourceError, trio.ClosedResourceError):
            async with self.send_lock:  # an answer that is being written comes first
                await self.stream.send_eof()
            with trio.move_on_after(self._limits.linger):
                if trio.lowlevel.current_task() is not self._reader:
                    await self._read_to_end.wait()
                else:
                    while await self.stream.receive_some(_READ_BYTES):
                        pass
        await trio.aclose_forcefully(self.stream)
