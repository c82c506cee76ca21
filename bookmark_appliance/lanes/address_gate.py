"""The address gate: which addresses may be fetched in a Site's name (SITE-001, SITE-002)."""

import re

from bookmark_appliance.lanes.site import Site

_UNSAFE = re.compile(r"[\x00-\x20\x7f-\xa0\\\s\ud800-\udfff]")
"""White space, control characters, lone surrogates, and the backslash that browsers take for a slash."""

_AFTER_HOST = re.compile(r"(?::443)?(?:[/?#]|\Z)")


def fetchable(site: Site, address: str) -> bool:
    """Whether `address` is https at exactly the Site's host, written plainly.

    No user information, no other port, no upper case or trailing dot in the host: every parser must read the same host
    out of it. The address is only judged; it travels to the Site byte for byte (twice-encoded slugs must survive).
    """
    return (
        address.startswith(site.origin)
        and _AFTER_HOST.match(address, len(site.origin)) is not None
        and _UNSAFE.search(address) is None
    )
