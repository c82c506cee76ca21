"""What the Owner's presses write on a Series, and what they leave alone."""

import pytest
import trio
from trio.testing import MockClock

from bookmark_appliance.bookmark_put import BookmarkPut
from bookmark_appliance.clock import HOUR_MS
from bookmark_appliance.database import Database
from bookmark_appliance.page import Page
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.owner_acts import (
    Removal,
    correct_latest,
    remove_series,
    repair_series_url,
    request_poll,
    set_finished,
)
from bookmark_appliance.store.series import stamp_checked
from tests.lanes.conftest import World
from tests.lanes.fakes import START_MS, MakeReader, answer, asura_page, asura_url, hold_series, passes, series_value
from tests.lanes.test_sightings import put

KEY = SeriesKey("asura", "s")
GONE = SeriesKey("asura", "gone")
URL = asura_url("s")


async def sql(world: World, statement: str) -> list[tuple[object, ...]]:
    async with world.database.connection() as connection:
        cursor = await connection.execute(statement.encode())
        return await cursor.fetchall() if cursor.description else []


async def values(world: World, *columns: str) -> list[object]:
    return [await series_value(world.database, "s", column) for column in columns]


async def test_a_missing_series_is_no_error(autojump_clock: MockClock, world: World) -> None:
    """DUE-011, DUE-014, SER-010, SER-018: a press on what has gone meanwhile does nothing."""
    async with world.database.connection() as connection:
        await request_poll(connection, GONE, START_MS)
        await stamp_checked(connection, GONE, START_MS)
        await set_finished(connection, GONE, START_MS)
        await repair_series_url(connection, GONE, URL)
        await correct_latest(connection, GONE, 5, START_MS)
        assert await remove_series(connection, GONE) is Removal.UNKNOWN
    assert await sql(world, "SELECT FROM series") == []


async def test_asking_again_moves_the_stamp_and_being_checked_ends_it(autojump_clock: MockClock, world: World) -> None:
    """DUE-011, DUE-012: 42 then 99 is 99; it never expires; an attempt that fails ends it all the same."""
    await hold_series(world.database, world.readers[0], "s", checked_at=START_MS - 1)
    async with world.database.connection() as connection:
        for moment in (42, 99):
            await request_poll(connection, KEY, moment)
    assert await values(world, "force_poll_at") == [99]
    async with world.database.connection() as connection:
        await request_poll(connection, KEY, START_MS)
    await trio.sleep(600)
    world.fetcher.script(URL, answer(404))
    for _ in range(2):
        await world.lane().run_pass()
    assert world.fetcher.addresses() == [URL]
    assert await values(world, "force_poll_at") == [START_MS], "pending is derived, nothing is taken back"


async def test_finishing_touches_no_bookmark_and_undoing_puts_the_series_back(
    autojump_clock: MockClock, world: World
) -> None:
    """SER-009, SER-010, SER-011: a stamp of the Series, whatever bucket and Favourite its Bookmarks have."""
    await hold_series(world.database, world.readers[0], "s")
    await hold_series(world.database, world.readers[1], "s")
    await sql(
        world, f"UPDATE bookmarks SET status = 'archived', favorite = TRUE WHERE reader_id = {world.readers[1].id}"
    )
    before = await sql(world, "SELECT * FROM bookmarks ORDER BY reader_id")
    async with world.database.connection() as connection:
        await set_finished(connection, KEY, 77)
    assert await values(world, "finished_at") == [77]
    await world.lane().run_pass()
    assert world.fetcher.fetched == []
    async with world.database.connection() as connection:
        await set_finished(connection, KEY, 0)
    assert await sql(world, "SELECT * FROM bookmarks ORDER BY reader_id") == before
    await world.lane().run_pass()
    assert world.fetcher.addresses() == [URL]


async def test_a_forced_poll_of_a_finished_series_reads_it_once(autojump_clock: MockClock, world: World) -> None:
    """SER-012: the flag is left standing, and nobody reads it again, though it counts as nothing eligible."""
    await hold_series(world.database, world.readers[0], "s", finished_at=77, checked_at=1)
    async with world.database.connection() as connection:
        await request_poll(connection, KEY, START_MS)
    with trio.move_on_after(3 * 3600):
        await world.lane().run()
    assert world.fetcher.addresses() == [URL]
    assert await values(world, "finished_at", "latest_chapter_num") == [77, 181]
    assert [row["skip"] for row in await passes(world.database)][:2] == ["", "nothing-eligible"]


async def test_neither_a_reader_nor_a_site_nor_a_poll_finishes_a_series(
    autojump_clock: MockClock, world: World, credentials: list[bytes]
) -> None:
    """SER-013: the Site's own word is kept apart."""
    await put(world, credentials[0], BookmarkPut(KEY, title="s", series_url=URL, status="archived"))
    await sql(world, "UPDATE series SET acquiring_until = 0")
    world.fetcher.script(URL, asura_page(URL, 181, completed=True))
    await world.lane().run_pass()
    assert await values(world, "finished_at", "site_completed_at") == [0, START_MS]


async def correct(world: World, number: float = 190) -> None:
    await hold_series(world.database, world.readers[0], "s", latest=181)
    await sql(world, f"UPDATE series SET latest_raised_by = {world.readers[0].id}")
    async with world.database.connection() as connection:
        await correct_latest(connection, KEY, number, 55)


