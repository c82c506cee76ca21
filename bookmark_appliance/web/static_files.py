"""`GET /static/*`: a handful of files, read once at the start, so that a request can ask for nothing else."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quart import Quart, request
from quart_trio.wrappers import TrioResponse

from bookmark_appliance.web.compression import accepts_gzip, compress, set_gzip_body
from bookmark_appliance.web.cors import add_vary
from bookmark_appliance.web.errors import ApiError

STATIC: Final = Path(__file__).with_name("static")

_TEXTS: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".webmanifest": "application/manifest+json",
}
_TYPES: Final = _TEXTS | {
    ".ico": "image/x-icon",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
"""By the end of a name. A file of another kind is not served: notes and licences may lie beside."""


@dataclass(frozen=True, slots=True)
class _File:
    body: bytes
    compressed: bytes | None
    """Of texts alone."""
    content_type: str
    etag: str


class StaticFiles:
    """Every file below `folder` whose kind is known."""

    def __init__(self, folder: Path = STATIC) -> None:
        self._files = {
            path.relative_to(folder).as_posix(): _read(path)
            for path in sorted(folder.rglob("*"))
            if path.suffix in _TYPES and path.is_file()
        }
        tags = "".join(file.etag for file in self._files.values())
        self._version = hashlib.sha256(tags.encode()).hexdigest()[:12]

    def register(self, app: Quart) -> None:
        """Give `app` the route."""
        app.add_url_rule("/static/<path:name>", "static_file", self.get, methods=["GET"])

    def serve(self, app: Quart, path: str, name: str) -> None:
        """Serve the file at `path` too: a service worker reaches no further than the folder that it comes from."""

        async def get() -> TrioResponse:
            return await self.get(name)

        app.add_url_rule(path, path, get, methods=["GET"])

    def address(self, name: str) -> str:
        """Where a page finds the file; the address changes when any of them does, whatever a browser has kept."""
        return f"/static/{name}?v={self._version}"

    async def get(self, name: str) -> TrioResponse:
        """The answer to the request that is being handled. Raises ApiError 404 for a name that is none."""
        file = self._files.get(name)
        if file is None:
            raise ApiError(404, "not found")
        if "If-None-Match" in request.headers and request.if_none_match.contains_weak(file.etag):
            response = TrioResponse(b"", 304)
        else:
            response = TrioResponse(file.body, content_type=file.content_type)
            if file.compressed and accepts_gzip(request.headers.get("Accept-Encoding", "")):
                set_gzip_body(response, file.compressed)
        if file.compressed:
            add_vary(response.headers, "Accept-Encoding")
        response.headers["ETag"] = f'W/"{file.etag}"'
        response.headers["Cache-Control"] = "public, max-age=3600"
        return response


def _read(path: Path) -> _File:
    body = path.read_bytes()
    compressed = compress(body) if path.suffix in _TEXTS else None
    return _File(body, compressed, _TYPES[path.suffix], hashlib.sha256(body).hexdigest()[:16])
