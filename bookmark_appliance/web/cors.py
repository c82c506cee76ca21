"""Which pages of other origins may read an answer: the Sites' own, where the scripts run (API-039, API-040)."""

from collections.abc import Set

from werkzeug.datastructures import Headers

_ALLOWANCE = (
    ("Access-Control-Allow-Methods", "GET,PUT,DELETE,OPTIONS"),
    ("Access-Control-Allow-Headers", "Authorization,Content-Type"),
    ("Access-Control-Max-Age", "86400"),
)


def add_cors_headers(headers: Headers, origin: str | None, allowed: Set[str]) -> None:
    """Tell the browser of an allowed `origin` that it may; of any other nothing. The answer varies by it either way."""
    add_vary(headers, "Origin")
    if origin is not None and origin in allowed:
        headers["Access-Control-Allow-Origin"] = origin
        headers.extend(_ALLOWANCE)


def add_vary(headers: Headers, name: str) -> None:
    """Add `name` to `Vary` unless it stands there."""
    present = headers.get("Vary")
    if present is None:
        headers["Vary"] = name
    elif name not in present:
        headers["Vary"] = f"{present}, {name}"
