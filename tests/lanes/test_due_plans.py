"""What the Lanes ask about a large Site: by which indexes, how fast, and that the short ways give the right answers."""

import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
import trio

from bookmark_appliance.clock import HOUR_MS
from bookmark_appliance.database import Database
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store import due
from bookmark_appliance.store.readers import Reader
from tests.lanes.fakes import MakeReader, hold_series
from tests.lanes.large_site import DUE, NOW, SERIES, SITE, TERMS, fill, make_all_due

NOISE = 4
"""How much slower than its figure the best of a few tries may be here: other tests run beside this one."""

QUERIES = {
    "due": (due._DUE, {"series_pollable_idx", "series_forced_idx", "series_doubtful_idx", "bookmarks_series_idx"}),
    "many are due": (due._MANY_ARE_DUE, {"series_pollable_idx"}),
    "forced": (due._FORCED, {"series_forced_idx", "bookmarks_series_idx"}),
    "stamp if due": (due._STAMP_IF_DUE, {"series_pkey", "bookmarks_series_idx"}),
    "next due": (
        due._NEXT_DUE,
        {"series_pollable_idx", "series_forced_idx", "series_doubtful_idx", "bookmarks_series_idx"},
    ),
}


async def plan_lines(connection: TrioConnection, query: str) -> list[str]:
    values = {**TERMS.bind(SITE), "series_id": "a-series-of-some-length-1"}
    cursor = await connection.execute(f"EXPLAIN (COSTS OFF) {query}".encode(), values)
    return [line for (line,) in await cursor.fetchall()]


async def best_ms(ask: Callable[[], Awaitable[object]]) -> float:
    took = []
    for _ in range(5):
        began = time.perf_counter()
        await ask()
        took.append((time.perf_counter() - began) * 1_000)
    return min(took)


async def test_queries_over_a_large_site_use_their_indexes_and_keep_their_figures(database: Database) -> None:
    """DUE-001, LANE-017, LANE-044: with 360 of 20,000 due nothing walks the tables; with all due it takes a blink."""
    await fill(database)
    async with database.connection() as connection:
        for name, (query, indexes) in QUERIES.items():
            lines = await plan_lines(connection, query)
            scans = [line.strip() for line in lines if "Scan" in line]
            assert not [scan for scan in scans if "Seq Scan" in scan], (name, lines)
            assert {index for index in indexes if any(index in scan for scan in scans)} == indexes, (name, lines)

        assert DUE - 20 <= len(await due.due_series(connection, SITE, TERMS)) <= DUE
        key = SeriesKey(SITE, "a-series-of-some-length-1")
        assert await best_ms(lambda: due.due_series(connection, SITE, TERMS)) <= 15 * NOISE
        assert await best_ms(lambda: due.next_due_at(connection, SITE, TERMS)) <= 30 * NOISE
        assert await best_ms(lambda: due.forced_series(connection, SITE, TERMS)) <= 5 * NOISE
        assert await best_ms(lambda: due.stamp_if_due(connection, key, TERMS)) <= 5 * NOISE
        assert await best_ms(lambda: due.eligible_count(connection, SITE)) <= 40 * NOISE

        await make_all_due(connection)
        assert not [line for line in await plan_lines(connection, due._DUE_OF_MANY) if "Nested Loop" in line]
        assert len(await due.due_series(connection, SITE, TERMS)) > SERIES * 0.99
        assert await best_ms(lambda: due.due_series(connection, SITE, TERMS)) <= 120 * NOISE
        assert await best_ms(lambda: due.next_due_at(connection, SITE, TERMS)) <= 30 * NOISE


@pytest.mark.parametrize("seed", range(3))
async def test_the_next_due_moment_is_the_first_at_which_anything_is_due(
    database: Database, make_reader: MakeReader, seed: int
) -> None:
    """LANE-017, DUE-004, DUE-006, DUE-008: what a Lane sleeps for and what it polls are one rule, whatever the rows."""
    async with database.transaction() as connection:
        readers = [await make_reader(connection, number) for number in ("1", "2")]
    dice = random.Random(seed)
    for round_number in range(25):
        for number in range(dice.randint(1, 6)):
            await _hold_any(database, readers, dice, f"s{round_number}-{number}")
        async with database.connection() as connection:
            moment = await due.next_due_at(connection, SITE, TERMS)

            async def is_due(at: int, connection: TrioConnection = connection) -> bool:
                return bool(await due.due_series(connection, SITE, replace(TERMS, now=at)))

            if moment is not None and moment > NOW:
                assert await is_due(moment)
                assert not await is_due(moment - 1)
            else:
                assert await is_due(NOW) is (moment is not None)
            await connection.execute("DELETE FROM bookmarks")
            await connection.execute("DELETE FROM series")
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("seed", range(3))
async def test_what_is_due_is_the_same_however_its_holders_are_counted(
    database: Database, make_reader: MakeReader, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """DUE-003, DUE-006, DUE-009, DUE-010: one walk where many are due, one look for each where few are."""
    async with database.transaction() as connection:
        readers = [await make_reader(connection, number) for number in ("1", "2")]
    dice = random.Random(seed)
    for number in range(80):
        await _hold_any(database, readers, dice, f"s{number}")
        await hold_series(database, readers[0], f"s{number}", site="demonic")
    async with database.connection() as connection:
        few = await due.due_series(connection, SITE, TERMS)
        monkeypatch.setattr(due, "_DUE", "not asked")
        monkeypatch.setattr(due, "_MANY_ARE_DUE", due._MANY_ARE_DUE.replace(">= 5000", ">= 1"))
        assert await due.due_series(connection, SITE, TERMS) == few
    assert len(few) > 20
    assert few == sorted(few, key=lambda one: (not one.forced, -one.holders, one.checked_at, one.series_id))


async def _hold_any(database: Database, readers: list[Reader], dice: random.Random, slug: str) -> None:
    """A Series in a state that can be; a stamp from the future is left out, since it is due at once and always."""
    checked_at = dice.choice([0, NOW - dice.randint(0, 8 * HOUR_MS), NOW - dice.randint(0, HOUR_MS)])
    holders = dice.choice([0, 1, 1, 1, 2])
    for reader in readers[: max(holders, 1)]:
        await hold_series(
            database,
            reader,
            slug,
            checked_at=checked_at,
            sighted_at=dice.choice([0, NOW - dice.randint(0, 2 * HOUR_MS)]),
            forced_at=dice.choice([0, 0, 0, checked_at and checked_at - 5, checked_at + 5]),
            finished_at=dice.choice([0, 0, 0, 9]),
        )
    doubtful_at = dice.choice([0, 0, 0, checked_at])
    claim = NOW + dice.randint(1, TERMS.claim) if checked_at == 0 and dice.random() < 0.5 else 0
    async with database.connection() as connection:
        if holders == 0:
            await connection.execute("DELETE FROM bookmarks WHERE series_id = %s", (slug,))
        await connection.execute(
            "UPDATE series SET doubtful_at = %s, acquiring_until = %s WHERE series_id = %s", (doubtful_at, claim, slug)
        )
