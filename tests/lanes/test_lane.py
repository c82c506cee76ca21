"""Passes of a Lane, in simulated time against the real database."""

import logging
from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock

from bookmark_appliance.clock import DAY_MS, HOUR_MS, MINUTE_MS
from bookmark_appliance.lanes.pace import WIRE_MARGIN_MS
from bookmark_appliance.lanes.page_errors import BrowserLost, TransportFailure
from bookmark_appliance.page import Page
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.lane_passes import RETENTION_MS, LanePass, record_pass
from tests.lanes.conftest import World
from tests.lanes.fakes import START_MS, answer, asura_page, asura_url, hold_series, passes, series_value

GAP_MS = 10_000


def key(slug: str) -> SeriesKey:
    return SeriesKey("asura", slug)


async def set_lane_row(world: World, **columns: int) -> None:
    values = {"paused_until": 0, "refuse_until": 0, **columns}
    async with world.database.connection() as connection:
        await connection.execute(
            """
            INSERT INTO poll_lanes (site, paused_until, refuse_until)
            VALUES ('asura', %(paused_until)s, %(refuse_until)s)
            ON CONFLICT (site) DO UPDATE
            SET paused_until = %(paused_until)s, refuse_until = %(refuse_until)s
            """,
            values,
        )


async def test_five_due_series_come_to_five_outcomes_and_one_number(autojump_clock: MockClock, world: World) -> None:
    """LANE-029, LANE-028, LANE-048, LANE-037: due 5, checked 5, one of each; only the successful one gains a number."""
    slugs = ("refused", "no-chapter", "unfetchable", "transport", "success")
    for slug in slugs:
        url = "https://evil.example/x" if slug == "unfetchable" else None
        await hold_series(world.database, world.readers[0], slug, url=url)
    world.fetcher.script(asura_url("refused"), answer(403))
    world.fetcher.script(asura_url("no-chapter"), asura_page(asura_url("no-chapter"), None))
    world.fetcher.script(asura_url("transport"), TransportFailure("connection refused"))

    await world.lane().run_pass()

    (row,) = await passes(world.database)
    counted = ("due", "checked", "skip", "refused", "no_chapter", "unfetchable", "errors", "not_found", "unreachable")
    assert [row[name] for name in counted] == [5, 5, "", 1, 1, 1, 1, 0, 0]
    assert [row["gap_ms"], row["clamped"]] == [GAP_MS, False]
    numbers = {slug: await series_value(world.database, slug, "latest_chapter_num") for slug in slugs}
    assert numbers == {**dict.fromkeys(slugs), "success": 181}
    assert await series_value(world.database, "success", "latest_chapter") == "Chapter 181"
    assert asura_url("unfetchable") not in world.fetcher.addresses()
    assert len(world.fetcher.fetched) == 4


async def test_failure_rows_begin_go_on_and_end(autojump_clock: MockClock, world: World) -> None:
    """FAIL-001, FAIL-002, FAIL-003, FAIL-004, FAIL-005: the start is kept, the word follows, a success ends the run."""
    await hold_series(world.database, world.readers[0], "s")
    url = asura_url("s")
    world.fetcher.script(url, answer(404), answer(500), answer(403), asura_page(url, 5))
    lane = world.lane()
    seen = []
    for _ in range(4):
        await lane.run_pass()
        async with world.database.connection() as connection:
            seen.append(await (await connection.execute("SELECT outcome, failing_since FROM poll_failures")).fetchall())
        await trio.sleep(3600)
    assert [[word for word, _ in rows] for rows in seen] == [["not_found"], ["errors"], ["errors"], []]
    assert seen[0][0][1] == seen[1][0][1] == seen[2][0][1] == START_MS


async def test_fetches_keep_the_gap_across_passes_restarts_and_acquisitions(
    autojump_clock: MockClock, world: World
) -> None:
    """LANE-019: the gap runs from start to start, however long a fetch takes; a fresh process knows the last one."""
    world.fetcher.seconds = 4
    for number in range(4):
        await hold_series(world.database, world.readers[0], f"s{number}")
    await world.lane().run_pass()
    await hold_series(world.database, world.readers[0], "new")
    await world.acquirer().acquire(key("new"))
    await hold_series(world.database, world.readers[0], "later")
    await world.lane().run_pass()

    starts = [at for at, _ in world.fetcher.fetched]
    gaps = [after - before for before, after in pairwise(starts)]
    assert len(starts) == 6
    assert all(gap >= GAP_MS for gap in [*gaps[:3], gaps[4]]), gaps
    assert 1_000 <= gaps[3] < GAP_MS, "an Acquisition waits only for the floor"
    assert max(gaps) <= GAP_MS + WIRE_MARGIN_MS + 10


