"""Sightings end to end: what a Reader's PUT reports, and what the Polls after it make of that."""

import logging

import pytest
import trio
from psycopg import AsyncConnection
from trio.testing import MockClock

from bookmark_appliance.bookmark_put import BookmarkPut
from bookmark_appliance.chapter import Chapter
from bookmark_appliance.clock import HOUR_MS, MINUTE_MS
from bookmark_appliance.database import Database
from bookmark_appliance.lanes.outcome import Judgement, Outcome
from bookmark_appliance.lanes.recording import record_reading
from bookmark_appliance.lanes.series_read import SeriesRead
from bookmark_appliance.lanes.site import Reading
from bookmark_appliance.page import Page
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.bookmarks import put_bookmark
from bookmark_appliance.store.series import SeriesChange, apply_change, lock_series
from bookmark_appliance.store.sightings import clear_marks
from tests.lanes.conftest import World
from tests.lanes.fakes import START_MS, MakeReader, asura_page, asura_url, hold_series, series_value

KEY = SeriesKey("asura", "s")
URL = asura_url("s")


async def put(world: World, credential: bytes, request: BookmarkPut) -> None:
    async with world.database.connection() as connection:
        assert await put_bookmark(connection, credential, request, world.clock.now_ms()) is not None


async def report(world: World, credential: bytes, number: float) -> None:
    await put(world, credential, BookmarkPut(KEY, latest_chapter_num=number))


async def poll(world: World, *numbers: float) -> None:
    """A pass that reads each of `numbers` in turn, after a rest each."""
    for number in numbers:
        await trio.sleep(3600)
        world.fetcher.script(URL, asura_page(URL, number))
        async with world.database.connection() as connection:
            await connection.execute("UPDATE series SET latest_sighted_at = 0")
        before = len(world.fetcher.fetched)
        await world.lane().run_pass()
        assert len(world.fetcher.fetched) == before + 1, "judging costs no request of its own"


async def marks(world: World, reader: int = 0) -> tuple[int, int]:
    """(agreements, disagreements)"""
    async with world.database.connection() as connection:
        cursor = await connection.execute(
            "SELECT sighting_agreements, sighting_disagreements FROM readers WHERE id = %s", (world.readers[reader].id,)
        )
        row = await cursor.fetchone()
    assert row is not None
    return row


async def number_and_raiser(world: World) -> tuple[object, object]:
    number = await series_value(world.database, "s", "latest_chapter_num")
    return number, await series_value(world.database, "s", "latest_raised_by")


async def set_marks(world: World, agreements: int, disagreements: int) -> None:
    async with world.database.connection() as connection:
        await connection.execute(
            "UPDATE readers SET sighting_agreements = %s, sighting_disagreements = %s WHERE id = %s",
            (agreements, disagreements, world.readers[0].id),
        )


