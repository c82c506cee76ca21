"""What a page came with is kept with what it said, and asked for changes only where that is safe."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

from bookmark_appliance.bookmark_put import BookmarkPut
from bookmark_appliance.lanes.page_errors import TransportFailure
from bookmark_appliance.page import Page
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.owner_acts import correct_latest, repair_series_url
from tests.lanes.conftest import World
from tests.lanes.fakes import Answer, answer, asura_page, asura_url, hold_series, passes, series_value
from tests.lanes.test_sightings import put

KEY = SeriesKey("asura", "s")
URL = asura_url("s")
NOT_MODIFIED = answer(304)
SENT = {"If-None-Match": '"abc"', "If-Modified-Since": "Mon, 02 Nov 2026 10:00:00 GMT"}


VALIDATORS = {"etag": SENT["If-None-Match"], "last-modified": SENT["If-Modified-Since"]}


def page(
    number: float | None = 181,
    headers: dict[str, str] = VALIDATORS,
    *,
    truncated: bool = False,
    completed: bool = False,
) -> Page:
    return replace(asura_page(URL, number, completed=completed), headers=headers, truncated=truncated)


async def sql(world: World, statement: str) -> list[tuple[object, ...]]:
    async with world.database.connection() as connection:
        cursor = await connection.execute(statement.encode())
        return await cursor.fetchall() if cursor.description else []


async def hold(world: World) -> None:
    await hold_series(world.database, world.readers[0], "s")
    await sql(world, "UPDATE series SET cover_address = repeat('a', 64)")


async def poll(world: World, *answers: Answer) -> list[dict[str, str]]:
    """A pass an hour with each of these answers; the validators that each of them was asked with."""
    world.fetcher.script(URL, *answers)
    before = len(world.fetcher.headers)
    for _ in answers:
        await world.lane().run_pass()
        await trio.sleep(3600)
    return world.fetcher.headers[before:]


@pytest.mark.parametrize(
    ("headers", "asked"),
    [
        (VALIDATORS, SENT),
        ({"etag": 'W/"x"'}, {"If-None-Match": 'W/"x"'}),
        ({"last-modified": "then"}, {"If-Modified-Since": "then"}),
        ({}, {}),
    ],
)
async def test_a_page_with_validators_is_asked_for_changes_next_time(
    autojump_clock: MockClock, world: World, headers: dict[str, str], asked: dict[str, str]
) -> None:
    """LANE-055: with what it came with, as it came; a new page brings its own."""
    await hold(world)
    assert await poll(world, page(181, headers), NOT_MODIFIED) == [{}, asked]
    world.fetcher.answers.clear()
    assert await poll(world, page(182, {"etag": '"new"'}), NOT_MODIFIED) == [asked, {"If-None-Match": '"new"'}]


async def test_an_unchanged_page_is_the_same_reading_again(autojump_clock: MockClock, world: World) -> None:
    """LANE-055, FAIL-004, LANE-050: a success that ends a run of failures, and still says completed."""
    await hold(world)
    await poll(world, page(completed=True), answer(500), NOT_MODIFIED)
    rows = await passes(world.database)
    assert [row["errors"] for row in rows] == [0, 1, 0]
    assert await sql(world, "SELECT FROM poll_failures") == []
    assert await series_value(world.database, "s", "site_completed_at") != 0
    assert await series_value(world.database, "s", "latest_chapter") == "Chapter 181"


async def test_an_unchanged_page_judges_a_raise(
    autojump_clock: MockClock, world: World, credentials: list[bytes]
) -> None:
    """LANE-055, SIG-010: the number of the kept page corrects a Sighting as the page would."""
    await hold(world)
    await poll(world, page())
    await put(world, credentials[0], BookmarkPut(KEY, latest_chapter_num=796))
    await sql(world, "UPDATE series SET latest_sighted_at = 0")
    assert await poll(world, NOT_MODIFIED) == [SENT]
    assert await series_value(world.database, "s", "latest_chapter_num") == 181
    assert await sql(world, "SELECT max(sighting_disagreements) FROM readers") == [(1,)]


async def test_an_unchanged_page_overrules_a_correction(autojump_clock: MockClock, world: World) -> None:
    """LANE-055, SER-015: retractions and Corrections are judged by the kept reading."""
    await hold(world)
    await poll(world, page())
    async with world.database.connection() as connection:
        await correct_latest(connection, KEY, 12, world.clock.now_ms())
    await poll(world, NOT_MODIFIED)
    assert await series_value(world.database, "s", "latest_chapter_num") == 181
    assert await series_value(world.database, "s", "latest_corrected_at") == 0


async def force(world: World) -> None:
    await sql(world, f"UPDATE series SET force_poll_at = {world.clock.now_ms()}")


async def lose_cover(world: World) -> None:
    await sql(world, "UPDATE series SET cover_address = ''")


async def doubt(world: World) -> None:
    await sql(world, "UPDATE series SET doubtful_at = 1, doubtful_chapter_num = 900")


async def repair(world: World) -> None:
    async with world.database.connection() as connection:
        await repair_series_url(connection, KEY, asura_url("elsewhere"))


async def renew_reader(world: World) -> None:
    await sql(world, "UPDATE page_validators SET reader_version = 0")


@pytest.mark.parametrize("change", [force, lose_cover, doubt, repair, renew_reader])
async def test_the_page_is_asked_for_whole(
    autojump_clock: MockClock, world: World, change: Callable[[World], Awaitable[None]]
) -> None:
    """LANE-055: forced, without a Cover, with a doubtful reading, after a URL repair, under a new reader."""
    await hold(world)
    await poll(world, page())
    await change(world)
    await world.lane().run_pass()
    assert world.fetcher.headers == [{}, {}]


@pytest.mark.parametrize(
    ("between", "asked"),
    [
        (answer(403), {}),
        (replace(answer(200), headers={"cf-mitigated": "challenge"}), {}),
        (answer(404), {}),
        (page(None), {}),
        (page(truncated=True), {}),
        (TransportFailure("no answer in time"), SENT),
        (answer(502), SENT),
    ],
)
async def test_what_was_kept_is_forgotten_with_a_page_that_says_otherwise(
    autojump_clock: MockClock, world: World, between: Answer, asked: dict[str, str]
) -> None:
    """LANE-055: after a challenge, a missing page or a parse failure; no answer leaves it. A cut page keeps nothing."""
    await hold(world)
    assert await poll(world, page(), between, page()) == [{}, SENT, asked]


async def test_a_304_that_nobody_asked_for_is_an_error(autojump_clock: MockClock, world: World) -> None:
    """LANE-055, LANE-027: there is no reading that it could stand for."""
    await hold(world)
    await poll(world, NOT_MODIFIED)
    (row,) = await passes(world.database)
    assert [row["checked"], row["errors"]] == [1, 1]


async def test_a_page_read_through_the_browser_keeps_no_validators(autojump_clock: MockClock, world: World) -> None:
    """LANE-055: the plain route alone, and none are sent there that a plain read has kept."""
    world = replace(world, browser=world.fetcher)
    url = "https://novelfull.com/some-book.html"
    await hold_series(world.database, world.readers[0], "some-book", site="novelfull", url=url)
    body = b"<h3 class='title'>B</h3><a href='/some-book/chapter-7.html'>Chapter 7</a>"
    world.fetcher.script(url, Page(200, {"etag": '"abc"'}, body, url))
    await world.lane("novelfull").run_pass()
    assert await series_value(world.database, "some-book", "latest_chapter_num", "novelfull") == 7
    assert await sql(world, "SELECT * FROM page_validators") == []

    await sql(world, "UPDATE series SET latest_checked_at = 0, cover_address = repeat('a', 64)")
    plain = replace(world, browser=None)
    await plain.lane("novelfull").run_pass()
    assert await sql(world, "SELECT etag FROM page_validators") == [('"abc"',)]
    await sql(world, "UPDATE series SET latest_checked_at = 0")
    await world.lane("novelfull").run_pass()
    assert world.fetcher.headers == [{}, {}, {}]
