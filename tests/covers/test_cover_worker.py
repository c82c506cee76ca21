"""What readings call for, worked off beside the Lanes."""

import os
from hashlib import sha256
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from bookmark_appliance.clock import SystemClock
from bookmark_appliance.covers.cover_worker import AT_ONCE, CoverWorker
from bookmark_appliance.covers.image_type import CoverRefused, Image
from bookmark_appliance.database import Database
from bookmark_appliance.lanes.outcome import Judgement, Outcome
from bookmark_appliance.lanes.page_errors import BrowserLost
from bookmark_appliance.lanes.request_slots import RequestSlots
from bookmark_appliance.lanes.series_read import BeforeRequest
from bookmark_appliance.lanes.site import Reading
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.page import Page
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.series import lock_series
from tests.covers.shelf import KEY, OTHER, SOURCE, Shelf, address_of, picture
from tests.lanes.fakes import TrioClock
from tests.serving_process import eventually

KAGANE = SeriesKey("kagane", "three")
NOVEL = SeriesKey("novelfull", "four")
KAGANE_IMAGE = f"https://kagane.to/api/v2/image/{'0' * 36}/compressed"


class Hosts:
    """Both ways to an image, answering from a table; anything else is refused."""

    def __init__(self) -> None:
        self.images: dict[str, Image] = {}
        self.plainly: list[str] = []
        self.in_browser: list[str] = []
        self.open = trio.Event()
        self.open.set()
        self.waiting = 0

    async def fetch(self, address: str, before_request: BeforeRequest) -> Image:
        """As CoverFetcher.fetch."""
        await before_request()
        self.plainly.append(address)
        self.waiting += 1
        await self.open.wait()
        self.waiting -= 1
        if address not in self.images:
            raise CoverRefused("status 404")
        return self.images[address]

    async def fetch_image(self, address: str, before_request: BeforeRequest) -> Page:
        """As BrowserFetcher.fetch_image."""
        await before_request()
        self.in_browser.append(address)
        if address not in self.images:
            raise BrowserLost("gone")
        return Page(200, {"content-type": "image/png"}, self.images[address].body, address)


class Work:
    """A worker at its work."""

    def __init__(self, shelf: Shelf, hosts: Hosts, *, browser: bool = True, plain: bool = True) -> None:
        slots = RequestSlots(shelf.database, SystemClock())
        self.shelf = shelf
        self.hosts = hosts
        self.worker = CoverWorker(
            SITES,
            shelf.keeper,
            slots,
            SystemClock(),
            hosts if plain else None,  # type: ignore[arg-type]
            hosts.fetch_image if browser else None,
        )

    async def read(
        self, key: SeriesKey, cover: str | None, *, forced: bool = False, outcome: Outcome = Outcome.SUCCESS
    ) -> None:
        """Let it hear of a reading that published `cover`."""
        async with self.shelf.database.transaction() as connection:
            stored = await lock_series(connection, key)
        assert stored is not None
        self.worker.take(key, stored, Judgement(outcome, Reading(cover=cover)), forced)

    async def through(self) -> None:
        """Run the worker until nothing waits for it."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.worker.run)
            await eventually(lambda: self.worker.idle)
            nursery.cancel_scope.cancel()


@pytest.fixture
async def shelf(database: Database, tmp_path: Path) -> Shelf:
    """An empty one, and four Series without covers, each at a Site of its own."""
    shelf = Shelf(database, tmp_path)
    await shelf.add_series(KEY, OTHER, KAGANE, NOVEL)
    return shelf


@pytest.fixture
def hosts() -> Hosts:
    """Nothing stands there yet."""
    return Hosts()


async def test_a_reading_with_a_cover_gives_its_series_one(shelf: Shelf, hosts: Hosts) -> None:
    """COV-001, COV-011: the page's cover becomes ours; while the Series has one, no further reading fetches."""
    hosts.images[SOURCE] = picture("a")
    work = Work(shelf, hosts)
    for _ in range(3):
        await work.read(KEY, SOURCE)
        await work.through()
    assert await shelf.address() == address_of(picture("a"))
    assert hosts.plainly == [SOURCE]


