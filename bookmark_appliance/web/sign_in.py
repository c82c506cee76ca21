"""Signing in by a link and signing out; with Discord's settings, its way in as well (UI.md 2)."""

from typing import Final

from quart import Quart, request
from quart.wrappers import Response

from bookmark_appliance.discord import Discord
from bookmark_appliance.store.sessions import delete_session
from bookmark_appliance.store.sign_in import take_link
from bookmark_appliance.web.context import WebContext
from bookmark_appliance.web.discord_sign_in import DiscordSignIn
from bookmark_appliance.web.errors import hide_rows
from bookmark_appliance.web.pages import Pages, see_other
from bookmark_appliance.web.sessions import TOKEN, begin_session, drop_session_cookie, session_of, set_session_cookie

INVALID: Final = "This sign-in link is invalid or was already used. Start again."


class SignIn:
    """The handlers of the ways in and the way out. Without Discord's settings the routes of that way are not there."""

    def __init__(self, context: WebContext, pages: Pages) -> None:
        self._context = context
        self._pages = pages

    def register(self, app: Quart) -> None:
        """Give `app` the routes."""
        app.add_url_rule("/login", "login", self.login, methods=["GET"])
        app.add_url_rule("/logout", "logout", self.logout, methods=["POST"])
        app.add_url_rule("/sign-in/<token>", "sign_in_link", self.follow_link, methods=["GET"])
        if self._context.discord is not None:
            DiscordSignIn(self._context, self._pages, Discord(self._context.discord)).register(app)

    async def login(self) -> Response:
        """The sign-in page, also to who is signed in."""
        return self._pages.sign_in()

    async def logout(self) -> Response:
        """End this browser's session."""
        if (session_id := session_of(request)) is not None:
            async with self._context.database.connection() as connection:
                await delete_session(connection, session_id)
        response = see_other("/")
        drop_session_cookie(self._context, request, response)
        return response

    async def follow_link(self, token: str) -> Response:
        """SES-027: the link is used up by the session that it gives, and by nothing else."""
        if request.method == "HEAD":
            return self._pages.sign_in()
        with hide_rows("a sign-in"):
            session_id = await self._exchange_link(token) if TOKEN.fullmatch(token) else None
        if session_id is None:
            return self._pages.sign_in(400, INVALID)
        response = see_other("/")
        set_session_cookie(self._context, request, response, session_id)
        return response

    async def _exchange_link(self, token: str) -> str | None:
        async with self._context.database.transaction() as connection:
            reader_id = await take_link(connection, token, self._context.clock.now_ms())
            if reader_id is None:
                return None
            return await begin_session(self._context, connection, request, reader_id)
