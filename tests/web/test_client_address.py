"""Whose address a request counts under."""

from ipaddress import ip_network

import pytest

from bookmark_appliance.web.client_address import client_address, is_trusted

TRUSTED = tuple(map(ip_network, ("127.0.0.0/8", "::1/128", "10.0.0.0/8", "fd00::/8")))


@pytest.mark.parametrize(
    ("peer", "lines", "expected"),
    [
        ("198.51.100.7", [], "198.51.100.7"),
        ("198.51.100.7", ["203.0.113.9"], "198.51.100.7"),
        ("10.1.2.3", [], "10.1.2.3"),
        ("10.1.2.3", ["203.0.113.9"], "203.0.113.9"),
        ("10.1.2.3", ["1.1.1.1, 203.0.113.9 "], "203.0.113.9"),
        ("10.1.2.3", ["1.1.1.1", "2.2.2.2,\t203.0.113.9"], "203.0.113.9"),
        ("::ffff:10.1.2.3", ["203.0.113.9"], "203.0.113.9"),
        ("::1", ["2001:db8::5"], "2001:db8::5"),
        ("10.1.2.3", ["1.1.1.1, "], "10.1.2.3"),
        ("", ["203.0.113.9"], ""),
    ],
)
def test_only_a_trusted_proxy_is_believed(peer: str, lines: list[str], expected: str) -> None:
    """SES-010: the last line's right-most entry, trimmed."""
    assert client_address(peer, lines, TRUSTED) == expected


def test_a_peer_without_an_address_is_no_proxy() -> None:
    """SES-010: a Unix socket."""
    assert not is_trusted("<local>", TRUSTED)
