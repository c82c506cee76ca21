"""One request and its answer, between the server and the application."""

import logging

import trio
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, HTTPScope
from quart.utils import encode_headers
from quart.wrappers import Request, Response
from quart.wrappers.response import DataBody
from quart_trio.asgi import TrioASGIHTTPConnection
from werkzeug.wrappers import Response as WerkzeugResponse

from bookmark_appliance.web.errors import error_response

MAX_HEAD_BYTES = 16 * 1024
"""Target and headers. h11 limits only a head that comes in pieces: 60 kB in one piece pass it (measured)."""

_logger = logging.getLogger(__name__)


class Exchange(TrioASGIHTTPConnection):
    """Runs one request through the application, and cancels it when its client goes away.

    quart-trio's own cancels on `http.disconnect` whenever it comes. The server also sends that as part of ending a
    finished answer, so the cancellation hit the clean-up of a kept-alive connection: its idle timer never started,
    and a shutdown waited for it in vain. Here the message cancels nothing once the last part is on its way.
    """

    async def __call__(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        self._finishing = False
        self._body_pending = _announces_body(self.scope)
        request = self._create_request_from_scope(send)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._receive_messages, nursery.cancel_scope, request, receive)
            await self._send_response(send, await self._respond(request))
            nursery.cancel_scope.cancel()

    async def _receive_messages(
        self, exchange: trio.CancelScope, request: Request, receive: ASGIReceiveCallable
    ) -> None:
        while True:
            message = await receive()
            if message["type"] == "http.request":
                request.body.append(message["body"])
                if not message["more_body"]:
                    self._body_pending = False
                    request.body.set_complete()
            elif message["type"] == "http.disconnect":
                if not self._finishing:
                    exchange.cancel()
                return

    async def _respond(self, request: Request) -> Response | WerkzeugResponse:
        if _head_bytes(self.scope) > MAX_HEAD_BYTES:
            return error_response(431, "request header fields too large")
        try:
            return await self.app.handle_request(request)
        except Exception:  # what fails outside the application's own error handlers (a Host it can't read)
            _logger.exception("a request failed outside its handler")
            return error_response(500, "internal error")

    async def _send_response(self, send: ASGISendCallable, response: Response | WerkzeugResponse) -> None:
        """Send status, headers and body; an answer in one part goes out with one final body message.

        There is no time limit on the whole, so that an event stream may stay idle: the server limits each write.
        """
        headers = encode_headers(response.headers)
        if self._body_pending:
            # What is left of the body would be taken for the next request: this connection has to end.
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        last = b""
        if isinstance(response, WerkzeugResponse):
            last = response.get_data()
        elif isinstance(response.response, DataBody):
            last = response.response.data[response.response.begin : response.response.end]
        else:
            async with response.response as parts:
                async for part in parts:
                    body = part.encode() if isinstance(part, str) else part
                    await send({"type": "http.response.body", "body": body, "more_body": True})
        self._finishing = True
        await send({"type": "http.response.body", "body": last, "more_body": False})


def _head_bytes(scope: HTTPScope) -> int:
    """The size of the request's head as sent, less separators."""
    target = len(scope["raw_path"]) + len(scope["query_string"])
    return target + sum(len(name) + len(value) for name, value in scope["headers"])


def _announces_body(scope: HTTPScope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0") != b"")
        for name, value in scope["headers"]
    )