async def test_the_stamp_is_visible_at_fetch_time(autojump_clock: MockClock, world: World) -> None:
    """LANE-020, LANE-021: stamped with now, before anything is asked."""
    await hold_series(world.database, world.readers[0], "s")
    stamps = []

    async def look() -> Page:
        stamps.append(await series_value(world.database, "s", "latest_checked_at"))
        return asura_page(asura_url("s"), 1)

    world.fetcher.script(asura_url("s"), look)
    await world.lane().run_pass()
    assert stamps == [START_MS]


async def test_a_cancelled_fetch_gives_its_stamp_back_and_leaves_its_row(
    autojump_clock: MockClock, world: World
) -> None:
    """LANE-020, LANE-037, OPS-007: a cut pass is recorded with what it had, and a restart loses no check."""
    await hold_series(world.database, world.readers[0], "done", checked_at=1)
    await hold_series(world.database, world.readers[0], "cut", checked_at=2)
    world.fetcher.script(asura_url("cut"), trio.sleep_forever)
    with trio.move_on_after(30):
        await world.lane().run_pass()
    assert await series_value(world.database, "done", "latest_checked_at") == START_MS
    assert await series_value(world.database, "cut", "latest_checked_at") == 2
    (row,) = await passes(world.database)
    assert [row["due"], row["checked"], row["errors"]] == [2, 1, 0]


async def test_a_stamp_that_was_changed_meanwhile_is_not_given_back(autojump_clock: MockClock, world: World) -> None:
    """LANE-020: giving back is a compare-and-swap."""
    await hold_series(world.database, world.readers[0], "s", checked_at=2)

    async def change_and_hang() -> Page:
        async with world.database.connection() as connection:
            await connection.execute("UPDATE series SET latest_checked_at = 77")
        await trio.sleep_forever()

    world.fetcher.script(asura_url("s"), change_and_hang)
    with trio.move_on_after(30):
        await world.lane().run_pass()
    assert await series_value(world.database, "s", "latest_checked_at") == 77


async def test_a_stamp_that_cannot_be_written_is_an_error_and_no_fetch(autojump_clock: MockClock, world: World) -> None:
    """LANE-021, LANE-048: the Series counts as an error, the rest of the pass goes on."""
    await hold_series(world.database, world.readers[0], "bad", checked_at=1)
    await hold_series(world.database, world.readers[0], "good", checked_at=2)
    async with world.database.connection() as connection:
        await connection.execute(
            """
            ALTER TABLE series ADD CHECK (series_id <> 'bad' OR latest_checked_at = 1)
            """
        )
    await world.lane().run_pass()
    assert world.fetcher.addresses() == [asura_url("good")]
    (row,) = await passes(world.database)
    assert [row["due"], row["checked"], row["errors"]] == [2, 2, 1]


