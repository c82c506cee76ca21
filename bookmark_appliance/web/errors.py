"""Every answer that is an error: a JSON object whose `error` is a short text for people (API-022)."""

import logging
import secrets

import msgspec
from quart import Quart, request
from quart_trio.wrappers import TrioResponse
from werkzeug.exceptions import HTTPException

from bookmark_appliance.database import DatabaseUnavailable

RETRY_SECONDS = 5
"""What a client is told to wait when the database can't be reached."""

_logger = logging.getLogger(__name__)


class ApiError(Exception):
    """Ends a request with `status` and a text that a client may see."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def error_response(status: int, message: str) -> TrioResponse:
    """The one shape of an error; the id is in the log as well when there was anything to log."""
    response = TrioResponse(msgspec.json.encode({"error": message}) + b"\n", status, content_type="application/json")
    response.headers["X-Request-Id"] = secrets.token_hex(8)
    response.headers["X-Content-Type-Options"] = "nosniff"
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def register_error_handlers(app: Quart) -> None:
    """Give every error of `app` its answer; what nobody foresaw is logged with its traceback and the request's id."""
    app.register_error_handler(ApiError, _api_error)
    app.register_error_handler(HTTPException, _http_exception)
    app.register_error_handler(DatabaseUnavailable, _database_unavailable)
    app.register_error_handler(Exception, _unexpected)


async def _api_error(error: ApiError) -> TrioResponse:
    return error_response(error.status, error.message)


async def _http_exception(error: HTTPException) -> TrioResponse:
    """What the framework refuses: no such route or method, a body too large or too late."""
    response = error_response(error.code or 500, error.name.lower())
    for name, value in error.get_headers():
        if name == "Allow":
            response.headers[name] = value
    return response


async def _database_unavailable(error: DatabaseUnavailable) -> TrioResponse:
    response = error_response(503, "the database is not available, try again")
    response.headers["Retry-After"] = str(RETRY_SECONDS)
    _logger.warning("request %s: %s", response.headers["X-Request-Id"], error)
    return response


async def _unexpected(error: Exception) -> TrioResponse:
    response = error_response(500, "internal error")
    # The rule, not the path: that one holds a credential where a page is shared by its address.
    route = f"{request.method} {request.url_rule} ({request.endpoint})"
    _logger.error("request %s failed: %s", response.headers["X-Request-Id"], route, exc_info=error)
    return response
