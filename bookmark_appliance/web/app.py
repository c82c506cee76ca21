"""The web application: its routes, and what every answer carries."""

from quart import Quart, request
from quart.wrappers import Response
from quart_trio import QuartTrio
from quart_trio.wrappers import TrioResponse

from bookmark_appliance.web.compression import compress_response
from bookmark_appliance.web.context import WebContext
from bookmark_appliance.web.cors import add_cors_headers
from bookmark_appliance.web.cover_pages import CoverPages
from bookmark_appliance.web.errors import register_error_handlers
from bookmark_appliance.web.exchange import Exchange
from bookmark_appliance.web.json_api import JsonApi
from bookmark_appliance.web.library import LibraryPages
from bookmark_appliance.web.page_safety import PageSafety
from bookmark_appliance.web.pages import Pages
from bookmark_appliance.web.sessions import Gate
from bookmark_appliance.web.sign_in import SignIn
from bookmark_appliance.web.static_files import StaticFiles
from bookmark_appliance.web.userscript_pages import UserscriptPages

MAX_BODY_BYTES = 65_536
"""API-014."""

BODY_SECONDS = 20
"""For a request's body to arrive; a half-sent one would hold its connection for ever."""


class _Application(QuartTrio):
    asgi_http_class = Exchange


def create_app(context: WebContext) -> Quart:
    """The application over `context`. It starts no task and holds no connection."""
    app = _Application(__name__, static_folder=None)
    app.config.update(MAX_CONTENT_LENGTH=MAX_BODY_BYTES, BODY_TIMEOUT=BODY_SECONDS, PROPAGATE_EXCEPTIONS=False)
    app.url_map.merge_slashes = False  # a redirect would change the key of a Bookmark
    app.url_map.strict_slashes = False
    register_error_handlers(app)

    @app.before_request
    async def answer_preflight() -> TrioResponse | None:
        """API-041: before any credential is asked for, and on any path."""
        return TrioResponse(b"", 204) if request.method == "OPTIONS" else None

    @app.after_request
    async def finish(response: Response) -> Response:
        headers = request.headers
        response.headers["X-Content-Type-Options"] = "nosniff"
        add_cors_headers(response.headers, headers.get("Origin"), context.allowed_origins)
        if response.status_code in (204, 304):  # no body, and so no type and no length
            response.headers.pop("Content-Type", None)
            response.headers.pop("Content-Length", None)
        else:
            compress_response(response, headers.get("Accept-Encoding", ""))
        return response

    PageSafety(context).register(app)
    static = StaticFiles()
    static.register(app)
    static.serve(app, "/manifest.webmanifest", "manifest.webmanifest")
    static.serve(app, "/sw.js", "sw.js")
    pages = Pages(context, static)
    gate = Gate(context, pages)
    SignIn(context, pages).register(app)
    JsonApi(context).register(app)
    LibraryPages(context, pages, gate).register(app)
    UserscriptPages(context, gate).register(app)
    CoverPages(context.covers).register(app)
    return app
