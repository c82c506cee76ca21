"""GET /covers/{address}: public, immutable, and nothing but an image to whoever embeds it (COV-027 to COV-034)."""

import re
from collections.abc import AsyncIterator
from typing import Final, Self

from quart import Quart, request
from quart.wrappers import Response
from quart.wrappers.response import ResponseBody
from quart_trio.wrappers import TrioResponse

from bookmark_appliance.covers.cover_files import CoverFiles, OpenFile
from bookmark_appliance.covers.cover_keeper import CoverKeeper
from bookmark_appliance.covers.rendition import CONTENT_TYPE, WIDTHS, Renditions
from bookmark_appliance.web.errors import error_response

PIECE_BYTES: Final = 64 * 1024
"""Read and sent at a time; of an answer in progress no more stands in memory."""

_COVERS: Final = b"/covers/"
_RANGE: Final = re.compile(r"bytes=(?:(\d{1,18})-(\d{1,18})?|-(\d{1,18}))", re.IGNORECASE | re.ASCII)

_WIDTHS: Final = {f"w={width}".encode(): width for width in WIDTHS}

_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; sandbox",  # opened by itself, a polyglot is still no page
    "Cross-Origin-Resource-Policy": "cross-origin",
    "X-Content-Type-Options": "nosniff",
}


class CoverPages:
    """The one route."""

    def __init__(self, covers: CoverKeeper) -> None:
        self._covers = covers
        self._renditions = Renditions(covers.files)

    def register(self, app: Quart) -> None:
        """Give `app` the route: for every path below it, so that what is no address is answered alike."""
        app.add_url_rule("/covers/<rest:address>", "cover", self.get, methods=["GET"])

    async def get(self, address: str) -> Response:
        """A cover, or its rendition of the width that `w` names; another width is none, and gets the original."""
        # As it was sent: an address in percent forms is none of ours.
        address = request.scope["raw_path"].removeprefix(_COVERS).decode("latin-1")
        cover = await self._covers.open(address)
        if cover is None:
            response: Response = error_response(404, "not found")
            response.headers["Cache-Control"] = "no-store"
        else:
            width = _WIDTHS.get(request.query_string)
            small = width and await self._renditions.open(address, width, cover.file)
            if small:
                response = await self._answer(small, CONTENT_TYPE, f'"{address}-w{width}"')
            else:
                response = await self._answer(cover.file, cover.content_type, f'"{address}"')
                if width:  # in the place of a rendition that may succeed another time
                    response.headers["Cache-Control"] = "public, max-age=3600"
        response.headers.update(_HEADERS)
        return response

    async def _answer(self, file: OpenFile, content_type: str, etag: str) -> Response:
        """The file, or the part of it that is asked for, or nothing where the client has it."""
        wanted = whole = range(file.size)
        if request.method == "GET" and request.headers.get("If-Range", etag) == etag:
            wanted = asked_range(request.headers.get("Range", ""), file.size)
        if "If-None-Match" in request.headers and request.if_none_match.contains_weak(etag.strip('"')):
            response: Response = TrioResponse(b"", 304)
        elif not wanted and file.size:
            response = error_response(416, "range not satisfiable")
            response.headers["Content-Range"] = f"bytes */{file.size}"
            return response
        else:
            response = await self._body(file, wanted)
            response.content_type = content_type
            response.content_length = len(wanted)
            if wanted != whole:
                response.status_code = 206
                response.headers["Content-Range"] = f"bytes {wanted.start}-{wanted.stop - 1}/{file.size}"
        response.headers["Accept-Ranges"] = "bytes"
        response.headers["Cache-Control"] = "public, max-age=604800, immutable"
        response.headers["ETag"] = etag
        return response

    async def _body(self, file: OpenFile, wanted: range) -> Response:
        """What fits into one piece is sent in one, the quickest way; the rest streams."""
        if request.method == "HEAD":
            return TrioResponse(b"")
        if len(wanted) > PIECE_BYTES:
            return TrioResponse(_Pieces(self._covers.files, file, wanted))
        return TrioResponse(await self._covers.files.read(file, wanted.start, len(wanted)))


class _Pieces(ResponseBody, AsyncIterator[bytes]):
    """A part of a file, a piece at a time, closed however the sending ends."""

    def __init__(self, files: CoverFiles, file: OpenFile, wanted: range) -> None:
        self._files = files
        self._file = file
        self._wanted = wanted

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._file.close()

    async def __anext__(self) -> bytes:
        next_piece, self._wanted = self._wanted[:PIECE_BYTES], self._wanted[PIECE_BYTES:]
        if not next_piece:
            raise StopAsyncIteration
        return await self._files.read(self._file, next_piece.start, len(next_piece))


def asked_range(header: str, size: int) -> range:
    """The bytes that a Range header asks for (RFC 9110 14.2): all of them where it names several ranges, or nothing
    that we know; empty when there are none such."""
    match = _RANGE.fullmatch(header.strip())
    if match is None:
        return range(size)
    first, last, suffix = (int(number) if number else None for number in match.groups())
    if suffix is not None:
        return range(max(size - suffix, 0), size)
    if first is None or (last is not None and last < first):
        return range(size)
    return range(first, size if last is None else min(last + 1, size))
