"""The bearer credential of the JSON API (API-002, API-003)."""

import re

from bookmark_appliance.credentials import credential_hash
from bookmark_appliance.web.errors import ApiError

_BEARER = re.compile(r"bearer ([!-~]+)", re.IGNORECASE | re.ASCII)


def bearer_hash(authorization: str | None) -> bytes:
    """The form in which the credential of an `Authorization` header would be stored: `Bearer`, one space, a word.

    What the word is worth only the database can tell. Raises ApiError 401 when the header holds none.
    """
    match = _BEARER.fullmatch(authorization or "")
    if match is None:
        raise unauthorized()
    return credential_hash(match[1])


def unauthorized() -> ApiError:
    """One text for every way of not being known."""
    return ApiError(401, "missing or unknown credential")
