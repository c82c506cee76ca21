"""The bearer credential of the JSON API (API-002, API-003)."""

import re
from collections.abc import Sequence

from bookmark_appliance.credentials import credential_hash
from bookmark_appliance.web.errors import ApiError

_BEARER = re.compile(r"bearer ([!-~]+)", re.IGNORECASE | re.ASCII)


def bearer_hash(authorization: Sequence[str]) -> bytes:
    """The form in which the credential of the one `Authorization` header would be stored: `Bearer`, one space, a word.

    What the word is worth only the database can tell. Raises ApiError 401 when the header holds none, or there are two.
    """
    match = _BEARER.fullmatch(authorization[0]) if len(authorization) == 1 else None
    if match is None:
        raise unauthorized()
    return credential_hash(match[1])


def unauthorized() -> ApiError:
    """One text for every way of not being known."""
    return ApiError(401, "missing or unknown credential")
