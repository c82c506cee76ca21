"""Signing in with Discord: there, with a state, and back (SES-010 to SES-024)."""

import logging
import secrets
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from quart import Quart, request
from quart.wrappers import Response

from bookmark_appliance.database import DATABASE_ERRORS
from bookmark_appliance.discord import Discord, DiscordUnavailable
from bookmark_appliance.secret import Secret
from bookmark_appliance.store.readers import add_reader
from bookmark_appliance.store.sign_in import TOKEN_MS, add_state, lock_failures, take_state, write_failures
from bookmark_appliance.web import sign_in_limit as limit
from bookmark_appliance.web.client_address import client_address
from bookmark_appliance.web.context import WebContext
from bookmark_appliance.web.errors import ApiError, hide_rows
from bookmark_appliance.web.pages import Pages, see_other
from bookmark_appliance.web.sessions import TOKEN, begin_session, set_cookie, set_session_cookie

START: Final = "/auth/discord"

BROWSER_COOKIE: Final = "bmgr_sign_in"
"""Names the browser while it signs in, to bind each state to it. One that is there is used again: two tabs may."""

BLOCKED: Final = "Too many attempts. Try again in {minutes}."
CANCELLED: Final = "The sign-in was cancelled."
INVALID: Final = "This sign-in is invalid or was already used. Start again."
UNAVAILABLE: Final = "Signing in with Discord is not possible at the moment. Try again shortly."
REFUSED: Final = "This account is not part of this community."
"""For who is no member and for who lacks the role alike (SES-022)."""

_logger = logging.getLogger(__name__)


class DiscordSignIn:
    """The two handlers."""

    def __init__(self, context: WebContext, pages: Pages, discord: Discord) -> None:
        self._context = context
        self._pages = pages
        self._discord = discord

    def register(self, app: Quart) -> None:
        """Give `app` the routes; says in the log when nobody will come back by them."""
        app.add_url_rule(START, "discord_start", self.start, methods=["GET"])
        app.add_url_rule(f"{START}/callback", "discord_finish", self.finish, methods=["GET"])
        if urlsplit(self._discord.redirect_uri).hostname != urlsplit(self._context.web_base_url).hostname:
            _logger.warning("DISCORD_REDIRECT_URI is not at the host of WEB_BASE_URL: no sign-in can be finished")

    async def start(self) -> Response:
        """Send the browser to Discord with a state that only it can come back with (SES-014, SES-015)."""
        if request.method == "HEAD":
            return self._pages.sign_in()
        context, host = self._context, request.headers.get("Host", "").lower()
        if host == urlsplit(context.public_base_url).netloc != urlsplit(context.web_base_url).netloc:
            return see_other(context.web_base_url + START)  # CFG-011: the cookies are of that host
        state, browser = Secret(secrets.token_hex(32)), Secret(_browser() or secrets.token_hex(32))
        async with context.database.transaction() as connection:
            await add_state(connection, state, browser, context.clock.now_ms())
        response = see_other(self._discord.authorize_address(state))
        set_cookie(context, request, response, BROWSER_COOKIE, browser.reveal(), TOKEN_MS // 1_000, START)
        return response

    async def finish(self) -> Response:
        """The answers of UI.md 2, in its order."""
        if request.method == "HEAD":
            return self._pages.sign_in()
        cancelled = "error" in request.args
        began_at = self._context.clock.now_ms()
        blocked_until = await self._begin_attempt(began_at, count=not cancelled)
        if blocked_until is not None:
            return self._blocked(blocked_until - began_at)
        came_from_here = await self._consume_state()
        if cancelled:
            return self._pages.sign_in(400, CANCELLED)
        code = Secret(request.args.get("code", ""))
        if not came_from_here or not code.reveal():
            return self._pages.sign_in(400, INVALID)
        try:
            discord_id = await self._discord.admit(code)
        except DiscordUnavailable as error:
            _logger.warning("a sign-in failed at Discord: %s", error)
            return self._pages.sign_in(502, UNAVAILABLE)
        if discord_id is None:
            return self._pages.sign_in(403, REFUSED)
        try:
            with hide_rows("a sign-in"):
                return await self._let_in(discord_id)
        except ApiError:
            with suppress(*DATABASE_ERRORS):
                await self._forgive(began_at)
            raise

    async def _begin_attempt(self, now_ms: int, *, count: bool) -> int | None:
        """Until when this client is blocked. An attempt counts from its start and is forgiven when it succeeds: were it
        counted at its end, any number of them could be under way at once."""
        async with self._context.database.transaction() as connection:
            failures = await lock_failures(connection, self._client())
            blocked = limit.blocked_until(failures, now_ms)
            if blocked is None and count:
                failures = limit.with_failure(failures, now_ms)
                await write_failures(connection, self._client(), failures, now_ms - limit.WINDOW_MS)
        return blocked

    async def _forgive(self, began_at: int) -> None:
        async with self._context.database.transaction() as connection:
            failures = limit.without_failure(await lock_failures(connection, self._client()), began_at)
            await write_failures(connection, self._client(), failures, began_at - limit.WINDOW_MS)

    async def _consume_state(self) -> bool:
        """Whether the request came back from where we sent this browser. The state is used up in any case."""
        state = request.args.get("state", "")
        if not TOKEN.fullmatch(state):
            return False
        async with self._context.database.connection() as connection:
            row = await take_state(connection, state)
        return row is not None and row.is_good(_browser(), self._context.clock.now_ms())

    async def _let_in(self, discord_id: str) -> Response:
        """SES-013, SES-023: the Reader, made at first sight, and a session, or neither."""
        context = self._context
        async with context.database.transaction() as connection:
            await lock_failures(connection, self._client())
            await write_failures(connection, self._client(), (), context.clock.now_ms() - limit.WINDOW_MS)
            reader = await add_reader(connection, discord_id, context.token_key)
            session_id = await begin_session(context, connection, request, reader.id)
        response = see_other("/")
        set_session_cookie(context, request, response, session_id)
        set_cookie(context, request, response, BROWSER_COOKIE, "", -1, START)
        return response

    def _blocked(self, wait_ms: int) -> Response:
        """SES-012."""
        minutes = -(-wait_ms // 60_000)
        message = BLOCKED.format(minutes="a minute" if minutes == 1 else f"{minutes} minutes")
        response = self._pages.sign_in(429, message)
        response.headers["Retry-After"] = str(wait_ms // 1_000 + 1)
        return response

    def _client(self) -> str:
        lines = request.headers.getlist("X-Forwarded-For")
        return limit.limited_client(client_address(request.remote_addr or "", lines, self._context.trusted_proxies))


def _browser() -> str:
    """What the browser's cookie says; empty without a good one."""
    value = request.cookies.get(BROWSER_COOKIE, "")
    return value if TOKEN.fullmatch(value) else ""