@pytest.mark.parametrize(("number", "label"), [(190.0, "Chapter 190"), (12.5, "Chapter 12.5")])
async def test_a_correction_sets_number_label_and_stamp_and_drops_the_raiser(
    autojump_clock: MockClock, world: World, number: float, label: str
) -> None:
    """SER-014: nobody answers for a number that the Owner replaced."""
    await correct(world, number)
    assert await values(world, "latest_chapter_num", "latest_chapter", "latest_corrected_at", "latest_raised_by") == [
        number,
        label,
        55,
        None,
    ]


@pytest.mark.parametrize(("read", "stored"), [(190, 190), (191, 191), (12, 12)])
async def test_a_poll_overwrites_or_confirms_a_correction(
    autojump_clock: MockClock, world: World, read: float, stored: float
) -> None:
    """SER-015, SER-016: never a floor; the same number clears the stamp, for a machine has confirmed it."""
    await correct(world)
    world.fetcher.script(URL, asura_page(URL, read))
    await world.lane().run_pass()
    assert await values(world, "latest_chapter_num", "latest_corrected_at") == [stored, 0]


async def test_a_page_without_a_number_leaves_a_correction(autojump_clock: MockClock, world: World) -> None:
    """SER-015: it is there for Series that no Poll can read."""
    await correct(world)
    world.fetcher.script(URL, asura_page(URL, None))
    await world.lane().run_pass()
    assert await values(world, "latest_chapter_num", "latest_corrected_at") == [190, 55]


@pytest.mark.parametrize("reported", [200.0, 190.0, 12.0])
async def test_a_readers_sighting_overwrites_a_correction(
    autojump_clock: MockClock, world: World, credentials: list[bytes], reported: float
) -> None:
    """SER-015: whatever it says."""
    await correct(world)
    await put(world, credentials[0], BookmarkPut(KEY, latest_chapter_num=reported))
    assert await values(world, "latest_chapter_num", "latest_corrected_at") == [reported, 0]


async def test_a_repaired_address_stays_and_is_what_is_read_next(
    autojump_clock: MockClock, world: World, credentials: list[bytes]
) -> None:
    """SER-017: stored without a fetch; a Reader's PUT cannot change it."""
    await hold_series(world.database, world.readers[0], "s", url="https://asurascans.com/old")
    repaired = asura_url("moved")
    async with world.database.connection() as connection:
        await repair_series_url(connection, KEY, repaired)
    assert world.fetcher.fetched == []
    await put(world, credentials[0], BookmarkPut(KEY, series_url="https://asurascans.com/comics/reader"))
    assert await values(world, "series_url") == [repaired]
    await world.lane().run_pass()
    assert world.fetcher.addresses() == [repaired]


async def test_a_series_without_a_bookmark_is_removed_with_all_that_hangs_on_it(
    autojump_clock: MockClock, world: World
) -> None:
    """SER-018, FAIL-007: its failure row and its kept page go with it."""
    await hold_series(world.database, world.readers[0], "s")
    world.fetcher.script(URL, answer(404))
    await world.lane().run_pass()
    await sql(world, "INSERT INTO page_validators VALUES ('asura', 's', '', 1, '', '', '', 1, '', FALSE)")
    async with world.database.connection() as connection:
        assert await remove_series(connection, KEY) is Removal.HELD
    await sql(world, "DELETE FROM bookmarks")
    async with world.database.connection() as connection:
        assert await remove_series(connection, KEY) is Removal.DONE
    assert await sql(world, "SELECT site FROM series UNION SELECT site FROM poll_failures") == []
    assert await sql(world, "SELECT FROM page_validators") == []


async def test_a_refused_removal_leaves_its_callers_transaction_usable(autojump_clock: MockClock, world: World) -> None:
    """SER-018: a typed outcome and never a database error, also inside a transaction."""
    await hold_series(world.database, world.readers[0], "s")
    async with world.database.transaction() as connection:
        assert await remove_series(connection, KEY) is Removal.HELD
        await set_finished(connection, KEY, 5)
    assert await values(world, "finished_at") == [5]


async def test_a_bookmark_that_is_being_made_wins_over_the_removal(database: Database, make_reader: MakeReader) -> None:
    """SER-018: the removal waits for the other transaction, and then the Series is held."""
    outcomes: list[Removal] = []

    async def remove() -> None:
        async with database.connection() as connection:
            outcomes.append(await remove_series(connection, KEY))

    async with database.transaction() as connection:
        reader = await make_reader(connection, "1")
        await connection.execute("INSERT INTO series (site, series_id) VALUES ('asura', 's')")
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery, database.transaction() as maker:
            await maker.execute(
                "INSERT INTO bookmarks (reader_id, site, series_id, updated_at) VALUES (%s, 'asura', 's', 1)",
                (reader.id,),
            )
            nursery.start_soon(remove)
            async with database.connection() as watcher:
                while not await waits_for_a_lock(watcher):
                    pass
    assert outcomes == [Removal.HELD]


async def waits_for_a_lock(connection: TrioConnection) -> bool:
    cursor = await connection.execute(
        "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    return await cursor.fetchone() is not None


async def test_a_series_that_is_removed_while_it_is_read_is_no_error(autojump_clock: MockClock, world: World) -> None:
    """LANE-044, SER-018: what was read of it goes nowhere."""
    await hold_series(world.database, world.readers[0], "s", checked_at=START_MS - 2 * HOUR_MS)

    async def remove() -> Page:
        await sql(world, "DELETE FROM bookmarks")
        async with world.database.connection() as connection:
            assert await remove_series(connection, KEY) is Removal.DONE
        return answer(404)

    world.fetcher.script(URL, remove)
    await world.lane().run_pass()
    (row,) = await passes(world.database)
    assert [row["checked"], row["not_found"], row["errors"]] == [1, 1, 0]
