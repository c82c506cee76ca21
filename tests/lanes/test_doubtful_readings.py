"""A number too far from the stored one waits for a second reading: the rows and the Lane around the decision."""

import pytest
import trio
from trio.testing import MockClock

from bookmark_appliance.bookmark_put import BookmarkPut
from bookmark_appliance.clock import HOUR_MS, MINUTE_MS
from bookmark_appliance.lanes.pace import due_terms
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.page import Page
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.due import due_series
from bookmark_appliance.store.owner_acts import correct_latest
from tests.lanes.conftest import World
from tests.lanes.fakes import START_MS, answer, asura_page, asura_url, hold_series, passes, series_value
from tests.lanes.test_sightings import put

KEY = SeriesKey("asura", "s")
URL = asura_url("s")


async def doubt(world: World) -> list[object]:
    columns = ("latest_chapter_num", "doubtful_chapter_num", "doubtful_chapter", "doubtful_at")
    return [await series_value(world.database, "s", column) for column in columns]


async def begin_doubting(world: World, *more: float) -> None:
    """A Lane has read 900 where 181 is stored; it reads `more` after that."""
    await hold_series(world.database, world.readers[0], "s", latest=181, checked_at=START_MS - HOUR_MS)
    world.fetcher.script(URL, *(asura_page(URL, number) for number in (900, *more)))
    await world.lane().run_pass()


async def test_a_doubtful_reading_is_kept_with_its_time_and_read_again_after_five_minutes(
    autojump_clock: MockClock, world: World
) -> None:
    """LANE-054: it counts as a success, shows nobody a new number, and the Lane wakes for it by itself."""
    await begin_doubting(world, 901)
    assert await doubt(world) == [181, 900, "Chapter 900", START_MS]
    (row,) = await passes(world.database)
    assert [row["checked"], row["errors"], row["no_chapter"]] == [1, 0, 0]
    async with world.database.connection() as connection:
        assert await (await connection.execute("SELECT FROM poll_failures")).fetchone() is None

    with trio.move_on_after(10 * 60):
        await world.lane().run()
    assert [at - START_MS for at, _ in world.fetcher.fetched] == [0, 5 * MINUTE_MS]
    assert (await doubt(world))[0] == 901
    assert (await doubt(world))[3] == 0


@pytest.mark.parametrize("then", [answer(404), answer(500), asura_page(URL, None)])
async def test_a_page_that_settles_nothing_is_asked_early_once(
    autojump_clock: MockClock, world: World, then: Page
) -> None:
    """LANE-054: after that the Series has its rest, though the doubt stands; a browser is woken no more for it."""
    await begin_doubting(world)
    world.fetcher.script(URL, then)
    with trio.move_on_after(3 * 3600):
        await world.lane().run()
    minutes = [(at - START_MS) // MINUTE_MS for at, _ in world.fetcher.fetched]
    assert minutes == [0, 5, 65, 125]
    assert (await doubt(world))[1] == 900
    async with world.database.connection() as connection:
        (series,) = await due_series(connection, "asura", due_terms(SITES["asura"], START_MS + 4 * HOUR_MS))
    assert not series.doubtful


async def test_a_reading_as_far_off_the_other_way_is_asked_early_again(autojump_clock: MockClock, world: World) -> None:
    """LANE-054: it is a new doubtful reading, with a time of its own."""
    await begin_doubting(world, 2, 181)
    with trio.move_on_after(30 * 60):
        await world.lane().run()
    assert [(at - START_MS) // MINUTE_MS for at, _ in world.fetcher.fetched] == [0, 5, 10]


async def test_a_doubt_from_a_clock_that_was_ahead_calls_for_no_early_check(
    autojump_clock: MockClock, world: World
) -> None:
    """LANE-054, LANE-058: it would be newer than every check for as long."""
    await begin_doubting(world)
    async with world.database.connection() as connection:
        await connection.execute("UPDATE series SET doubtful_at = %s", (START_MS + 5 * HOUR_MS,))
    world.fetcher.script(URL, answer(404))
    with trio.move_on_after(3600 - 1):
        await world.lane().run()
    assert len(world.fetcher.fetched) == 1


async def test_a_sighting_does_not_put_the_second_reading_off(autojump_clock: MockClock, world: World) -> None:
    """LANE-054, DUE-006: it outranks the deferral of a Series with one Reader."""
    await begin_doubting(world, 900)
    async with world.database.connection() as connection:
        await connection.execute("UPDATE series SET latest_sighted_at = %s", (START_MS,))
    await trio.sleep(5 * 60)
    await world.lane().run_pass()
    assert (await doubt(world))[0] == 900


async def test_the_old_region_drops_it(autojump_clock: MockClock, world: World) -> None:
    """LANE-054: the Site had a bad moment; the Series rests for its hour again."""
    await begin_doubting(world, 182)
    await trio.sleep(5 * 60)
    moment = await world.lane().run_pass()
    assert [(await doubt(world))[0], (await doubt(world))[3]] == [182, 0]
    assert moment == world.clock.now_ms() + HOUR_MS


async def test_a_reader_who_reports_the_number_drops_it(
    autojump_clock: MockClock, world: World, credentials: list[bytes]
) -> None:
    """LANE-054: a person has looked; what they say is judged by the next Poll, after its rest."""
    await begin_doubting(world)
    await put(world, credentials[0], BookmarkPut(KEY, favorite=True))
    assert (await doubt(world))[3] == START_MS, "a PUT that says nothing of the number settles nothing"
    await put(world, credentials[0], BookmarkPut(KEY, latest_chapter_num=182))
    assert [(await doubt(world))[0], (await doubt(world))[3]] == [182, 0]


@pytest.mark.parametrize(("reported", "read"), [(300.0, 2.0), (2.0, 181.0)])
async def test_what_a_reader_reported_is_corrected_at_once_however_far(
    autojump_clock: MockClock, world: World, credentials: list[bytes], reported: float, read: float
) -> None:
    """LANE-054: a raise, and a report lower than the stored number; after that the number is a machine's again."""
    await hold_series(world.database, world.readers[0], "s", latest=181)
    await put(world, credentials[0], BookmarkPut(KEY, latest_chapter_num=reported))
    world.fetcher.script(URL, asura_page(URL, read), asura_page(URL, 900))
    await world.lane().run_pass()
    assert [(await doubt(world))[0], (await doubt(world))[3]] == [read, 0]
    await trio.sleep(3600)
    await world.lane().run_pass()
    assert (await doubt(world))[:2] == [read, 900]


async def test_a_number_that_came_with_a_new_series_is_corrected_at_once(
    autojump_clock: MockClock, world: World, credentials: list[bytes]
) -> None:
    """LANE-054: nobody raised it, and no machine has read it: the first read of the Series is believed."""
    await put(world, credentials[0], BookmarkPut(KEY, title="s", series_url=URL, latest_chapter_num=796))
    await world.acquirer().acquire(KEY)
    assert (await doubt(world))[0] == 181


async def test_a_correction_is_corrected_at_once(autojump_clock: MockClock, world: World) -> None:
    """LANE-054, SER-014: and setting one drops a doubtful reading."""
    await begin_doubting(world, 900)
    async with world.database.connection() as connection:
        await correct_latest(connection, KEY, 12, START_MS)
    assert [(await doubt(world))[0], (await doubt(world))[3]] == [12, 0]
    await trio.sleep(3600)
    await world.lane().run_pass()
    assert (await doubt(world))[0] == 900
