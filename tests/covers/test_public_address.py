"""Which addresses are of the public internet."""

import pytest

from bookmark_appliance.covers.public_address import public
from tests.covers.attacks import NOT_PUBLIC


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_not_public(address: str) -> None:
    """COV-021, COV-022: local, shared, reserved, and the forms that carry another address."""
    assert not public(address)


@pytest.mark.parametrize(
    "address", ["", "localhost", "127.1", "0x7f.0.0.1", "1.2.3", "[::1]", "8.8.8.8/32", "8.8.8.8 "]
)
def test_what_is_no_address_is_not_public(address: str) -> None:
    """COV-021: as a resolver writes it, or not at all."""
    assert not public(address)


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.1",
        "169.253.255.255",
        "169.255.0.1",
        "172.15.255.255",
        "172.32.0.1",
        "192.0.1.1",
        "192.88.98.1",
        "192.167.255.255",
        "192.169.0.1",
        "198.17.255.255",
        "198.20.0.1",
        "223.255.255.255",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2003::1",
        "2606:4700:4700::1111",
        "2a00:1450:4001:80b::200e",
        "3ffe:ffff::1",
    ],
)
def test_public(address: str) -> None:
    """COV-021: the neighbours of what is refused, and where images are."""
    assert public(address)