async def test_it_clears_up_what_it_can(shelf: Shelf, hosts: Hosts, caplog: pytest.LogCaptureFixture) -> None:
    """COV-018, COV-012: what a killed process left behind an hour ago or longer; a folder that can't be read is one
    line and keeps no cover from being got."""
    (shelf.folder / "aa").symlink_to("aa")
    left = shelf.folder / "ab" / "cd" / ".new-0123456789abcdef"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    os.utime(left, (1, 1))
    hosts.images[SOURCE] = picture("a")
    work = Work(shelf, hosts)
    await work.read(KEY, SOURCE)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work.worker.run)
        await eventually(lambda: work.worker.idle and not left.exists())
        nursery.cancel_scope.cancel()
    assert await shelf.address() == address_of(picture("a"))
    [record] = caplog.records
    assert "Too many levels of symbolic links" in record.getMessage()


async def test_a_failure_is_logged_and_the_next_poll_tries_again(
    shelf: Shelf, hosts: Hosts, caplog: pytest.LogCaptureFixture
) -> None:
    """COV-005, COV-012, COV-013: under the Series' key; the stored source is tried again even without a page."""
    work = Work(shelf, hosts)
    await work.read(KEY, SOURCE)
    await work.through()
    assert caplog.messages == ["asura:one: no cover: status 404"]
    assert await shelf.address() == ""
    await shelf.sql("UPDATE series SET cover = %s WHERE site = 'asura'", SOURCE)
    hosts.images[SOURCE] = picture("a")
    await work.read(KEY, None, outcome=Outcome.ERRORS)
    await work.through()
    assert await shelf.address() == address_of(picture("a"))


async def test_a_forced_poll_takes_what_the_page_shows_now(shelf: Shelf, hosts: Hosts) -> None:
    """COV-014, COV-031: replaced, and the old object reclaimed, also when an ordinary need was waiting already."""
    old = await shelf.keep(picture("a"))
    newer = "https://cdn.asurascans.com/newer.webp"
    hosts.images = {SOURCE: picture("a"), newer: picture("b")}
    work = Work(shelf, hosts)
    await work.read(KEY, newer)
    await work.read(KEY, newer, forced=True)
    await work.through()
    assert await shelf.address() == address_of(picture("b")) != old
    assert await shelf.rows() == {address_of(picture("b"))}


async def test_an_object_under_the_old_address_is_adopted_unasked(shelf: Shelf, hosts: Hosts) -> None:
    """COV-011: what the earlier deployment stored under the hash of the source costs no fetch."""
    old = sha256(SOURCE.encode()).hexdigest()
    await shelf.files.run(shelf.files.install, old, picture("a").body)
    await shelf.sql("INSERT INTO covers VALUES (%s, %s, 'image/jpeg')", old, f"{old[:2]}/{old[2:4]}/{old}")
    work = Work(shelf, hosts)
    await work.read(KEY, SOURCE)
    await work.through()
    assert (await shelf.address(), hosts.plainly) == (old, [])


async def test_the_shape_of_the_address_names_the_route(
    shelf: Shelf, hosts: Hosts, caplog: pytest.LogCaptureFixture
) -> None:
    """COV-008, COV-009, COV-010, BRO-013: kagane's through the browser alone, novelfull's plainly; never the other."""
    novel_image = "https://novelfull.com/uploads/webp/novel/a.webp"
    hosts.images = {KAGANE_IMAGE: picture("a"), novel_image: picture("b")}
    work = Work(shelf, hosts, browser=False)
    await work.read(KAGANE, KAGANE_IMAGE)
    await work.through()
    assert caplog.messages == ["kagane:three: no cover: it is read through a browser, and there is none"]
    work = Work(shelf, hosts)
    await work.read(KAGANE, KAGANE_IMAGE)
    await work.read(NOVEL, novel_image)
    await work.through()
    assert (hosts.in_browser, hosts.plainly) == ([KAGANE_IMAGE], [novel_image])
    assert await shelf.address(KAGANE) == address_of(picture("a"))
    assert await shelf.address(NOVEL) == address_of(picture("b"))


async def test_without_the_plain_client_it_says_so(
    shelf: Shelf, hosts: Hosts, caplog: pytest.LogCaptureFixture
) -> None:
    """COV-010: a missing way is a logged error and nothing else is tried."""
    work = Work(shelf, hosts, plain=False)
    await work.read(KEY, SOURCE)
    await work.through()
    assert caplog.messages == ["asura:one: no cover: the plain client could not be built"]
    assert hosts.in_browser == []