async def test_a_contradicted_raise_is_corrected_and_held_against_its_reader(
    autojump_clock: MockClock, world: World, credentials: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    """SIG-010, SIG-011, SIG-018: one disagreement, the streak anew, a line with Reader, Series and both numbers.

    Judged once: the same page at the next Poll holds nothing more against anybody.
    """
    await hold_series(world.database, world.readers[0], "s", latest=290)
    await set_marks(world, 7, 0)
    await report(world, credentials[0], 796)
    assert await number_and_raiser(world) == (796, world.readers[0].id)
    with caplog.at_level(logging.WARNING):
        await poll(world, 296, 296)
    assert await number_and_raiser(world) == (296, None)
    assert await marks(world) == (0, 1)
    (line,) = [record.message for record in caplog.records if "reported" in record.message]
    assert line == f"asura:s: Reader {world.readers[0].id} reported 796, the Site says 296"


@pytest.mark.parametrize("raised_before", [False, True])
async def test_a_page_that_was_asked_for_before_a_report_does_not_judge_it(
    autojump_clock: MockClock, world: World, credentials: list[bytes], raised_before: bool
) -> None:
    """SIG-010, SIG-011: neither a mark nor a lower number; the Series is due again, and the next page judges."""
    await hold_series(world.database, world.readers[0], "s", latest=200, checked_at=1)
    await hold_series(world.database, world.readers[1], "s")
    if raised_before:
        await report(world, credentials[1], 200.5)

    async def report_meanwhile() -> Page:
        await report(world, credentials[0], 201)
        return asura_page(URL, 200)

    world.fetcher.script(URL, report_meanwhile, asura_page(URL, 201))
    await world.lane().run_pass()
    assert await number_and_raiser(world) == (201, world.readers[0].id)
    assert await series_value(world.database, "s", "latest_checked_at") == 1
    await world.lane().run_pass()
    assert await number_and_raiser(world) == (201, None)
    assert [await marks(world), await marks(world, 1)] == [(1, 0), (0, 0)]


async def test_a_new_series_that_is_reported_while_it_is_first_read_is_left_to_its_lane(
    autojump_clock: MockClock, world: World, credentials: list[bytes]
) -> None:
    """SIG-010, COV-004: no check, no judgement."""
    await put(world, credentials[0], BookmarkPut(KEY, title="s", series_url=URL, latest_chapter_num=200))

    async def report_meanwhile() -> Page:
        await report(world, credentials[0], 201)
        return asura_page(URL, 200)

    world.fetcher.script(URL, report_meanwhile)
    await world.acquirer().acquire(KEY)
    assert await number_and_raiser(world) == (201, world.readers[0].id)
    assert await series_value(world.database, "s", "latest_checked_at") == 0
    assert await marks(world) == (0, 0)


async def test_a_confirmed_raise_is_one_agreement_for_its_raiser_alone(
    autojump_clock: MockClock, world: World, credentials: list[bytes]
) -> None:
    """SIG-011, SIG-003: whoever repeats the number earns nothing, and a second Poll adds nothing."""
    await hold_series(world.database, world.readers[0], "s", latest=180)
    await hold_series(world.database, world.readers[1], "s")
    await report(world, credentials[0], 181)
    await report(world, credentials[1], 181)
    await poll(world, 181, 181)
    assert [await marks(world), await marks(world, 1)] == [(1, 0), (0, 0)]
    assert await number_and_raiser(world) == (181, None)


async def test_a_page_ahead_of_the_raise_judges_nobody_and_a_later_retraction_neither(
    autojump_clock: MockClock, world: World, credentials: list[bytes]
) -> None:
    """SIG-012, SIG-013: neither; the attribution is over."""
    await hold_series(world.database, world.readers[0], "s", latest=280)
    await report(world, credentials[0], 290)
    await poll(world, 296, 290)
    assert await number_and_raiser(world) == (290, None)
    assert await marks(world) == (0, 0)


async def test_a_report_that_raised_nothing_judges_nobody(
    autojump_clock: MockClock, world: World, credentials: list[bytes]
) -> None:
    """SIG-013, SIG-003: an equal report, a lower one, and the PUT that makes the Series."""
    await put(world, credentials[0], BookmarkPut(KEY, title="s", series_url=URL, latest_chapter_num=181))
    await poll(world, 180)
    for reported in (180, 170):
        await report(world, credentials[0], reported)
        await poll(world, 179)
    assert await marks(world) == (0, 0)


async def test_a_shared_series_shows_a_report_at_once_and_is_polled_all_the_same(
    autojump_clock: MockClock, world: World, credentials: list[bytes]
) -> None:
    """SIG-006, SIG-004, DUE-007: everyone sees 200 until the Poll resets it to the published 181; Progress stays."""
    for reader in world.readers:
        await hold_series(world.database, reader, "s", latest=181, checked_at=START_MS - 2 * HOUR_MS)
    async with world.database.connection() as connection:
        await connection.execute("UPDATE bookmarks SET last_chapter_num = 5, updated_at = 1000")
    await report(world, credentials[0], 200)
    assert await number_and_raiser(world) == (200, world.readers[0].id)
    await world.lane().run_pass()
    assert world.fetcher.addresses() == [URL]
    assert await number_and_raiser(world) == (181, None)
    async with world.database.connection() as connection:
        cursor = await connection.execute("SELECT last_chapter_num, updated_at FROM bookmarks")
        assert await cursor.fetchall() == [(5, 1000), (5, 1000)]


async def deferred(world: World, credential: bytes, number: float) -> bool:
    """Whether this report puts off the Poll of a Series that is due."""
    async with world.database.connection() as connection:
        await connection.execute(
            "UPDATE series SET latest_checked_at = %s, latest_sighted_at = 0", (world.clock.now_ms() - 2 * HOUR_MS,)
        )
    await report(world, credential, number)
    before = len(world.fetcher.fetched)
    await world.lane().run_pass()
    return len(world.fetcher.fetched) == before


async def test_three_disagreements_end_the_deferring_and_agreements_earn_it_back(
    autojump_clock: MockClock, world: World, credentials: list[bytes]
) -> None:
    """SIG-014, SIG-015: their report still shows at once and is still judged; 20 agreements in a row forgive."""
    await hold_series(world.database, world.readers[0], "s", latest=181)
    for disagreements in range(3):
        assert await deferred(world, credentials[0], 900)
        await poll(world, 181)
        assert await marks(world) == (0, disagreements + 1)
    await report(world, credentials[0], 900)
    assert await number_and_raiser(world) == (900, world.readers[0].id)
    assert not await deferred(world, credentials[0], 900)
    assert await marks(world) == (0, 4)

    await set_marks(world, 18, 4)
    await report(world, credentials[0], 182)
    await poll(world, 182)
    assert await marks(world) == (19, 4)
    world.fetcher.script(URL, asura_page(URL, 183))
    assert not await deferred(world, credentials[0], 183)
    assert await marks(world) == (20, 0)
    assert await deferred(world, credentials[0], 184)


async def test_a_contradiction_between_starts_the_twenty_anew(
    autojump_clock: MockClock, world: World, credentials: list[bytes]
) -> None:
    """SIG-015, SIG-011: in a row means in a row."""
    await hold_series(world.database, world.readers[0], "s", latest=181)
    await set_marks(world, 19, 3)
    await report(world, credentials[0], 900)
    await poll(world, 181)
    await report(world, credentials[0], 182)
    await poll(world, 182)
    assert await marks(world) == (1, 4)


async def test_the_owner_clears_the_marks(autojump_clock: MockClock, world: World, credentials: list[bytes]) -> None:
    """SIG-016: both counters, and the next Sighting defers again; another Reader's marks stay."""
    await hold_series(world.database, world.readers[0], "s", latest=181)
    await set_marks(world, 5, 3)
    async with world.database.connection() as connection:
        await connection.execute("UPDATE readers SET sighting_disagreements = 2 WHERE id = %s", (world.readers[1].id,))
        await clear_marks(connection, world.readers[0].id)
    assert [await marks(world), await marks(world, 1)] == [(0, 0), (0, 2)]
    assert await deferred(world, credentials[0], 181)


async def test_a_deferral_that_was_bought_lasts_out_its_rest(
    autojump_clock: MockClock, world: World, credentials: list[bytes]
) -> None:
    """SIG-017, SIG-005, SIG-009: standing is read when the Sighting is recorded; without more of them it lapses."""
    await hold_series(world.database, world.readers[0], "s", latest=181, checked_at=START_MS - 2 * HOUR_MS)
    await report(world, credentials[0], 181)
    await set_marks(world, 0, 3)
    await trio.sleep(59 * 60)
    await world.lane().run_pass()
    assert world.fetcher.fetched == []
    await trio.sleep(60)
    await world.lane().run_pass()
    assert [at - START_MS for at, _ in world.fetcher.fetched] == [60 * MINUTE_MS]


async def test_two_polls_that_contradict_the_holders_of_each_others_series_do_not_deadlock(
    database: Database, make_reader: MakeReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIG-010, LANE-048: neither raiser holds the Series any more, so no order of the holders alone would do."""
    async with database.transaction() as connection:
        one, other = [await make_reader(connection, number) for number in ("1", "2")]
    written, both = [], trio.Event()

    async def write_and_wait(connection: AsyncConnection, key: SeriesKey, change: SeriesChange, now_ms: int) -> None:
        await apply_change(connection, key, change, now_ms)
        written.append(key.site)
        if len(written) == 2:
            both.set()
        with trio.move_on_after(0.5):
            await both.wait()

    async def contradict(site: str) -> None:
        key = SeriesKey(site, "s")
        async with database.transaction() as connection:
            asked = await lock_series(connection, key)
            assert asked is not None
            read = SeriesRead(Judgement(Outcome.SUCCESS, Reading(Chapter(181, "Chapter 181"))))
            await record_reading(connection, key, read, asked, START_MS)

    for site, holder, raiser in (("asura", one, other), ("demonic", other, one)):
        await hold_series(database, holder, "s", site=site, latest=200)
        async with database.connection() as connection:
            await connection.execute(
                "UPDATE series SET latest_raised_by = %s, latest_by_person = TRUE WHERE site = %s", (raiser.id, site)
            )
    monkeypatch.setattr("bookmark_appliance.lanes.recording.apply_change", write_and_wait)
    async with trio.open_nursery() as nursery:
        for site in ("asura", "demonic"):
            nursery.start_soon(contradict, site)
    assert sorted(written) == ["asura", "demonic"]
