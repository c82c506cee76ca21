"""What happens around a pass while it runs: presses, failures of our own, clocks, other processes."""

from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock

from bookmark_appliance.clock import DAY_MS, HOUR_MS, MINUTE_MS
from bookmark_appliance.database import Database, open_database
from bookmark_appliance.lanes.fault_watch import FaultWatch
from bookmark_appliance.lanes.pace import FLOOR_MS, WIRE_MARGIN_MS, due_terms
from bookmark_appliance.lanes.page_errors import TransportFailure
from bookmark_appliance.lanes.request_slots import FRESH_MS, RequestSlots
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.page import Page
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.due import next_due_at
from bookmark_appliance.store.lane_rows import back_off, count_refusal, pause_lane, resume_lane, take_request_slot
from bookmark_appliance.store.owner_acts import repair_series_url, request_poll
from tests.lanes.conftest import World
from tests.lanes.fakes import START_MS, Answer, answer, asura_page, asura_url, hold_series, passes, series_value

GAP_MS = 10_000


def fetched(world: World) -> list[str]:
    """The Series that were fetched, in order."""
    return [address.removeprefix("https://asurascans.com/comics/")[:-9] for address in world.fetcher.addresses()]


async def sql(world: World, statement: str) -> list[tuple[object, ...]]:
    async with world.database.connection() as connection:
        cursor = await connection.execute(statement.encode())
        return await cursor.fetchall() if cursor.description else []


def presses(world: World, *slugs: str, during: str, answers: Page | None = None) -> None:
    """While `during` is being fetched, the Owner asks for each of `slugs`."""

    async def press() -> Page:
        for slug in slugs:
            async with world.database.connection() as connection:
                await request_poll(connection, SeriesKey("asura", slug), world.clock.now_ms() + 1)
        return answers or asura_page(asura_url(during), 181)

    world.fetcher.script(asura_url(during), press, asura_page(asura_url(during), 181))


@pytest.mark.parametrize(
    ("pressed", "order"),
    [
        (("d",), ["a", "d", "b", "c"]),
        (("resting",), ["a", "resting", "b", "c", "d"]),
        (("finished",), ["a", "finished", "b", "c", "d"]),
        (("a",), ["a", "a", "b", "c", "d"]),
        (("c", "resting"), ["a", "resting", "c", "b", "d"]),
    ],
)
async def test_a_forced_check_is_the_running_passs_next_fetch(
    autojump_clock: MockClock, world: World, pressed: tuple[str, ...], order: list[str]
) -> None:
    """LANE-044, SER-012: at the next gap slot; a Series that this pass has read already too, and none is read twice."""
    for slug in "abcd":
        await hold_series(world.database, world.readers[0], slug, checked_at=1)
    await hold_series(world.database, world.readers[0], "resting", checked_at=START_MS - MINUTE_MS)
    await hold_series(world.database, world.readers[0], "finished", checked_at=START_MS - MINUTE_MS, finished_at=1)
    if "resting" in pressed:
        await hold_series(world.database, world.readers[1], "resting")
    presses(world, *pressed, during="a")
    await world.lane().run_pass()
    assert fetched(world) == order
    moments = [at for at, _ in world.fetcher.fetched]
    assert {after - before for before, after in pairwise(moments)} == {GAP_MS + WIRE_MARGIN_MS}
    (row,) = await passes(world.database)
    assert [row["due"], row["checked"]] == [len(order), len(order)]


async def test_a_forced_series_whose_stamp_cannot_be_written_is_tried_once_a_pass(
    autojump_clock: MockClock, world: World
) -> None:
    """LANE-021, DUE-012: it is still forced, and the rest of the pass gets its turn."""
    for slug in ("a", "bad", "c"):
        await hold_series(world.database, world.readers[0], slug, checked_at=1)
    await sql(world, "UPDATE series SET force_poll_at = 2 WHERE series_id = 'bad'")
    await sql(world, "ALTER TABLE series ADD CHECK (series_id <> 'bad' OR latest_checked_at = 1)")
    await world.lane().run_pass()
    assert fetched(world) == ["a", "c"]
    (row,) = await passes(world.database)
    assert [row["due"], row["checked"], row["errors"]] == [3, 3, 1]


