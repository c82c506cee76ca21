"""Every answer that is an error: of the JSON API an object whose `error` is a short text for people (API-022), of
everything else that text alone."""

import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from quart import Quart, request
from quart_trio.wrappers import TrioResponse
from werkzeug.exceptions import HTTPException

from bookmark_appliance.database import DATABASE_ERRORS, DatabaseUnavailable

RETRY_SECONDS = 5
"""What a client is told to wait when the database can't be reached."""

_NO_PAGES = ("/bookmarks", "/covers/", "/healthz", "/openapi.json")

_logger = logging.getLogger(__name__)


class ApiError(Exception):
    """Ends a request with `status` and a text that a client may see."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@contextmanager
def hide_rows(what: str) -> Iterator[None]:
    """Answer 500 for `what` can't be stored, and log the kind of error alone: the server's text shows the row, and with
    it a session's id and whose it is (SES-024)."""
    try:
        yield
    except DATABASE_ERRORS as error:
        _logger.error("%s could not be written: %s", what, type(error).__name__)
        raise ApiError(500, "internal error") from None


def is_page(path: str) -> bool:
    """Whether a path belongs to the pages, and not to what scripts and other machines ask for."""
    return not path.startswith(_NO_PAGES)


def error_response(status: int, message: str) -> TrioResponse:
    """The API's one shape of an error; the id is in the log as well when there was anything to log."""
    response = TrioResponse(msgspec.json.encode({"error": message}) + b"\n", status, content_type="application/json")
    response.headers["X-Request-Id"] = secrets.token_hex(8)
    response.headers["X-Content-Type-Options"] = "nosniff"
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _error(status: int, message: str) -> TrioResponse:
    """The error in the shape of its request's path. A page shows the text of a failed part as it is (UI-011)."""
    response = error_response(status, message)
    if is_page(request.path):
        response.set_data(message)
        response.content_type = "text/plain; charset=utf-8"
        response.headers.pop("WWW-Authenticate", None)
    return response


def register_error_handlers(app: Quart) -> None:
    """Give every error of `app` its answer; what nobody foresaw is logged with its traceback and the request's id."""
    app.register_error_handler(ApiError, _api_error)
    app.register_error_handler(HTTPException, _http_exception)
    app.register_error_handler(DatabaseUnavailable, _database_unavailable)
    app.register_error_handler(Exception, _unexpected)


async def _api_error(error: ApiError) -> TrioResponse:
    return _error(error.status, error.message)


async def _http_exception(error: HTTPException) -> TrioResponse:
    """What the framework refuses: no such route or method, a body too large or too late."""
    response = _error(error.code or 500, error.name.lower())
    for name, value in error.get_headers():
        if name == "Allow":
            response.headers[name] = value
    return response


async def _database_unavailable(error: DatabaseUnavailable) -> TrioResponse:
    response = _error(503, "the database is not available, try again")
    response.headers["Retry-After"] = str(RETRY_SECONDS)
    _logger.warning("request %s: %s", response.headers["X-Request-Id"], error)
    return response


async def _unexpected(error: Exception) -> TrioResponse:
    response = _error(500, "internal error")
    # The rule, not the path: that one holds a credential where a page is shared by its address.
    route = f"{request.method} {request.url_rule} ({request.endpoint})"
    _logger.error("request %s failed: %s", response.headers["X-Request-Id"], route, exc_info=error)
    return response
