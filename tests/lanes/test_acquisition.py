"""The one read at the birth of a Series."""

from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

from bookmark_appliance.clock import HOUR_MS, MINUTE_MS
from bookmark_appliance.lanes.acquisition import AT_ONCE, WAITING_ROOM
from bookmark_appliance.lanes.page_errors import TransportFailure
from bookmark_appliance.page import Page
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.series import ACQUISITION_CLAIM_MS
from tests.lanes.conftest import World
from tests.lanes.fakes import START_MS, FakeFetcher, answer, asura_page, asura_url, hold_series, passes, series_value
from tests.lanes.test_lane import set_lane_row


def key(slug: str, site: str = "asura") -> SeriesKey:
    return SeriesKey(site, slug)


async def claim(world: World, until: int) -> None:
    async with world.database.connection() as connection:
        await connection.execute("UPDATE series SET acquiring_until = %s", (until,))


async def test_a_new_series_gains_its_number_its_cover_source_and_its_stamp(
    autojump_clock: MockClock, world: World
) -> None:
    """COV-001, COV-004: one fetch; stamped after it, and the claim is dropped."""
    await hold_series(world.database, world.readers[0], "s")
    await claim(world, START_MS + 45_000)
    world.fetcher.seconds = 3
    await world.acquirer().acquire(key("s"))
    assert world.fetcher.addresses() == [asura_url("s")]
    columns = ("latest_chapter_num", "latest_chapter", "latest_checked_at", "acquiring_until")
    assert [await series_value(world.database, "s", name) for name in columns] == [
        181,
        "Chapter 181",
        START_MS + 3_000,
        0,
    ]


async def test_a_page_without_facts_still_counts_as_a_check(autojump_clock: MockClock, world: World) -> None:
    """COV-004: stamped even when the page had no facts."""
    await hold_series(world.database, world.readers[0], "s")
    world.fetcher.script(asura_url("s"), asura_page(asura_url("s"), None))
    await world.acquirer().acquire(key("s"))
    assert await series_value(world.database, "s", "latest_checked_at") == START_MS


@pytest.mark.parametrize(
    "failure", [answer(403), answer(404), answer(500), TransportFailure("no answer in time"), RuntimeError("a bug")]
)
async def test_what_fails_is_not_stamped_and_stays_due(
    autojump_clock: MockClock, world: World, failure: Page | Exception
) -> None:
    """COV-004, COV-005, FAIL-008: no number, no stamp, no failure row, no claim; its Lane tries again."""
    await hold_series(world.database, world.readers[0], "s")
    await claim(world, START_MS + 45_000)
    world.fetcher.script(asura_url("s"), failure)
    acquirer = world.acquirer()
    acquirer.offer(key("s"))
    with trio.move_on_after(5):
        await acquirer.run()
    columns = ("latest_chapter_num", "latest_checked_at", "acquiring_until")
    assert [await series_value(world.database, "s", name) for name in columns] == [None, 0, 0]
    async with world.database.connection() as connection:
        assert await (await connection.execute("SELECT FROM poll_failures")).fetchone() is None


async def test_the_lane_leaves_a_claimed_series_alone(autojump_clock: MockClock, world: World) -> None:
    """COV-002, LANE-049: an Acquisition under way and a pass never fetch one page beside each other; one that had to
    wait for its turn claims its Series anew."""
    await hold_series(world.database, world.readers[0], "s")
    await claim(world, START_MS + 10_000)
    world.fetcher.seconds = 20
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.acquirer().acquire, key("s"))
        nursery.start_soon(world.lane().run)
        await trio.sleep(30 * 60)
        nursery.cancel_scope.cancel()
    assert world.fetcher.addresses() == [asura_url("s")]


async def test_a_silent_site_ends_an_acquisition_after_its_claim(autojump_clock: MockClock, world: World) -> None:
    """COV-002, COV-003: 45 s once started; the third begins when one of the two has given up, and not before."""
    slugs = [f"s{number}" for number in range(AT_ONCE + 1)]
    for slug in slugs:
        await hold_series(world.database, world.readers[0], slug)
        world.fetcher.script(
            asura_url(slug), trio.sleep_forever if slug != slugs[-1] else asura_page(asura_url(slug), 7)
        )
    acquirer = world.acquirer()
    for slug in slugs:
        acquirer.offer(key(slug))
    with trio.move_on_after(50):
        await acquirer.run()
    assert sorted(world.fetcher.addresses()) == [asura_url(slug) for slug in slugs]
    assert world.fetcher.fetched[-1] == (START_MS + ACQUISITION_CLAIM_MS, asura_url(slugs[-1]))
    assert [await series_value(world.database, slug, "latest_chapter_num") for slug in slugs] == [None, None, 7]
    assert [await series_value(world.database, slug, "acquiring_until") for slug in slugs] == [0, 0, 0]


