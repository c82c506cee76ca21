"""The browser host's front: takes connections, and passes those that may come on to Chrome, byte for byte."""

import logging
import socket
from collections.abc import Sequence
from typing import Final

import trio

from bookmark_appliance.cdp.chrome_keeper import ChromeKeeper
from bookmark_appliance.cdp.host_options import plain_address
from bookmark_appliance.setting_values import IPNetwork

MOST_CONNECTIONS: Final = 64
"""A read takes two; each of them costs Chrome a connection as well."""
_CHUNK_BYTES: Final = 64 * 1024
_SAY_SECONDS: Final = 60.0
_NOTICE_SECONDS: Final = 2.0
"""From a refused connection to the news that Chrome has ended."""
_LISTEN_SECONDS: Final = 60.0
"""To a client that has said all: a Chrome that hangs would keep the connection, and with it itself."""

_DEAD_AFTER = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000),
)
"""A peer that went away without a word is noticed within a minute: it would keep Chrome running for ever."""

log = logging.getLogger(__name__)


class Front:
    """Takes connections, and passes those that may come on to Chrome."""

    def __init__(self, keeper: ChromeKeeper, allow: Sequence[IPNetwork]) -> None:
        self._keeper = keeper
        self._allow = allow
        self._connections = 0
        self._silent_until = 0.0

    async def serve(self, client: trio.SocketStream) -> None:
        """One connection, from its first byte to its last. Raises nothing but cancellation."""
        async with client:
            if refusal := self._refusal(client):
                self._say(refusal)
                return
            self._connections += 1
            try:
                with self._keeper.used():
                    await self._pass_on(client)
            except OSError as error:
                log.warning("a connection failed: %s", error)
            finally:
                self._connections -= 1

    def _refusal(self, client: trio.SocketStream) -> str:
        """Why this connection is closed at once; empty for a welcome one."""
        try:
            peer = plain_address(client.socket.getpeername()[0])
        except OSError:
            return "a peer that had gone was turned away"
        if self._allow and not any(peer in network for network in self._allow):
            return f"{peer} is not among those of --allow: closed"
        if self._connections >= MOST_CONNECTIONS:
            return f"{MOST_CONNECTIONS} connections are open, the most there may be: {peer} is turned away"
        return ""

    def _say(self, refusal: str) -> None:
        """A line now and then: whoever scans must not fill the log."""
        if trio.current_time() >= self._silent_until:
            self._silent_until = trio.current_time() + _SAY_SECONDS
            log.warning("%s; the next such line in %g s at the earliest", refusal, _SAY_SECONDS)

    async def _pass_on(self, client: trio.SocketStream) -> None:
        _notice_death(client)
        if (chrome := await self._connect()) is None:
            return
        async with chrome:
            _notice_death(chrome)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._hear, client, chrome, nursery.cancel_scope)
                await pump(chrome, client)
                # What Chrome closed, it has answered in full.
                nursery.cancel_scope.cancel()

    async def _connect(self) -> trio.SocketStream | None:
        """A connection to Chrome, waiting while one starts; None where none does."""
        while chrome := await self._keeper.chrome():
            try:
                return await trio.open_tcp_stream("127.0.0.1", chrome.port)
            except OSError:
                with trio.move_on_after(_NOTICE_SECONDS):
                    await chrome.ended.wait()
                if not chrome.ended.is_set():
                    raise
        return None

    async def _hear(self, client: trio.SocketStream, chrome: trio.SocketStream, both: trio.CancelScope) -> None:
        """A client may close its half and still listen, for a while; one that is gone ends both directions."""
        ended_well = await pump(client, chrome)
        both.deadline = trio.current_time() + (_LISTEN_SECONDS if ended_well else 0)


async def pump(source: trio.SocketStream, sink: trio.SocketStream) -> bool:
    """Pass on bytes as they are to the end of `source`, which `sink` is told; False where either was cut."""
    try:
        while chunk := await source.receive_some(_CHUNK_BYTES):
            await sink.send_all(chunk)
        await sink.send_eof()
    except trio.BrokenResourceError:
        return False
    return True


def _notice_death(stream: trio.SocketStream) -> None:
    for level, option, value in _DEAD_AFTER:
        stream.setsockopt(level, option, value)
