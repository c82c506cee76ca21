"""How often a client may fail to sign in (SES-011, SES-012)."""

from collections.abc import Sequence
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

from bookmark_appliance.clock import MINUTE_MS

MOST_FAILURES: Final = 10
WINDOW_MS: Final = 20 * MINUTE_MS


def limited_client(address: str) -> str:
    """Under what an address is counted: an IPv6 one with its whole /64, since one household has all of it.

    What is no address, a slip of the proxy in front, is counted as one client, so that writing it in many ways gains
    nothing.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return "unreadable"
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(IPv6Network((parsed.packed[:8] + bytes(8), 64)))


def blocked_until(failures: Sequence[int], now_ms: int) -> int | None:
    """When the next attempt is allowed, in unix ms, or None where it is now."""
    counted = _counted(failures, now_ms)
    return counted[-1] + WINDOW_MS if len(counted) >= MOST_FAILURES else None


def with_failure(failures: Sequence[int], now_ms: int) -> list[int]:
    """The failures that there are to remember after one more, the newest first."""
    return [now_ms, *_counted(failures, now_ms)][:MOST_FAILURES]


def without_failure(failures: Sequence[int], failed_at: int) -> list[int]:
    """The failures without one at `failed_at`: it turned out to be none."""
    kept = list(failures)
    if failed_at in kept:
        kept.remove(failed_at)
    return kept


def _counted(failures: Sequence[int], now_ms: int) -> list[int]:
    """Those inside the window, the newest first and no more than matter. One that lies ahead is of a clock that was set
    back since: counted, it could block for longer than the window."""
    inside = [failed for failed in failures if now_ms - WINDOW_MS < failed <= now_ms]
    return sorted(inside, reverse=True)[:MOST_FAILURES]
