"""Finds the browser behind its endpoint, anew for every read: a restarted Chrome has another id (BRO-017)."""

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import h11
import msgspec
import trio

from bookmark_appliance.cdp.errors import BrowserGone
from bookmark_appliance.setting_values import browser_address

CONNECT_SECONDS: Final = 5.0
DISCOVERY_SECONDS: Final = 35.0
"""A browser host takes the connection at once, and then starts a Chrome that has 30 s to come up."""

MAX_ANSWER_BYTES: Final = 64 * 1024
"""Chrome's is below 1 KiB."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the debugging protocol is spoken; `authority` is `host:port` as it stands in the Host header."""

    host: str
    port: int
    authority: str


def parse_endpoint(text: str) -> Endpoint:
    """The endpoint of `ws://IP:PORT`; raises ValueError for anything else, as the setting BROWSER_WS_URL does."""
    parts = urlsplit(browser_address(text))
    assert parts.hostname is not None
    port = parts.port or 80
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return Endpoint(parts.hostname, port, f"{host}:{port}")


async def dial(endpoint: Endpoint) -> trio.SocketStream:
    """A connection to whoever listens there. Raises BrowserGone."""
    try:
        with trio.fail_after(CONNECT_SECONDS):
            return await trio.open_tcp_stream(endpoint.host, endpoint.port)
    except (OSError, trio.TooSlowError) as error:
        raise BrowserGone(f"no connection to {endpoint.authority}: {str(error) or 'not in time'}") from error


async def debugger_path(endpoint: Endpoint) -> str:
    """The path of the browser's websocket, by `/json/version`. Raises BrowserGone.

    Of the address in the answer only the path counts: no answer sends us to another machine.
    """
    try:
        with trio.fail_after(DISCOVERY_SECONDS):
            body = await _get(endpoint, "/json/version")
        path = urlsplit(msgspec.json.decode(body, type=dict[str, str])["webSocketDebuggerUrl"]).path
    except trio.TooSlowError:
        raise BrowserGone("no answer at /json/version in time") from None
    except (trio.BrokenResourceError, h11.RemoteProtocolError, ValueError, KeyError) as error:
        raise BrowserGone(f"/json/version: {str(error) or type(error).__name__}") from error
    if not re.fullmatch("/devtools/browser/[!-~]+", path):
        raise BrowserGone("/json/version names no browser")
    return path


async def _get(endpoint: Endpoint, target: str) -> bytes:
    """The body of one small answer, over a connection of its own: Chrome counts as used while one is open."""
    client, body = h11.Connection(h11.CLIENT), b""
    headers = [("Host", endpoint.authority), ("Connection", "close")]
    stream = await dial(endpoint)
    try:
        await stream.send_all(client.send(h11.Request(method="GET", target=target, headers=headers)) or b"")
        while not isinstance(event := client.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                client.receive_data(bytes(await stream.receive_some(MAX_ANSWER_BYTES)))
            elif isinstance(event, h11.Response) and event.status_code != HTTPStatus.OK:
                raise BrowserGone(f"{target} answers {event.status_code}")
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > MAX_ANSWER_BYTES:
                    raise BrowserGone(f"{target} answers without end")
        return body
    finally:
        await trio.aclose_forcefully(stream)