async def test_a_force_stamp_from_a_clock_that_was_ahead_is_one_check(autojump_clock: MockClock, world: World) -> None:
    """DUE-012, SER-012, LANE-058: not one at every gap until that moment; a finished Series is no exception."""
    for slug, finished_at in (("a", 0), ("finished", 1)):
        await hold_series(world.database, world.readers[0], slug, forced_at=START_MS + HOUR_MS, finished_at=finished_at)
    with trio.move_on_after(300):
        await world.lane().run()
    assert fetched(world) == ["a", "finished"]


@pytest.mark.parametrize("says", [asura_page(asura_url("a"), 7), answer(404)])
async def test_an_address_that_is_repaired_during_its_fetch_is_read_at_the_new_one(
    autojump_clock: MockClock, world: World, says: Page
) -> None:
    """SER-017, FAIL-001: what the old page said is nobody's number and nobody's failure; the Series stays due."""
    await hold_series(world.database, world.readers[0], "a", checked_at=1)

    async def repair() -> Page:
        async with world.database.connection() as connection:
            await repair_series_url(connection, SeriesKey("asura", "a"), asura_url("b"))
        return says

    world.fetcher.script(asura_url("a"), repair)
    with trio.move_on_after(60):
        await world.lane().run()
    assert fetched(world) == ["a", "b"]
    assert await series_value(world.database, "a", "latest_chapter_num") == 181
    assert await sql(world, "SELECT * FROM poll_failures") == []


async def test_a_refusal_at_an_address_that_is_repaired_meanwhile_counts(
    autojump_clock: MockClock, world: World
) -> None:
    """LANE-030, SER-017: it is the Site's answer, whatever page was asked for."""
    for slug in "ab":
        await hold_series(world.database, world.readers[0], slug, checked_at=1)

        async def repair(slug: str = slug) -> Page:
            async with world.database.connection() as connection:
                await repair_series_url(connection, SeriesKey("asura", slug), asura_url(slug * 2))
            return answer(403)

        world.fetcher.script(asura_url(slug), repair)
    assert await world.lane().run_pass() == world.clock.now_ms() + 15 * MINUTE_MS


@pytest.mark.parametrize("forced_at", [START_MS - 1, START_MS + HOUR_MS])
async def test_a_forced_check_that_was_cut_is_still_wanted(
    autojump_clock: MockClock, world: World, forced_at: int
) -> None:
    """DUE-011, LANE-020, LANE-058: the check stamp is given back, whatever clock the press was stamped by."""
    await hold_series(world.database, world.readers[0], "a", checked_at=START_MS - MINUTE_MS, forced_at=forced_at)
    world.fetcher.script(asura_url("a"), trio.sleep_forever, asura_page(asura_url("a"), 1))
    with trio.move_on_after(5):
        await world.lane().run_pass()
    with trio.move_on_after(60):
        await world.lane().run()
    assert fetched(world) == ["a", "a"]


async def test_a_pass_that_is_paused_before_its_first_check_is_no_stall(
    autojump_clock: MockClock, world: World
) -> None:
    """LANE-005, LANE-039, LANE-044, FAULT-002: it says why, with the figures it had."""
    await hold_series(world.database, world.readers[0], "a")
    await RequestSlots(world.database, world.clock).take("asura")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.lane().run_pass)
        await trio.sleep(5)
        async with world.database.connection() as connection:
            await pause_lane(connection, "asura", world.clock.now_ms(), HOUR_MS)
    (row,) = await passes(world.database)
    assert [row[name] for name in ("skip", "due", "checked", "gap_ms", "cut")] == ["paused", 1, 0, GAP_MS, False]
    assert await sql(world, "SELECT * FROM fault_episodes") == []


async def test_a_pass_that_is_paused_midway_owes_what_it_left(autojump_clock: MockClock, world: World) -> None:
    """LANE-044, LANE-013, LANE-043: an empty skip, due as it began, and the resume reads the rest."""
    for slug in "abc":
        await hold_series(world.database, world.readers[0], slug, checked_at=1)

    async def pause() -> Page:
        async with world.database.connection() as connection:
            await pause_lane(connection, "asura", world.clock.now_ms(), HOUR_MS)
        return asura_page(asura_url("a"), 1)

    world.fetcher.script(asura_url("a"), pause)
    assert await world.lane().run_pass() == START_MS + HOUR_MS
    (row,) = await passes(world.database)
    assert [row["skip"], row["due"], row["checked"]] == ["", 3, 1]
    async with world.database.connection() as connection:
        await resume_lane(connection, "asura")
    await world.lane().run_pass()
    assert fetched(world) == ["a", "b", "c"]


