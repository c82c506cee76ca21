"""HTTP/1.1 of one connection: h11 and Hypercorn's handling of it, made strict."""

import re
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import h11
from hypercorn.protocol.events import Event, Response
from hypercorn.protocol.h11 import H11Protocol
from quart.utils import encode_headers

from bookmark_appliance.web.errors import error_response

_ORIGIN = re.compile(rb"https?://(\[[0-9a-f:.]+\]|[^][/?#@]+)(?=[/?]|$)", re.IGNORECASE)


class _Ear(h11.Connection):
    """h11 that can be told to hear no more, and refuses what would be understood in two ways."""

    deaf = False

    def receive_data(self, data: bytes) -> None:
        if not self.deaf:
            super().receive_data(data)

    def next_event(self) -> Any:
        if self.deaf:
            return h11.NEED_DATA
        try:
            event = super().next_event()
            if isinstance(event, h11.Request):
                _check(event)
        except h11.RemoteProtocolError:
            if self.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                raise  # and is answered
            self.deaf = True  # an answer is on its way, and ends the connection when it is out
            return h11.NEED_DATA
        return event


class Http11(H11Protocol):
    """HTTP/1.1 alone. An offer to upgrade is ignored, as RFC 9110 7.8 has it: no WebSocket, no HTTP/2.

    Hypercorn's own way with them ends in an error on a header that isn't ASCII (upstream issues 225, 228, 177, 329),
    and HTTP/2 would bring a second set of limits to hold.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.connection: _Ear = _Ear(h11.SERVER, max_incomplete_event_size=self.config.h11_max_incomplete_size)

    async def hear_no_more(self) -> None:
        """Whatever still comes is dropped. A reader that waits for its turn, behind an answer, goes on to do that:
        h11 would let it wait for ever once there is no next cycle."""
        self.connection.deaf = True
        await self.can_read.set()

    async def stream_send(self, event: Event) -> None:
        if isinstance(event, Response) and self.context.terminated.is_set():
            headers = [field for field in event.headers if field[0] != b"connection"]
            event = replace(event, headers=[*headers, (b"connection", b"close")])
        await super().stream_send(event)

    async def _check_protocol(self, event: h11.Request) -> None:
        pass

    async def _create_stream(self, request: h11.Request) -> None:
        await super()._create_stream(
            h11.Request(
                method=request.method,
                target=_path(request.target),
                headers=[(name, value) for name, value in request.headers if name != b"upgrade"],
                http_version=request.http_version,
            )
        )

    async def _send_error_response(self, status_code: int) -> None:
        """API-022: also where there is no request that could be handed on."""
        answer = error_response(status_code, HTTPStatus(status_code).phrase.lower())
        headers = [*encode_headers(answer.headers), (b"connection", b"close")]
        await self._send_h11_event(h11.Response(status_code=status_code, headers=headers))
        with suppress(h11.LocalProtocolError):  # to a HEAD there is no body
            await self._send_h11_event(h11.Data(data=await answer.get_data(as_text=False)))
            await self._send_h11_event(h11.EndOfMessage())


def _check(request: h11.Request) -> None:
    """Raises RemoteProtocolError for a body of two lengths (RFC 9112 6.1) and a target that names no path."""
    if {b"content-length", b"transfer-encoding"} <= {name for name, _ in request.headers}:
        raise h11.RemoteProtocolError("both Content-Length and Transfer-Encoding")
    target = request.target
    if not target.startswith(b"/") and target != b"*" and not _ORIGIN.match(target):
        raise h11.RemoteProtocolError("a target that names no path")


def _path(target: bytes) -> bytes:
    """A target in absolute form (RFC 9112 3.2.2) without its origin."""
    match = _ORIGIN.match(target)
    path = target[match.end() :] if match else target
    return path if path.startswith((b"/", b"*")) else b"/" + path
