"""What keeps pages safe in a browser: their policy, and who may make one change something (UI.md 12)."""

from collections.abc import Sequence, Set
from typing import Final
from urllib.parse import parse_qsl

from quart import Quart, request
from quart.wrappers import Response

from bookmark_appliance.web.context import WebContext
from bookmark_appliance.web.cors import add_vary
from bookmark_appliance.web.errors import ApiError, is_page

_SAFE_METHODS: Final = frozenset(("GET", "HEAD", "OPTIONS"))

_MOST_FIELDS: Final = 100

_HEADERS: Final = {
    # Not no-referrer: forms would then send `Origin: null`, which is refused.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class PageSafety:
    """The rules over everything that is no part of the JSON API, what has no route included."""

    def __init__(self, context: WebContext) -> None:
        self._origins = frozenset((context.public_base_url, context.web_base_url))
        self._headers = _HEADERS | {"Content-Security-Policy": content_policy(context.public_base_url)}

    def register(self, app: Quart) -> None:
        """Check every request for a page before its handler, and give every answer the headers."""
        app.before_request(self._refuse_foreign)
        app.after_request(self._add_headers)

    async def _refuse_foreign(self) -> None:
        if request.method in _SAFE_METHODS or not is_page(request.path):
            return
        headers = request.headers
        if not is_own_request(
            headers.getlist("Origin"), headers.getlist("Sec-Fetch-Site"), headers.get("Host", ""), self._origins
        ):
            raise ApiError(403, "this request came from another site")

    async def _add_headers(self, response: Response) -> Response:
        if is_page(request.path):
            for name, value in self._headers.items():
                response.headers.setdefault(name, value)
            if "Cache-Control" not in response.headers:
                # Not even for the button that goes back: after a log-out nothing of a Library is left to show.
                response.headers["Cache-Control"] = "private, no-store"
                add_vary(response.headers, "Cookie")
        return response


def content_policy(cover_origin: str) -> str:
    """The content security policy. Covers are named by their own origin: a page may be read under another one.

    `form-action` also holds for the redirects after a form: sign-in is a link because of it.
    """
    return "; ".join(
        (
            "default-src 'none'",
            "style-src 'self'",
            "script-src 'self'",
            f"img-src 'self' {cover_origin}",
            "font-src 'self'",
            "connect-src 'self'",
            "manifest-src 'self'",
            "worker-src 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        )
    )


def is_own_request(origins: Sequence[str], fetch_sites: Sequence[str], host: str, own: Set[str]) -> bool:
    """Whether an unsafe request comes from a page of ours, as its `Origin` and `Sec-Fetch-Site` lines tell.

    `own` are the deployment's origins. A client that sends neither line is no browser of today, and passes.
    """
    if len(origins) > 1 or len(fetch_sites) > 1:
        return False
    if origins and origins[0] not in own and not _is_at(origins[0], host):
        return False
    if not fetch_sites or fetch_sites[0] == "same-origin":
        return True
    # Between the two origins the browser says same-site; between two other hosts of that site as well.
    return fetch_sites[0] == "same-site" and bool(origins) and origins[0] in own


def _is_at(origin: str, host: str) -> bool:
    scheme, separator, authority = origin.partition("://")
    return bool(separator) and scheme in ("http", "https") and bool(host) and authority.lower() == host.lower()


async def read_form() -> dict[str, str]:
    """The fields of this request's form, the last of each name. Raises ApiError 400 for what can't be read as one."""
    if request.mimetype not in ("application/x-www-form-urlencoded", ""):
        raise ApiError(400, "the form could not be read")
    body = await request.get_data(cache=False, as_text=False, parse_form_data=False)
    try:
        return dict(
            parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
        )
    except ValueError:
        raise ApiError(400, "the form could not be read") from None
