"""Signing in and out."""

from quart import Quart, request
from quart.wrappers import Response

from bookmark_appliance.store.sessions import delete_session
from bookmark_appliance.web.context import WebContext
from bookmark_appliance.web.pages import Pages, see_other
from bookmark_appliance.web.sessions import Gate, SignedIn, drop_session_cookie, session_of


class SignIn:
    """The handlers of the ways in and the way out."""

    def __init__(self, context: WebContext, pages: Pages, gate: Gate) -> None:
        self._context = context
        self._pages = pages
        self._gate = gate

    def register(self, app: Quart) -> None:
        """Give `app` the routes."""
        app.add_url_rule("/login", "login", self.login, methods=["GET"])
        app.add_url_rule("/logout", "logout", self.logout, methods=["POST"])

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