async def test_a_crash_inside_a_check_is_one_series_error(
    autojump_clock: MockClock, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """LANE-027, LANE-048: logged with its traceback, stamped, counted, and the pass goes on."""
    await hold_series(world.database, world.readers[0], "bad", checked_at=1)
    await hold_series(world.database, world.readers[0], "good", checked_at=2)
    world.fetcher.script(asura_url("bad"), RuntimeError("a bug of ours"))
    await world.lane().run_pass()
    (row,) = await passes(world.database)
    assert [row["checked"], row["errors"]] == [2, 1]
    assert await series_value(world.database, "bad", "latest_checked_at") == START_MS
    assert await series_value(world.database, "good", "latest_chapter_num") == 181
    assert [record.exc_info is not None for record in caplog.records if "crashed" in record.message] == [True]


async def test_two_readers_share_one_fetch_and_both_lists_move(autojump_clock: MockClock, world: World) -> None:
    """LANE-049, LANE-047: one fetch a round; the number is the Series', the Bookmarks' order stays."""
    await hold_series(world.database, world.readers[0], "s")
    await hold_series(world.database, world.readers[1], "s")
    await world.lane().run_pass()
    assert world.fetcher.addresses() == [asura_url("s")]
    async with world.database.connection() as connection:
        cursor = await connection.execute(
            "SELECT latest_chapter_num, updated_at FROM bookmarks JOIN series USING (site, series_id)"
        )
        assert await cursor.fetchall() == [(181, START_MS), (181, START_MS)]


async def test_a_retraction_is_corrected_down(autojump_clock: MockClock, world: World) -> None:
    """LANE-047: the page says less than what is stored."""
    await hold_series(world.database, world.readers[0], "s", latest=183)
    await world.lane().run_pass()
    assert await series_value(world.database, "s", "latest_chapter_num") == 181


async def test_two_refusals_in_a_row_end_the_pass_for_a_quarter_of_an_hour(
    autojump_clock: MockClock, world: World
) -> None:
    """LANE-030, LANE-032, LANE-006: the rest stays due; a fresh process waits the backoff out, then goes on."""
    for number in range(4):
        await hold_series(world.database, world.readers[0], f"s{number}")
        world.fetcher.script(asura_url(f"s{number}"), answer(403), asura_page(asura_url(f"s{number}"), 7))
    await world.lane().run_pass()
    assert len(world.fetcher.fetched) == 2
    refused_at = world.clock.now_ms()

    await trio.sleep(14 * 60)
    await world.lane().run_pass()
    assert len(world.fetcher.fetched) == 2
    await trio.sleep(2 * 60)
    world.fetcher.answers.clear()
    await world.lane().run_pass()
    assert sorted(world.fetcher.addresses()[2:]) == [asura_url("s2"), asura_url("s3")]

    first, declined, last = await passes(world.database)
    assert [first["due"], first["checked"], first["refused"]] == [4, 2, 2]
    assert [declined["skip"], declined["due"], declined["checked"], declined["refused"]] == ["refusing", 4, 2, 0]
    assert [last["skip"], last["due"], last["checked"]] == ["", 2, 2]
    async with world.database.connection() as connection:
        row = await (await connection.execute("SELECT refuse_until FROM poll_lanes WHERE site = 'asura'")).fetchone()
    assert row == (refused_at + 15 * MINUTE_MS,)


async def test_another_outcome_between_two_refusals_starts_the_count_anew(
    autojump_clock: MockClock, world: World
) -> None:
    """LANE-031: refused, not found, refused: the pass goes on to its end."""
    for number, status in enumerate((403, 404, 429, 404)):
        await hold_series(world.database, world.readers[0], f"s{number}", checked_at=number + 1)
        world.fetcher.script(asura_url(f"s{number}"), answer(status))
    await world.lane().run_pass()
    (row,) = await passes(world.database)
    assert [row["checked"], row["refused"], row["not_found"]] == [4, 2, 2]


async def test_retry_after_lengthens_the_backoff(autojump_clock: MockClock, world: World) -> None:
    """LANE-022, LANE-036: the Site asked for an hour; it counts from the second refusal."""
    for number in range(2):
        await hold_series(world.database, world.readers[0], f"s{number}")
        world.fetcher.script(asura_url(f"s{number}"), answer(429, retry_after="3600"))
    moment = await world.lane().run_pass()
    assert moment == world.clock.now_ms() + HOUR_MS


async def test_a_paused_lane_fetches_nothing_and_carries_the_figures_on(
    autojump_clock: MockClock, world: World
) -> None:
    """LANE-005, LANE-038, LANE-042: no fetch, no stamp, the pace is the time left; figures come of the row before."""
    await hold_series(world.database, world.readers[0], "s")
    await set_lane_row(world, paused_until=START_MS + HOUR_MS)
    assert await world.lane().run_pass() == START_MS + HOUR_MS
    assert world.fetcher.fetched == []
    assert await series_value(world.database, "s", "latest_checked_at") == 0
    (row,) = await passes(world.database)
    assert [row["skip"], row["due"], row["gap_ms"]] == ["paused", 0, 0]


async def test_a_pause_acts_on_the_rest_of_a_running_pass(autojump_clock: MockClock, world: World) -> None:
    """LANE-044: no further fetch once the Owner has paused the Lane."""
    for number in range(3):
        await hold_series(world.database, world.readers[0], f"s{number}")

    async def pause() -> Page:
        await set_lane_row(world, paused_until=START_MS + HOUR_MS)
        return asura_page(asura_url("s0"), 1)

    world.fetcher.script(asura_url("s0"), pause)
    await world.lane().run_pass()
    assert world.fetcher.addresses() == [asura_url("s0")]


async def test_what_is_finished_or_dropped_during_a_pass_is_not_fetched(
    autojump_clock: MockClock, world: World
) -> None:
    """LANE-044, SER-011: each Series is asked for again before its fetch."""
    for slug in ("a-first", "finished", "dropped", "z-last"):
        await hold_series(world.database, world.readers[0], slug)

    async def change() -> Page:
        async with world.database.connection() as connection:
            await connection.execute("UPDATE series SET finished_at = 1 WHERE series_id = 'finished'")
            await connection.execute("DELETE FROM bookmarks WHERE series_id = 'dropped'")
        return asura_page(asura_url("a-first"), 1)

    world.fetcher.script(asura_url("a-first"), change)
    await world.lane().run_pass()
    assert world.fetcher.addresses() == [asura_url("a-first"), asura_url("z-last")]


async def test_nothing_eligible_sleeps_for_a_rest(autojump_clock: MockClock, world: World) -> None:
    """LANE-012: recorded as such."""
    assert await world.lane().run_pass() == START_MS + HOUR_MS
    (row,) = await passes(world.database)
    assert [row["skip"], row["due"], row["checked"]] == ["nothing-eligible", 0, 0]


async def test_nothing_due_records_an_empty_skip_and_sleeps_until_something_is(
    autojump_clock: MockClock, world: World
) -> None:
    """LANE-013, LANE-017: the next pass is at the next due moment."""
    await hold_series(world.database, world.readers[0], "s", checked_at=START_MS - 40 * MINUTE_MS)
    assert await world.lane().run_pass() == START_MS + 20 * MINUTE_MS
    (row,) = await passes(world.database)
    assert [row["skip"], row["due"], row["gap_ms"]] == ["", 0, GAP_MS]


async def test_a_site_without_a_route_keeps_its_series_due(autojump_clock: MockClock, world: World) -> None:
    """LANE-008, BRO-018: no browser, no fallback: skipped, unstamped."""
    url = "https://kagane.to/series/019d0001-1111-7001-8222-333344445501"
    await hold_series(world.database, world.readers[0], "k", site="kagane", url=url)
    assert await world.lane("kagane").run_pass() == START_MS + MINUTE_MS
    (row,) = await passes(world.database, "kagane")
    assert [row["skip"], row["due"], row["checked"], row["gap_ms"]] == ["no-fetcher", 0, 0, GAP_MS]
    assert await series_value(world.database, "k", "latest_checked_at", "kagane") == 0


async def test_failed_queries_name_themselves(autojump_clock: MockClock, world: World) -> None:
    """LANE-009, LANE-004: the Lane tries again after 10 s."""
    async with world.database.connection() as connection:
        await connection.execute("ALTER TABLE bookmarks RENAME TO elsewhere")
        await connection.execute("ALTER TABLE poll_lanes RENAME TO lanes_elsewhere")
    assert await world.lane().run_pass() == START_MS + 10_000
    (row,) = await passes(world.database)
    assert [row["skip"], row["due"]] == ["due-query", 0]


async def test_a_lost_browser_ends_the_pass_and_gives_the_stamp_back(autojump_clock: MockClock, world: World) -> None:
    """LANE-023, LANE-033, LANE-028: empty skip, unreachable 1, the check does not count."""
    await hold_series(world.database, world.readers[0], "s", checked_at=3)
    world.fetcher.script(asura_url("s"), BrowserLost("gone"))
    await world.lane().run_pass()
    (row,) = await passes(world.database)
    assert [row["skip"], row["unreachable"], row["checked"]] == ["", 1, 0]
    assert await series_value(world.database, "s", "latest_checked_at") == 3


async def test_more_series_than_seconds_in_a_rest_engage_the_floor(
    autojump_clock: MockClock, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """LANE-018: clamped, said in the row and in the log."""
    async with world.database.transaction() as connection:
        await connection.execute(
            """
            INSERT INTO series (site, series_id, series_url, latest_checked_at)
            SELECT 'asura', n::text, 'https://asurascans.com/comics/s' || n || '-4be1c07a', %s
            FROM generate_series(1, 3601) AS n
            """,
            (START_MS - 1,),
        )
        await connection.execute(
            "INSERT INTO bookmarks (reader_id, site, series_id, updated_at) SELECT %s, site, series_id, 1 FROM series",
            (world.readers[0].id,),
        )
    await world.lane().run_pass()
    (row,) = await passes(world.database)
    assert [row["gap_ms"], row["clamped"]] == [1_000, True]
    assert any("asura" in record.message and record.levelno == logging.WARNING for record in caplog.records)


async def test_a_chapter_published_later_appears_after_the_next_poll(autojump_clock: MockClock, world: World) -> None:
    """LANE-002, LANE-017: pass, sleep, repeat; the first pass at once, and the next when the rest is over."""
    url = asura_url("s")
    await hold_series(world.database, world.readers[0], "s")
    world.fetcher.script(url, asura_page(url, 181), asura_page(url, 182))
    with trio.move_on_after(2 * 3600 - 60):
        await world.lane().run()
    assert [at - START_MS for at, _ in world.fetcher.fetched] == [0, HOUR_MS]
    assert await series_value(world.database, "s", "latest_chapter_num") == 182


async def test_a_sleeping_lane_looks_at_its_rows_every_minute_and_records_no_pass_for_it(
    autojump_clock: MockClock, world: World
) -> None:
    """LANE-002, LANE-043, LANE-044: with no word of it, a forced check is seen within 60 s; looks leave no row."""
    await hold_series(world.database, world.readers[0], "s", checked_at=START_MS - 1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.lane().run)
        await trio.sleep(10 * 60)
        assert len(await passes(world.database)) == 1
        async with world.database.connection() as connection:
            await connection.execute("UPDATE series SET force_poll_at = %s", (world.clock.now_ms(),))
        await trio.sleep(61)
        assert world.fetcher.addresses() == [asura_url("s")]
        nursery.cancel_scope.cancel()


async def test_a_nudge_ends_a_sleep_only_when_there_is_something_to_do(autojump_clock: MockClock, world: World) -> None:
    """LANE-002, LANE-044: a wakeup carries no command; the rows do."""
    await hold_series(world.database, world.readers[0], "s", checked_at=START_MS - 1)
    lane = world.lane()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lane.run)
        await trio.sleep(20)
        lane.nudge()
        await trio.sleep(2)
        assert len(await passes(world.database)) == 1
        async with world.database.connection() as connection:
            await connection.execute("UPDATE series SET force_poll_at = %s", (world.clock.now_ms(),))
        lane.nudge()
        await trio.sleep(2)
        assert world.fetcher.addresses() == [asura_url("s")]
        nursery.cancel_scope.cancel()


def row_at(ran_at: int) -> LanePass:
    return LanePass("asura", ran_at, "", 0, 0, GAP_MS, False, 0, 0, 0, 0, 0, 0)


async def test_two_passes_in_one_millisecond_are_two_rows(autojump_clock: MockClock, world: World) -> None:
    """LANE-040: the second takes the next free one."""
    async with world.database.transaction() as connection:
        assert [await record_pass(connection, row_at(START_MS), START_MS) for _ in range(3)] == [
            START_MS,
            START_MS + 1,
            START_MS + 2,
        ]


async def test_rows_older_than_a_fortnight_go_with_the_next_insert(autojump_clock: MockClock, world: World) -> None:
    """LANE-041: any Site's; a row exactly at the cutoff is kept."""
    assert RETENTION_MS == 14 * DAY_MS
    async with world.database.transaction() as connection:
        for ran_at in (99, 100, 200):
            await record_pass(connection, row_at(ran_at), 0)
        await record_pass(connection, row_at(RETENTION_MS + 100), RETENTION_MS + 100)
    assert [row["ran_at"] for row in await passes(world.database)] == [100, 200, RETENTION_MS + 100]
