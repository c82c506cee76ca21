"""How often a client may fail: the rule over plain numbers."""

import pytest

from bookmark_appliance.web.sign_in_limit import (
    MOST_FAILURES,
    WINDOW_MS,
    blocked_until,
    limited_client,
    with_failure,
    without_failure,
)

NOW = 1_700_000_000_000
MINUTE = 60_000


def failed_each_minute(times: int) -> list[int]:
    """`times` failures, the last of them now."""
    failures: list[int] = []
    for minute in range(times):
        failures = with_failure(failures, NOW - (times - 1 - minute) * MINUTE)
    return failures


def test_ten_failures_block_until_the_oldest_ages_out() -> None:
    """SES-011: nine don't; the window rolls, so that one attempt comes free at a time."""
    assert blocked_until(failed_each_minute(9), NOW) is None
    failures = failed_each_minute(10)
    until = NOW - 9 * MINUTE + 20 * MINUTE
    assert blocked_until(failures, NOW) == until
    assert blocked_until(failures, until - 1) == until
    assert blocked_until(failures, until) is None
    again = with_failure(failures, until)
    assert blocked_until(again, until) == until + MINUTE


def test_no_more_is_remembered_than_matters() -> None:
    """SES-011: ten at most, however many there were."""
    failures = failed_each_minute(50)
    assert len(failures) == MOST_FAILURES
    assert with_failure(failures, NOW + WINDOW_MS) == [NOW + WINDOW_MS]


def test_a_clock_that_was_set_back_blocks_for_no_longer_than_the_window() -> None:
    """SES-011: what lies in the future is of another time."""
    failures = failed_each_minute(10)
    assert blocked_until(failures, NOW - 24 * 60 * MINUTE) is None


def test_a_failure_that_was_none_is_taken_back_once() -> None:
    """SES-011: and no other with it."""
    assert without_failure([5, 5, 3], 5) == [5, 3]
    assert without_failure([3], 4) == [3]


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("203.0.113.9:4711", "unreadable"),
        ("", "unreadable"),
        ("x" * 5_000, "unreadable"),
    ],
)
def test_a_client_is_an_address_or_a_household_of_them(address: str, client: str) -> None:
    """SES-010, SES-011: whoever has a /64 has no more attempts than whoever has one address."""
    assert limited_client(address) == client
