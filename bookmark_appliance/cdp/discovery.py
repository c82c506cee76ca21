"""Finds the browser behind its endpoint, anew for every read: a restarted Chrome has another id (BRO-017)."""

import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import httpx
import msgspec
import trio

from bookmark_appliance.cdp.errors import BrowserGone
from bookmark_appliance.setting_values import browser_address

DISCOVERY_SECONDS: Final = 35.0
"""A browser host takes the connection, and starts a Chrome that has 30 s to come up."""

CONNECT_SECONDS: Final = 5.0

MAX_ANSWER_BYTES: Final = 64 * 1024
"""Chrome's is below 1 KiB."""

# No TLS is spoken: a context that trusts nobody costs nothing, the default one reads every root of the machine.
_NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class _Version(msgspec.Struct):
    address: str = msgspec.field(name="webSocketDebuggerUrl")


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


async def debugger_path(endpoint: Endpoint, seconds: float = DISCOVERY_SECONDS) -> str:
    """The path of the browser's websocket, by `/json/version`. Raises BrowserGone.

    Of the address in the answer only the path counts: no answer sends us to another machine.
    """
    try:
        with trio.fail_after(seconds):
            body = await _get(f"http://{endpoint.authority}/json/version")
        path = urlsplit(msgspec.json.decode(body, type=_Version).address).path
    except trio.TooSlowError:
        raise BrowserGone("no answer at /json/version in time") from None
    except (httpx.HTTPError, msgspec.MsgspecError, ValueError) as error:
        raise BrowserGone(f"/json/version: {error or type(error).__name__}") from error
    if not path.startswith("/devtools/browser/") or not path.isascii() or not path.isprintable():
        raise BrowserGone("/json/version names no browser")
    return path


async def _get(address: str) -> bytes:
    async with (
        httpx.AsyncClient(
            trust_env=False, verify=_NO_TLS, timeout=httpx.Timeout(None, connect=CONNECT_SECONDS)
        ) as client,
        client.stream("GET", address, headers={"connection": "close", "accept-encoding": "identity"}) as answer,
    ):
        if answer.status_code != httpx.codes.OK:
            raise BrowserGone(f"status {answer.status_code} at /json/version")
        body = b""
        async for piece in answer.aiter_raw():
            body += piece
            if len(body) > MAX_ANSWER_BYTES:
                raise BrowserGone("the answer at /json/version is too long")
        return body
