"""The JSON API: a Reader's list, one Bookmark put or deleted."""

from pathlib import Path
from typing import Final
from urllib.parse import unquote_to_bytes

from quart import Quart, request
from quart_trio.wrappers import TrioResponse
from werkzeug.exceptions import HTTPException
from werkzeug.routing import BaseConverter

from bookmark_appliance.bookmark_put import BookmarkPut
from bookmark_appliance.store.bookmarks import (
    ListVersion,
    delete_bookmark,
    find_list_version,
    put_bookmark,
    read_list,
)
from bookmark_appliance.web.authentication import bearer_hash, unauthorized
from bookmark_appliance.web.compression import accepts_gzip, set_gzip_body
from bookmark_appliance.web.context import WebContext
from bookmark_appliance.web.errors import ApiError
from bookmark_appliance.web.list_cache import ListBody, ListCache
from bookmark_appliance.web.put_body import InvalidPut, parse_path_key, parse_put
from bookmark_appliance.web.wire import encode_bookmark, encode_list

JSON: Final = "application/json"

_BOOKMARKS: Final = b"/bookmarks/"

_OPENAPI: Final = Path(__file__).with_name("openapi.json")


class _WholeRest(BaseConverter):
    """All that is left of the path: slashes (API-050), line ends, or nothing."""

    regex = r"(?s:.*)"
    part_isolating = False


class JsonApi:
    """The handlers, and the lists they keep."""

    def __init__(self, context: WebContext) -> None:
        self._context = context
        self._lists = ListCache()
        self._openapi = _OPENAPI.read_bytes()

    def register(self, app: Quart) -> None:
        """Give `app` the routes; every path under /bookmarks asks for a credential, also where there is no route."""
        app.url_map.converters["rest"] = _WholeRest
        app.before_request(self._ask_for_credential)
        for rule, method, handler in (
            ("/healthz", "GET", self.health),
            ("/openapi.json", "GET", self.openapi),
            ("/bookmarks", "GET", self.get_list),
            ("/bookmarks/<rest:key>", "PUT", self.put),
            ("/bookmarks/<rest:key>", "DELETE", self.delete),
        ):
            app.add_url_rule(rule, handler.__name__, handler, methods=[method])

    async def health(self) -> TrioResponse:
        """API-001: the process answers; the database isn't asked."""
        return TrioResponse(b"ok", content_type="text/plain; charset=utf-8")

    async def openapi(self) -> TrioResponse:
        """The description of this API."""
        return TrioResponse(self._openapi, content_type=JSON)

    async def get_list(self) -> TrioResponse:
        """GET /bookmarks: made anew only when the list's version moved."""
        body = await self._list_body(bearer_hash(request.headers.getlist("Authorization")))
        if "If-None-Match" in request.headers and request.if_none_match.contains_weak(_opaque(body.etag)):
            response = TrioResponse(b"", 304)
        elif accepts_gzip(request.headers.get("Accept-Encoding", "")):
            response = TrioResponse(content_type=JSON)
            set_gzip_body(response, body.compressed)
        else:
            response = TrioResponse(body.plain(), content_type=JSON)
            response.content_length = body.length
        response.headers["ETag"] = body.etag
        response.headers["Cache-Control"] = "private, no-cache"
        response.headers["Vary"] = "Authorization, Origin, Accept-Encoding"
        return response

    async def _list_body(self, credential: bytes) -> ListBody:
        found = await self._require_reader(credential)
        kept = self._lists.find(found)
        if kept is not None:
            return kept
        async with self._lists.turn(found.reader_id):
            return await self._make_list(credential)

    async def _make_list(self, credential: bytes) -> ListBody:
        async with self._context.database.connection() as connection:
            found = await find_list_version(connection, credential)
            if found is None:
                raise unauthorized()
            kept = self._lists.find(found)
            if kept is not None:
                return kept
            read = await read_list(connection, found.reader_id)
        if read is None:
            raise unauthorized()
        version, bookmarks = read
        body = await ListBody.of(encode_list(bookmarks, self._context.public_base_url))
        self._lists.keep(ListVersion(found.reader_id, version), body)
        return body

    async def put(self, key: str) -> TrioResponse:
        """PUT /bookmarks/{key}: answers with the row as stored (API-012)."""
        credential = bearer_hash(request.headers.getlist("Authorization"))
        try:
            put = await self._read_put()
        except (ApiError, HTTPException):
            await self._require_reader(credential)  # who isn't known hears that first
            raise
        async with self._context.database.connection() as connection:
            stored = await put_bookmark(connection, credential, put, self._context.clock.now_ms())
        if stored is None:
            raise unauthorized()
        bookmark, new_series = stored
        if new_series is not None:
            self._context.series_created(new_series)
        return TrioResponse(encode_bookmark(bookmark, self._context.public_base_url), content_type=JSON)

    async def _read_put(self) -> BookmarkPut:
        body = await request.get_data(cache=False, as_text=False, parse_form_data=False)
        advance = bool(request.query_string) and request.args.get("advance") == "1"
        try:
            return parse_put(path_key(_BOOKMARKS), body, self._context.sites.keys(), advance=advance)
        except InvalidPut as error:
            raise ApiError(400, str(error)) from None

    async def delete(self, key: str) -> TrioResponse:
        """DELETE /bookmarks/{key}: 204 whether there was one or not (API-032)."""
        credential = bearer_hash(request.headers.getlist("Authorization"))
        if not key:
            await self._require_reader(credential)
            raise ApiError(400, "key must not be empty")
        try:
            series_key = parse_path_key(path_key(_BOOKMARKS))
        except ApiError:
            await self._require_reader(credential)
            raise
        if series_key is None:  # no row can have it, so it is gone
            await self._require_reader(credential)
            return TrioResponse(b"", 204)
        async with self._context.database.connection() as connection:
            if not await delete_bookmark(connection, credential, series_key):
                raise unauthorized()
        return TrioResponse(b"", 204)

    async def _require_reader(self, credential: bytes) -> ListVersion:
        async with self._context.database.connection() as connection:
            found = await find_list_version(connection, credential)
        if found is None:
            raise unauthorized()
        return found

    async def _ask_for_credential(self) -> None:
        """A 404 or 405 under /bookmarks is for those who are known (API-002)."""
        if request.routing_exception is not None and request.path.startswith("/bookmarks"):
            await self._require_reader(bearer_hash(request.headers.getlist("Authorization")))


def path_key(before: bytes, behind: bytes = b"") -> str:
    """The key of the request's path, which stands between two parts of it, percent-decoded exactly once (API-047).

    Taken from the target as it was sent: the routed path has been through hands that replace what isn't UTF-8. Raises
    ApiError 400 and 404.
    """
    path: bytes = request.scope["raw_path"]
    if not path.startswith(before) or not path.endswith(behind):
        # The router, which has it decoded, sees more in it than is there.
        raise ApiError(404, "not found")
    try:
        return unquote_to_bytes(path.removeprefix(before).removesuffix(behind)).decode()
    except UnicodeDecodeError:
        raise ApiError(400, "key must be UTF-8") from None


def _opaque(etag: str) -> str:
    return etag.removeprefix("W/").strip('"')
