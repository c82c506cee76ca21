"""Which addresses may be connected to for a cover: those of the public internet (COV-021, COV-022).

A list of our own, from IANA's registries of special-purpose addresses: what `ipaddress` calls global changed within
Python 3.11, and it looks through some of the forms that carry another address and not through others.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address
from typing import Final

_NOT_PUBLIC: Final = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # behind a provider's translation
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local; the metadata service of hosting providers
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",  # multicast, reserved, broadcast
    )
)

_UNICAST: Final = IPv6Network("2000::/3")
"""All that IANA has given out. Loopback, local, multicast, and IPv4 mapped or translated (NAT64) lie outside."""

_NOT_PUBLIC_IN_UNICAST: Final = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocols, among them Teredo, which carries an IPv4 address
        "2001:db8::/32",
        "2002::/16",  # 6to4, which carries one too
        "3fff::/20",
    )
)


def public(address: str) -> bool:
    """Whether `address`, as a resolver gives it, is one of the public internet; False for what is no address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv4Address):
        return not any(parsed in network for network in _NOT_PUBLIC)
    return parsed in _UNICAST and not any(parsed in network for network in _NOT_PUBLIC_IN_UNICAST)
