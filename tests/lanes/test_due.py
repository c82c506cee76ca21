"""The due query, against the real database."""

from dataclasses import replace

import pytest

from bookmark_appliance.clock import HOUR_MS, MINUTE_MS
from bookmark_appliance.database import Database
from bookmark_appliance.lanes.pace import due_terms
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.store.due import DueTerms, due_series, eligible_count, next_due_at
from bookmark_appliance.store.readers import Reader
from tests.lanes.fakes import START_MS as NOW
from tests.lanes.fakes import MakeReader, hold_series

TERMS = due_terms(SITES["asura"], NOW)


@pytest.fixture
async def readers(database: Database, make_reader: MakeReader) -> list[Reader]:
    async with database.transaction() as connection:
        return [await make_reader(connection, str(number)) for number in (1, 2)]


async def due(database: Database, terms: DueTerms = TERMS) -> list[str]:
    async with database.connection() as connection:
        return [series.series_id for series in await due_series(connection, "asura", terms)]


async def next_due(database: Database, terms: DueTerms = TERMS) -> int | None:
    async with database.connection() as connection:
        return await next_due_at(connection, "asura", terms)


async def test_the_rest_rule_is_inclusive_and_a_stamp_of_zero_is_due(database: Database, readers: list[Reader]) -> None:
    """DUE-001, DUE-004: due when the stamp is at or before now - rest, or was never set; one Site a query."""
    await hold_series(database, readers[0], "never")
    await hold_series(database, readers[0], "just", checked_at=NOW - HOUR_MS)
    await hold_series(database, readers[0], "not-yet", checked_at=NOW - HOUR_MS + 1)
    await hold_series(database, readers[0], "elsewhere", site="demonic")
    assert await due(database) == ["never", "just"]


async def test_without_an_address_or_a_holder_nothing_is_due_forced_or_not(
    database: Database, readers: list[Reader]
) -> None:
    """DUE-002, DUE-003, SER-007: neither an empty address nor an orphan is ever polled."""
    await hold_series(database, readers[0], "no-url", url="")
    await hold_series(database, readers[0], "no-url-forced", url="", forced_at=NOW)
    await hold_series(database, readers[0], "orphan", forced_at=NOW)
    async with database.connection() as connection:
        await connection.execute("DELETE FROM bookmarks WHERE series_id = 'orphan'")
        assert await eligible_count(connection, "asura") == 0
    assert await due(database) == []
    assert await next_due(database) is None


async def test_a_finished_series_is_not_due_and_an_archived_holder_counts(
    database: Database, readers: list[Reader]
) -> None:
    """DUE-005, DUE-015: finished Series leave the queue; a bucket does not."""
    await hold_series(database, readers[0], "finished", finished_at=NOW - 1)
    await hold_series(database, readers[0], "archived")
    async with database.connection() as connection:
        await connection.execute("UPDATE bookmarks SET status = 'archived' WHERE series_id = 'archived'")
        assert await eligible_count(connection, "asura") == 1
    assert await due(database) == ["archived"]


@pytest.mark.parametrize(
    ("checked_ago", "sighted_ago", "is_due"),
    [
        (2 * HOUR_MS, 10 * MINUTE_MS, False),
        (2 * HOUR_MS, HOUR_MS, True),
        (2 * HOUR_MS, HOUR_MS - 1, False),
        (6 * HOUR_MS, MINUTE_MS, True),
        (6 * HOUR_MS - 1, MINUTE_MS, False),
        (2 * HOUR_MS, -2 * MINUTE_MS, True),
    ],
)
async def test_a_sighting_defers_a_solitary_series_for_a_rest_and_no_longer_than_six(
    database: Database, readers: list[Reader], checked_ago: int, sighted_ago: int, is_due: bool
) -> None:
    """DUE-006, SIG-005, SIG-007, SIG-009, LANE-058: held back while the Sighting is fresh, and not by a future one."""
    await hold_series(database, readers[0], "s", checked_at=NOW - checked_ago, sighted_at=NOW - sighted_ago)
    assert (await due(database) == ["s"]) is is_due


