"""Whose address a request counts under (SES-010)."""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address


def client_address(peer: str, forwarded_for: Sequence[str], trusted: Sequence[IPv4Network | IPv6Network]) -> str:
    """The address of the client that sent a request through `peer`, the other end of the socket.

    `forwarded_for` holds the `X-Forwarded-For` lines in order. Only a trusted proxy is believed, and of its lines only
    the last entry, the one that it wrote itself: all before it came from outside.
    """
    if not forwarded_for or not is_trusted(peer, trusted):
        return peer
    return forwarded_for[-1].rpartition(",")[2].strip() or peer


def is_trusted(peer: str, trusted: Sequence[IPv4Network | IPv6Network]) -> bool:
    """Whether `peer` is one of the proxies whose forwarded headers count."""
    try:
        address = ip_address(peer)
    except ValueError:  # a Unix socket has no address
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in network for network in trusted)
