"""What the browser host may be started with: where it listens, for whom, and in which time zone. Pure."""

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta

from bookmark_appliance.setting_values import port as port_number
from bookmark_appliance.setting_values import zone

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """An IP address and a port; port 0 picks a free one."""

    host: str
    port: int

    @property
    def everywhere(self) -> bool:
        """Whether it stands for every address of the machine, in whatever spelling."""
        return int(plain_address(self.host)) == 0


def listen_address(text: str) -> ListenAddress:
    """`IP:PORT`, `[IPv6]:PORT` or `localhost:PORT`. Raises ValueError with the rule that it breaks.

    A client can only dial an IP address or `localhost` (docs/OPERATIONS.md), so nothing else is listened on.
    """
    host, colon, port = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]") and ":" in host:
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("must have an IPv6 address in brackets, such as [fd7a::1]:9222")
    if not colon or not port:
        raise ValueError("must be HOST:PORT")
    try:
        address = ipaddress.ip_address("127.0.0.1" if host.lower() == "localhost" else host)
    except ValueError:
        raise ValueError("must name an IP address; of host names only localhost") from None
    return ListenAddress(str(address), port_number(port))


def plain_address(text: str) -> IPAddress:
    """The address of a peer; an IPv4 one that came in over IPv6 as what it is."""
    address = ipaddress.ip_address(text)
    return (address.version == 6 and address.ipv4_mapped) or address


def browser_zone(name: str) -> str:
    """The name of a time zone that Chrome may be in. Raises ValueError with the rule that it breaks.

    Measured 2026-08-08: in UTC, Chrome never cleared a challenge (docs/OPERATIONS.md). UTC has many names; what they
    share is that they never had another time: a place had one of its own before there were zones.
    """
    name = name.strip().removeprefix(":")
    found = zone(name)
    instants = (datetime(1800, 1, 1), datetime(2026, 1, 1), datetime(2026, 7, 1))
    if all(found.utcoffset(instant) == timedelta(0) for instant in instants):
        raise ValueError("is UTC, where challenges are never cleared: name the zone of a place, such as Europe/Berlin")
    return name