async def test_what_the_browser_or_the_folder_refuses_ends_nothing(
    shelf: Shelf, hosts: Hosts, caplog: pytest.LogCaptureFixture
) -> None:
    """COV-012: a lost browser and a folder that is a file are one line each; the worker goes on."""
    hosts.images[SOURCE] = picture("a")
    work = Work(shelf, hosts)
    (shelf.folder / address_of(picture("a"))[:2]).write_text("in the way")
    await work.read(KAGANE, KAGANE_IMAGE)
    await work.read(KEY, SOURCE)
    await work.through()
    assert sorted(message.partition(" ")[0] for message in caplog.messages) == ["asura:one:", "kagane:three:"]
    assert await shelf.address() == ""
    hosts.images[SOURCE] = picture("c")
    await work.read(KEY, SOURCE)
    await work.through()
    assert await shelf.address() == address_of(picture("c"))


async def test_few_at_once_and_each_series_once(shelf: Shelf, hosts: Hosts) -> None:
    """LANE-053: hosts that hang hold two covers up and no reading; a Series that waits is not taken in twice."""
    hosts.open = trio.Event()
    work = Work(shelf, hosts)
    keys = (KEY, OTHER, NOVEL, SeriesKey("demonic", "five"))
    await shelf.add_series(keys[3])
    for key in keys * 2:
        await work.read(key, f"https://covers.example/{key.site}")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work.worker.run)
        await eventually(lambda: hosts.waiting == AT_ONCE)
        assert len(hosts.plainly) == AT_ONCE
        hosts.open.set()
        await eventually(lambda: work.worker.idle)
        nursery.cancel_scope.cancel()
    assert sorted(hosts.plainly) == sorted(f"https://covers.example/{key.site}" for key in keys)


@pytest.fixture
async def slots(autojump_clock: MockClock, blocking_database: Database) -> RequestSlots:
    """Of one process."""
    return RequestSlots(blocking_database, TrioClock())


async def test_covers_keep_the_second_and_leave_the_gap(autojump_clock: MockClock, slots: RequestSlots) -> None:
    """LANE-019, LANE-053, LANE-056: a second from whatever was asked last; the Lane's gap counts from its own fetch."""
    began = trio.current_time()
    moments = []

    async def took() -> None:
        moments.append(round(trio.current_time() - began, 2))

    held = await slots.take("asura", 10_000)
    await held()
    await took()
    for _ in range(2):
        await slots.take_for_cover("asura", elsewhere=False)
        await took()
    await slots.take_for_cover("comix", elsewhere=False)
    await took()
    await (await slots.take("asura", 10_000))()
    await took()
    await slots.take_for_cover("asura", elsewhere=False)
    await took()
    await (await slots.take("asura"))()
    await took()
    assert moments == [0, 1.1, 2.2, 2.2, 10, 11.1, 12.2]


async def test_of_two_processes_a_cover_keeps_the_second_as_well(
    autojump_clock: MockClock, blocking_database: Database
) -> None:
    """LANE-056: decided by the row, whoever asked what."""
    clock = TrioClock()
    began = trio.current_time()
    await RequestSlots(blocking_database, clock).take_for_cover("asura", elsewhere=False)
    await (await RequestSlots(blocking_database, clock).take("asura"))()
    await RequestSlots(blocking_database, clock).take_for_cover("asura", elsewhere=False)
    assert round(trio.current_time() - began, 2) == 2.2


async def test_covers_elsewhere_are_no_affair_of_the_lane(autojump_clock: MockClock, slots: RequestSlots) -> None:
    """LANE-053, LANE-056: at a floor of 1.1 s a Lane has no second to spare; these keep theirs among themselves."""
    began = trio.current_time()
    covers, polls = [], []

    async def get_covers() -> None:
        for _ in range(4):
            await slots.take_for_cover("asura", elsewhere=True)
            covers.append(round(trio.current_time() - began, 2))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(get_covers)
        for _ in range(4):
            await (await slots.take("asura"))()
            polls.append(round(trio.current_time() - began, 2))
    assert covers == polls == [0, 1.1, 2.2, 3.3]