async def test_a_held_tab_keeps_no_plain_site_waiting(autojump_clock: MockClock, world: World) -> None:
    """COV-002, BRO-011: one Acquisition at a time goes to the one tab; what is read plainly does not wait behind it."""
    browser = FakeFetcher(world.clock)
    world = replace(world, browser=browser)
    addresses = [f"https://kagane.to/series/019d0001-1111-7001-8222-33334444550{number}" for number in range(3)]
    for address in addresses:
        await hold_series(world.database, world.readers[0], address[-36:], site="kagane", url=address)
        browser.script(address, trio.sleep_forever)
    await hold_series(world.database, world.readers[0], "s")
    acquirer = world.acquirer()
    for address in addresses:
        acquirer.offer(key(address[-36:], "kagane"))
    acquirer.offer(key("s"))
    with trio.move_on_after(50):
        await acquirer.run()
    assert world.fetcher.fetched == [(START_MS, asura_url("s"))]
    assert [address for _, address in browser.fetched] == addresses[:2], "the second once the first has given up"


async def test_offering_never_waits_and_what_has_no_room_is_its_lanes(
    autojump_clock: MockClock, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """COV-002, COV-003: the PUT that made a Series returns whatever the Sites do; its Lane reads it after its claim."""
    acquirer = world.acquirer()
    for number in range(WAITING_ROOM):
        acquirer.offer(key(f"gone{number}"))
    for slug in ("no-room", "none-either"):
        await hold_series(world.database, world.readers[0], slug)
        acquirer.offer(key(slug))
    await claim(world, START_MS + ACQUISITION_CLAIM_MS)
    assert caplog.text.count("too many new Series at once") == 2
    async with trio.open_nursery() as nursery:
        nursery.start_soon(acquirer.run)
        nursery.start_soon(world.lane().run)
        await trio.sleep(60)
        nursery.cancel_scope.cancel()
    assert sorted(world.fetcher.addresses()) == [asura_url("no-room"), asura_url("none-either")]
    assert world.fetcher.fetched[0][0] == START_MS + ACQUISITION_CLAIM_MS


async def test_an_address_or_site_of_no_use_asks_nothing(autojump_clock: MockClock, world: World) -> None:
    """COV-006, COV-008: an unfetchable address, a Site without a route, a Series that has gone."""
    await hold_series(world.database, world.readers[0], "evil", url="https://evil.example/x")
    url = "https://kagane.to/series/019d0001-1111-7001-8222-333344445501"
    await hold_series(world.database, world.readers[0], "k", site="kagane", url=url)
    for one in (key("evil"), key("k", "kagane"), key("gone")):
        await world.acquirer().acquire(one)
    assert world.fetcher.fetched == []


async def test_a_series_that_was_read_while_it_waited_is_not_read_again(
    autojump_clock: MockClock, world: World
) -> None:
    """COV-007: its Lane was quicker."""
    await hold_series(world.database, world.readers[0], "s", checked_at=START_MS - 1)
    await world.acquirer().acquire(key("s"))
    assert world.fetcher.fetched == []


async def test_a_pause_does_not_stop_it_and_a_refusing_site_does(autojump_clock: MockClock, world: World) -> None:
    """LANE-045: the new Series stays due and is read when the Lane goes on."""
    await hold_series(world.database, world.readers[0], "s")
    await set_lane_row(world, refuse_until=START_MS + MINUTE_MS)
    await world.acquirer().acquire(key("s"))
    assert world.fetcher.fetched == []
    await set_lane_row(world, paused_until=START_MS + HOUR_MS)
    await world.acquirer().acquire(key("s"))
    assert world.fetcher.addresses() == [asura_url("s")]


async def test_a_refused_acquisition_counts_towards_the_two_in_a_row(autojump_clock: MockClock, world: World) -> None:
    """LANE-045, LANE-030: whoever asked: the Lane stops after one more."""
    for slug in ("new", "s0", "s1"):
        await hold_series(world.database, world.readers[0], slug)
        world.fetcher.script(asura_url(slug), answer(403))
    await world.acquirer().acquire(key("new"))
    await world.lane().run_pass()
    assert len(world.fetcher.fetched) == 2
    (row,) = await passes(world.database)
    assert row["refused"] == 1