async def test_a_second_holder_ends_a_deferral_and_losing_one_restores_it(
    database: Database, readers: list[Reader]
) -> None:
    """DUE-007, SIG-008: deferral is for a Series with exactly one Bookmark, judged anew each time."""
    await hold_series(database, readers[0], "s", checked_at=NOW - 2 * HOUR_MS, sighted_at=NOW - MINUTE_MS)
    await hold_series(database, readers[1], "s")
    assert await due(database) == ["s"]
    async with database.connection() as connection:
        await connection.execute("DELETE FROM bookmarks WHERE reader_id = %s", (readers[1].id,))
    assert await due(database) == []


async def test_a_forced_check_overrides_rest_deferral_and_finished(database: Database, readers: list[Reader]) -> None:
    """DUE-008, DUE-012: forced is strictly newer than the check stamp; a check made since ends it."""
    await hold_series(database, readers[0], "resting", checked_at=NOW - 5, forced_at=NOW - 4)
    await hold_series(database, readers[0], "deferred", checked_at=NOW - 5, forced_at=NOW - 4, sighted_at=NOW - 3)
    await hold_series(database, readers[0], "finished", checked_at=NOW - 5, forced_at=NOW - 4, finished_at=9)
    await hold_series(database, readers[0], "since-checked", checked_at=NOW - 4, forced_at=NOW - 4)
    assert await due(database) == ["deferred", "finished", "resting"]
    assert await next_due(database) == NOW


async def test_the_order_is_forced_then_readers_then_longest_unchecked(
    database: Database, readers: list[Reader]
) -> None:
    """DUE-009, DUE-010: a forced single-Reader Series precedes an overdue two-Reader one."""
    await hold_series(database, readers[0], "one-old", checked_at=100)
    await hold_series(database, readers[0], "two", checked_at=900)
    await hold_series(database, readers[1], "two")
    await hold_series(database, readers[0], "one-older", checked_at=99)
    await hold_series(database, readers[0], "forced", checked_at=NOW - 1, forced_at=NOW)
    assert await due(database) == ["forced", "two", "one-older", "one-old"]


async def test_a_stamp_from_the_future_counts_as_never_checked(database: Database, readers: list[Reader]) -> None:
    """LANE-058: more than 60 s ahead; within that it is a resting Series."""
    await hold_series(database, readers[0], "ahead", checked_at=NOW + MINUTE_MS + 1)
    await hold_series(database, readers[0], "a-little", checked_at=NOW + MINUTE_MS)
    assert await due(database) == ["ahead"]


async def test_a_claimed_series_is_left_to_its_acquisition(database: Database, readers: list[Reader]) -> None:
    """COV-002: not due until the claim ends; a claim longer than one can be was made under another clock."""
    await hold_series(database, readers[0], "claimed")
    async with database.connection() as connection:
        await connection.execute("UPDATE series SET acquiring_until = %s", (NOW + 45_000,))
    assert await due(database) == []
    assert await next_due(database) == NOW + 45_000
    assert await due(database, replace(TERMS, now=NOW + 45_000)) == ["claimed"]
    assert await due(database, replace(TERMS, now=NOW - 1)) == ["claimed"]


@pytest.mark.parametrize(
    ("checked_ago", "sighted_ago", "due_in"),
    [
        (10 * MINUTE_MS, None, 50 * MINUTE_MS),
        (90 * MINUTE_MS, None, -30 * MINUTE_MS),
        (2 * HOUR_MS, 10 * MINUTE_MS, 50 * MINUTE_MS),
        (5 * HOUR_MS + 50 * MINUTE_MS, 10 * MINUTE_MS, 10 * MINUTE_MS),
    ],
)
async def test_the_next_due_moment_follows_rest_and_deferral(
    database: Database, readers: list[Reader], checked_ago: int, sighted_ago: int | None, due_in: int
) -> None:
    """LANE-017: what a Lane sleeps for is the same rule as what it polls."""
    sighted_at = 0 if sighted_ago is None else NOW - sighted_ago
    await hold_series(database, readers[0], "s", checked_at=NOW - checked_ago, sighted_at=sighted_at)
    assert await next_due(database) == NOW + due_in
    at_last = replace(TERMS, now=max(NOW, NOW + due_in))
    assert await due(database, at_last) == ["s"]
