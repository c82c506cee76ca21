"""Who a browser is signed in as: its session cookie, and what a route does without (SES-001 to SES-007, SES-026)."""

import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from quart import request
from quart.wrappers import Request, Response

from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.store.sessions import SESSION_MS, create_session, delete_session, find_session
from bookmark_appliance.web.client_address import is_trusted
from bookmark_appliance.web.context import WebContext
from bookmark_appliance.web.errors import ApiError
from bookmark_appliance.web.pages import Pages

COOKIE: Final = "bmgr_session"

TOKEN: Final = re.compile(r"[0-9a-f]{64}")
"""A session's id, an OAuth state, a sign-in link: 32 random bytes."""

Handler = Callable[..., Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class SignedIn:
    """The Reader whose browser sent a request."""

    reader_id: int
    discord_id: str
    is_owner: bool


async def signed_in(context: WebContext, request: Request) -> SignedIn | None:
    """The Reader behind the session cookie of `request`; None without a live session."""
    session_id = session_of(request)
    if session_id is None:
        return None
    async with context.database.connection() as connection:
        reader = await find_session(connection, session_id, context.clock.now_ms())
    if reader is None:
        return None
    return SignedIn(reader.id, reader.discord_id, reader.discord_id == context.owner_discord_id)


class Gate:
    """Wraps handlers at their registration: each gets the `SignedIn` Reader as its first argument.

    app.add_url_rule("/", "library", gate.page(self.get), methods=["GET"])
    """

    def __init__(self, context: WebContext, pages: Pages) -> None:
        self._context = context
        self._pages = pages

    def page(self, handler: Handler) -> Handler:
        """Without a session the route shows the sign-in page."""

        async def gated(**arguments: Any) -> Response:
            reader = await signed_in(self._context, request)
            return self._pages.sign_in() if reader is None else await handler(reader, **arguments)

        return gated

    def fragment(self, handler: Handler) -> Handler:
        """Without a session the route answers 401: in words to htmx, with the sign-in page to a plain form."""

        async def gated(**arguments: Any) -> Response:
            reader = await signed_in(self._context, request)
            if reader is not None:
                return await handler(reader, **arguments)
            if "HX-Request" in request.headers:
                raise ApiError(401, "your session has ended")
            return self._pages.sign_in(401, "Your session has ended. Nothing was saved.")

        return gated


def session_of(request: Request) -> str | None:
    """The session id that the request carries; None for what is none, which the database need not see."""
    value = request.cookies.get(COOKIE, "")
    return value if TOKEN.fullmatch(value) else None


async def begin_session(context: WebContext, connection: TrioConnection, request: Request, reader_id: int) -> str:
    """Mint a session for the Reader, in the caller's transaction; the id for `set_session_cookie`.

    It is always a new one, and the one that the browser came with ends: nobody can give a browser a session
    beforehand and share it once its Reader has signed in.
    """
    session_id = secrets.token_hex(32)
    await create_session(connection, session_id, reader_id, context.clock.now_ms())
    if (old := session_of(request)) is not None:  # after the sweep: two who sign in lock the expired in one order
        await delete_session(connection, old)
    return session_id


def set_session_cookie(context: WebContext, request: Request, response: Response, session_id: str) -> None:
    """SES-002."""
    set_cookie(context, request, response, COOKIE, session_id, SESSION_MS // 1_000)


def drop_session_cookie(context: WebContext, request: Request, response: Response) -> None:
    """SES-004."""
    set_cookie(context, request, response, COOKIE, "", -1)


def set_cookie(
    context: WebContext, request: Request, response: Response, name: str, value: str, max_age: int, path: str = "/"
) -> None:
    """A cookie that scripts can't read, that goes with no request of another site but a followed link, and that belongs
    to this host alone. `value` is hex digits, `max_age` in seconds."""
    line = f"{name}={value}; Max-Age={max_age}; Path={path}; HttpOnly; SameSite=Lax"
    response.headers.add("Set-Cookie", f"{line}; Secure" if is_https(context, request) else line)


def is_https(context: WebContext, request: Request) -> bool:
    """Whether the browser's own connection is encrypted, to us or to a proxy that we trust (SES-003)."""
    if request.scheme == "https":
        return True
    forwarded = request.headers.getlist("X-Forwarded-Proto")
    return forwarded == ["https"] and is_trusted(request.remote_addr or "", context.trusted_proxies)