async def test_a_resume_leaves_the_backoff(autojump_clock: MockClock, world: World) -> None:
    """LANE-043: only the pause is zeroed, 2000/3000 becomes 0/3000."""
    async with world.database.connection() as connection:
        await pause_lane(connection, "asura", 1_500, 500)
        await back_off(connection, "asura", 2_000, 1_000)
        await resume_lane(connection, "asura")
    assert await sql(world, "SELECT paused_until, refuse_until FROM poll_lanes") == [(0, 3_000)]


async def test_a_failure_row_that_cannot_be_written_costs_nothing_else(
    autojump_clock: MockClock, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """FAIL-006: logged, the outcome and what was read stand."""
    for slug in ("a", "b"):
        await hold_series(world.database, world.readers[0], slug, checked_at=1)
    world.fetcher.script(asura_url("b"), answer(404))
    await sql(world, "ALTER TABLE poll_failures RENAME TO elsewhere")
    await world.lane().run_pass()
    (row,) = await passes(world.database)
    assert [row["checked"], row["not_found"], row["errors"]] == [2, 1, 0]
    assert await series_value(world.database, "a", "latest_chapter_num") == 181
    assert caplog.text.count("its failure row could not be written") == 2


async def test_an_error_of_our_own_begins_a_run_of_failures_and_ends_one_of_refusals(
    autojump_clock: MockClock, world: World
) -> None:
    """LANE-027, LANE-031, FAIL-001, FAIL-002: refused, crashed, refused: the pass goes on to its end."""
    failures: tuple[Answer, ...] = (
        answer(403),
        RuntimeError("a bug of ours"),
        answer(403),
        TransportFailure("no answer"),
    )
    for number, failure in enumerate(failures):
        await hold_series(world.database, world.readers[0], f"s{number}", checked_at=number + 1)
        world.fetcher.script(asura_url(f"s{number}"), failure)
    await world.lane().run_pass()
    (row,) = await passes(world.database)
    assert [row["checked"], row["refused"], row["errors"]] == [4, 2, 2]
    assert await sql(world, "SELECT series_id, outcome FROM poll_failures ORDER BY 1") == [
        ("s1", "errors"),
        ("s3", "errors"),
    ]


async def test_a_store_write_that_fails_is_an_error(autojump_clock: MockClock, world: World) -> None:
    """LANE-027, FAIL-002: the page was good and nothing of it could be kept."""
    await hold_series(world.database, world.readers[0], "a")
    await sql(world, "ALTER TABLE series ADD CHECK (latest_chapter_num IS NULL)")
    await world.lane().run_pass()
    (row,) = await passes(world.database)
    assert [row["checked"], row["errors"]] == [1, 1]
    assert await sql(world, "SELECT outcome FROM poll_failures") == [("errors",)]


async def test_a_wakeup_that_comes_while_a_pass_ends_is_not_slept_over(
    autojump_clock: MockClock, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LANE-002, LANE-044: the rows were read already when it came, so they are read again at once."""
    await hold_series(world.database, world.readers[0], "a", checked_at=START_MS - 1)
    lane = world.lane()

    async def press_while_judging(watch: FaultWatch, site_name: str, now_ms: int) -> None:
        if not world.fetcher.fetched:
            async with world.database.connection() as connection:
                await request_poll(connection, SeriesKey("asura", "a"), now_ms)
            lane.nudge()

    monkeypatch.setattr(FaultWatch, "judge", press_while_judging)
    with trio.move_on_after(5):
        await lane.run()
    assert fetched(world) == ["a"]


async def test_a_claimed_series_is_no_reason_to_wake_before_its_claim_ends(
    autojump_clock: MockClock, world: World
) -> None:
    """LANE-017, COV-002: forced or not; no pass is recorded for what can't be read yet."""
    await hold_series(world.database, world.readers[0], "a", forced_at=START_MS)
    await sql(world, f"UPDATE series SET acquiring_until = {START_MS + 45_000}")
    async with world.database.connection() as connection:
        assert await next_due_at(connection, "asura", due_terms(SITES["asura"], START_MS)) == START_MS + 45_000
    with trio.move_on_after(60):
        await world.lane().run()
    assert [at - START_MS for at, _ in world.fetcher.fetched] == [45_000]
    assert len(await passes(world.database)) == 2


@pytest.mark.parametrize("wait", ["pause", "backoff", "browser"])
async def test_a_wait_from_a_clock_that_was_ahead_lasts_its_own_length_once(
    autojump_clock: MockClock, world: World, wait: str
) -> None:
    """LANE-058: shortened in the row, so that it runs out instead of being bounded anew at every look."""
    ahead = START_MS + 30 * DAY_MS
    async with world.database.connection() as connection:
        if wait == "pause":
            await pause_lane(connection, "asura", ahead, 2 * HOUR_MS)
        else:
            await count_refusal(connection, "asura")
            await back_off(connection, "asura", ahead, 2 * HOUR_MS)
        if wait == "browser":
            await sql(world, "UPDATE poll_lanes SET refuse_until = 0")
            await connection.execute("INSERT INTO browser_losses (lost_at) VALUES (%s)", (ahead,))
    if wait == "browser":
        await world.lane().run_pass()
        assert await sql(world, "SELECT lost_at FROM browser_losses") == [(START_MS,)]
        return
    for hours_left in (2, 1):
        assert await world.lane().run_pass() == world.clock.now_ms() + hours_left * HOUR_MS
        await trio.sleep(3600)
    await hold_series(world.database, world.readers[0], "a")
    await world.lane().run_pass()
    assert fetched(world) == ["a"]


async def test_what_asks_nothing_costs_no_turn(autojump_clock: MockClock, world: World) -> None:
    """LANE-019, LANE-025, LANE-044: the turn of a Series that was finished or has no way is the next one's."""
    for number, slug in enumerate(("a", "evil", "finished", "dropped", "b")):
        url = "https://evil.example/x" if slug == "evil" else None
        await hold_series(world.database, world.readers[0], slug, checked_at=number + 1, url=url)

    async def change() -> Page:
        await sql(world, "UPDATE series SET finished_at = 1 WHERE series_id = 'finished'")
        await sql(world, "DELETE FROM bookmarks WHERE series_id = 'dropped'")
        return asura_page(asura_url("a"), 1)

    world.fetcher.script(asura_url("a"), change)
    await world.lane().run_pass()
    assert fetched(world) == ["a", "b"]
    (first, _), (second, _) = world.fetcher.fetched
    assert GAP_MS <= second - first <= GAP_MS + WIRE_MARGIN_MS
    (row,) = await passes(world.database)
    assert [row["due"], row["checked"], row["unfetchable"]] == [3, 3, 1]


@pytest.mark.parametrize("wait", ["pause", "backoff"])
@pytest.mark.parametrize("jump_ms", [-30 * DAY_MS, -10 * MINUTE_MS])
async def test_a_clock_that_is_set_back_while_a_lane_waits_lengthens_nothing_beyond_its_own_length(
    autojump_clock: MockClock, world: World, wait: str, jump_ms: int
) -> None:
    """LANE-058, LANE-042, LANE-030: measured on the clock that nobody sets, with the Lane asleep meanwhile."""
    await hold_series(world.database, world.readers[0], "a", checked_at=1)
    length_ms = 20 * MINUTE_MS
    async with world.database.connection() as connection:
        if wait == "pause":
            await pause_lane(connection, "asura", START_MS, length_ms)
        else:
            await count_refusal(connection, "asura")
            await back_off(connection, "asura", START_MS, length_ms)
    began = trio.current_time()
    fetched_after = []

    async def note() -> Page:
        fetched_after.append(trio.current_time() - began)
        return asura_page(asura_url("a"), 1)

    world.fetcher.script(asura_url("a"), note)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.lane().run)
        await trio.sleep(10 * 60)
        world.clock.set_forward_ms = jump_ms
        await trio.sleep(25 * 60)
        nursery.cancel_scope.cancel()
    jumped_at, look = 10 * 60, 60
    assert len(fetched_after) == 1
    assert length_ms / 1_000 <= fetched_after[0] <= jumped_at + length_ms / 1_000 + look


async def test_a_press_is_heard_whatever_the_clock_does(autojump_clock: MockClock, world: World) -> None:
    """DUE-008, DUE-012, LANE-058: an hour ahead, back again, pressed under either clock: one check each."""
    await hold_series(world.database, world.readers[0], "a", checked_at=START_MS - MINUTE_MS)
    lane = world.lane()
    for set_forward_ms in (HOUR_MS, 0, -HOUR_MS):
        world.clock.set_forward_ms = set_forward_ms
        before = len(world.fetcher.fetched)
        async with world.database.connection() as connection:
            await request_poll(connection, SeriesKey("asura", "a"), world.clock.now_ms())
        with trio.move_on_after(45):
            await lane.run()
        assert len(world.fetcher.fetched) == before + 1, set_forward_ms


async def test_two_processes_never_ask_one_site_within_a_second(autojump_clock: MockClock, world: World) -> None:
    """LANE-056: whoever asks and however many; another Site waits for none of it."""
    asked: dict[str, list[int]] = {"asura": [], "demonic": []}

    async def ask(slots: RequestSlots, site: str) -> None:
        for _ in range(3):
            await slots.take(site)
            asked[site].append(world.clock.now_ms())

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            slots = RequestSlots(world.database, world.clock)
            for site in ("asura", "asura", "demonic"):
                nursery.start_soon(ask, slots, site)
    for site, count in (("asura", 12), ("demonic", 6)):
        assert len(asked[site]) == count
        assert min(after - before for before, after in pairwise(asked[site])) >= FLOOR_MS
        assert asked[site][-1] - START_MS <= (count - 1) * (FLOOR_MS + WIRE_MARGIN_MS + 50)


async def test_of_many_who_claim_one_moment_one_gets_it(database: Database, database_url: str) -> None:
    """LANE-056: decided by the row, in real concurrency over several connections."""
    granted = []

    async def claim(pool: Database) -> None:
        async with pool.connection() as connection:
            wait_ms = await take_request_slot(connection, "asura", START_MS, FLOOR_MS, FLOOR_MS)
        granted.append(wait_ms == 0)
        assert wait_ms in (0, FLOOR_MS)

    async with open_database(database_url) as other, trio.open_nursery() as nursery:
        for number in range(24):
            nursery.start_soon(claim, (database, other)[number % 2])
    assert sorted(granted) == [False] * 23 + [True]


@pytest.mark.parametrize("jump_ms", [-DAY_MS, -2 * MINUTE_MS, -5_000, 5_000, DAY_MS])
async def test_a_clock_that_is_set_shortens_no_spacing_and_stretches_none_beyond_twice(
    autojump_clock: MockClock, world: World, jump_ms: int
) -> None:
    """LANE-019, LANE-056, LANE-058: what was granted before the jump counts as ever, however far it went."""
    slots = RequestSlots(world.database, world.clock)
    moments = []
    for _ in range(3):
        held = await slots.take("asura", 10_000)
        await held()
        moments.append(trio.current_time())
        world.clock.set_forward_ms += jump_ms
    waits = [after - before for before, after in pairwise(moments)]
    assert min(waits) >= 10
    assert max(waits) <= 20.1


async def test_a_stamp_of_a_clock_that_was_ahead_counts_as_one_of_now(autojump_clock: MockClock, world: World) -> None:
    """LANE-056, LANE-058: a fresh process does not know when it was; two of them are not granted one moment."""
    await sql(world, f"INSERT INTO site_requests VALUES ('asura', {START_MS + DAY_MS})")
    moments = []

    async def ask() -> None:
        await RequestSlots(world.database, world.clock).take("asura")
        moments.append(world.clock.now_ms() - START_MS)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        nursery.start_soon(ask)
    assert moments[0] >= FLOOR_MS
    assert moments[1] - moments[0] >= FLOOR_MS
    assert moments[1] <= 3 * FLOOR_MS


async def test_a_clock_that_is_set_back_during_a_pass_costs_one_gap_at_most(
    autojump_clock: MockClock, world: World
) -> None:
    """LANE-019, LANE-058: and the gap holds on the clock that nobody sets."""
    for slug in "abcd":
        await hold_series(world.database, world.readers[0], slug, checked_at=1)
    moments = []

    def answers(slug: str, jump_ms: int) -> None:
        async def answer_and_jump() -> Page:
            moments.append(trio.current_time())
            world.clock.set_forward_ms += jump_ms
            return asura_page(asura_url(slug), 1)

        world.fetcher.script(asura_url(slug), answer_and_jump)

    for slug, jump_ms in zip("abcd", (-HOUR_MS, 0, HOUR_MS, 0), strict=True):
        answers(slug, jump_ms)
    await world.lane().run_pass()
    assert fetched(world) == list("abcd")
    waits = [after - before for before, after in pairwise(moments)]
    assert min(waits) >= GAP_MS / 1_000
    assert max(waits) <= 2 * (GAP_MS + WIRE_MARGIN_MS) / 1_000


async def test_a_redirect_hop_takes_a_slot_of_its_own(autojump_clock: MockClock, world: World) -> None:
    """LANE-056: the first request of a read has its slot; each hop after that waits its second."""
    slots = RequestSlots(world.database, world.clock)
    held = await slots.take("asura")
    moments = []
    for _ in range(3):
        await held()
        moments.append(world.clock.now_ms())
    assert moments[0] == START_MS
    assert min(after - before for before, after in pairwise(moments)) >= FLOOR_MS


async def test_a_slot_that_waited_for_its_turn_is_claimed_anew(autojump_clock: MockClock, world: World) -> None:
    """LANE-019, LANE-056: the gap counts from the request that was sent, not from the leave to send it."""
    slots = RequestSlots(world.database, world.clock)
    held = await slots.take("asura", 10_000)
    await trio.sleep(9)
    await held()
    assert world.clock.now_ms() == START_MS + 9_000, "nobody else has asked: there is nothing to wait for"
    await slots.take("asura", 10_000)
    assert world.clock.now_ms() >= START_MS + 19_000


async def test_a_slot_that_has_only_just_passed_is_not_claimed_again(autojump_clock: MockClock, world: World) -> None:
    """LANE-019, LANE-056: for what it takes to write a stamp no second statement; longer would eat up the margin."""
    slots = RequestSlots(world.database, world.clock)
    for used_after_ms, claimed_at in ((FRESH_MS - 5, START_MS), (FRESH_MS + 5, START_MS + 2 * FRESH_MS)):
        held = await slots.take(f"used after {used_after_ms} ms")
        await trio.sleep(used_after_ms / 1_000)
        await held()
        assert (claimed_at,) in await sql(world, "SELECT last_request_at FROM site_requests"), used_after_ms
    assert FRESH_MS <= WIRE_MARGIN_MS / 2


async def test_a_slot_that_another_took_meanwhile_waits_its_gap(autojump_clock: MockClock, world: World) -> None:
    """LANE-019, LANE-045: an Acquisition came between; the Lane's fetch counts its gap from it."""
    slots = RequestSlots(world.database, world.clock)
    held = await slots.take("asura", 10_000)
    await trio.sleep(5)
    await slots.take("asura")
    await held()
    assert world.clock.now_ms() >= START_MS + 15_000


async def test_the_wait_counts_from_when_a_request_leaves(autojump_clock: MockClock, world: World) -> None:
    """LANE-019, LANE-056: a slow handshake brings no two requests nearer, also for whoever waits for it already."""
    slots = RequestSlots(world.database, world.clock)
    moments = []

    async def ask(handshake: float) -> None:
        leaves = await (await slots.take("asura"))()
        await trio.sleep(handshake)
        assert leaves is not None
        leaves()
        moments.append(world.clock.now_ms())

    async with trio.open_nursery() as nursery:
        for handshake in (0.8, 0, 0.5, 0):
            nursery.start_soon(ask, handshake)
            await trio.sleep(0.01)
    assert min(after - before for before, after in pairwise(moments)) >= FLOOR_MS
    leaves = await slots.take_for_cover("asura", elsewhere=False)
    await trio.sleep(0.8)
    leaves()
    await slots.take("asura")
    assert world.clock.now_ms() - START_MS >= moments[-1] - START_MS + 800 + 2 * FLOOR_MS
