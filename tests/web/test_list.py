"""GET /bookmarks from bytes made before: the version that says when, the ETag that says what."""

import json
from typing import Any

import pytest
import trio
import trio.testing

from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.store.bookmarks import ListVersion, read_list
from bookmark_appliance.web.list_cache import ListBody, ListCache
from tests.web.conftest import Web


async def test_the_etag_is_of_the_body(web: Web) -> None:
    """API-049: weak; equal for equal bodies, also after a change and its reversal."""
    await web.reader.put("asura:one", last_chapter_num=1, favorite=True)
    first = await web.reader.ask("GET", "/bookmarks")
    assert first.headers["ETag"].startswith('W/"')
    assert first.headers["Cache-Control"] == "private, no-cache"
    assert first.headers["Vary"] == "Authorization, Origin, Accept-Encoding"
    await web.reader.put("asura:one", favorite=False)
    changed = await web.reader.ask("GET", "/bookmarks")
    assert changed.headers["ETag"] != first.headers["ETag"]
    await web.reader.put("asura:one", favorite=True)
    back = await web.reader.ask("GET", "/bookmarks", headers={"Accept-Encoding": "gzip"})
    assert back.headers["ETag"] == first.headers["ETag"]


async def test_an_unchanged_list_is_not_sent_again(web: Web) -> None:
    """API-049: If-None-Match with the tag, its strong spelling, a list of tags, or a star."""
    await web.reader.put("asura:one")
    etag = (await web.reader.ask("GET", "/bookmarks")).headers["ETag"]
    for value in (etag, etag.removeprefix("W/"), f'"other", {etag}', "*"):
        response = await web.reader.ask("GET", "/bookmarks", headers={"If-None-Match": value, "Origin": "x"})
        assert (response.status_code, await response.get_data()) == (304, b"")
        assert response.headers["ETag"] == etag
        assert response.headers["Vary"] == "Authorization, Origin, Accept-Encoding"
    for value in ('"other"', "", "nonsense"):
        response = await web.reader.ask("GET", "/bookmarks", headers={"If-None-Match": value})
        assert response.status_code == 200
    await web.reader.put("asura:one", last_chapter_num=2)
    assert (await web.reader.ask("GET", "/bookmarks", headers={"If-None-Match": etag})).status_code == 200


CHANGES = [
    "UPDATE series SET title = 'New'",
    "UPDATE series SET series_url = 'https://asurascans.com/new'",
    "UPDATE series SET cover_address = 'abc'",
    "UPDATE series SET kind = 'novel'",
    "UPDATE series SET latest_chapter = 'Chapter 9'",
    "UPDATE series SET latest_chapter_num = 9",
    "UPDATE series SET finished_at = 1000",
    "UPDATE bookmarks SET favorite = NOT favorite",
    "UPDATE bookmarks SET last_chapter = 'x'",
    "UPDATE bookmarks SET last_chapter_num = 4",
    "UPDATE bookmarks SET last_chapter_url = 'x'",
    "UPDATE bookmarks SET status = 'archived'",
    "UPDATE bookmarks SET updated_at = 1",
    "INSERT INTO bookmarks (reader_id, site, series_id, updated_at) SELECT id, 'asura', 'two', 1 FROM readers",
    "DELETE FROM bookmarks",
    "TRUNCATE bookmarks",
]


@pytest.mark.parametrize("change", CHANGES)
async def test_no_visible_change_is_missed(web: Web, change: str) -> None:
    """API-006, API-012: whoever writes, by whatever way, every holder's next GET shows it."""
    await web.sql("INSERT INTO series (site, series_id) VALUES ('asura', 'two')")
    for client in (web.reader, web.other):
        await client.put("asura:one", last_chapter_num=3)
    before = [await client.list() for client in (web.reader, web.other)]
    await web.sql(change)
    after = [await client.list() for client in (web.reader, web.other)]
    assert before[0] != after[0]
    assert before[1] != after[1]


async def test_what_does_not_show_bumps_nothing(web: Web) -> None:
    """API-030: the stamps of every Poll must not cost each holder their kept list."""
    await web.reader.put("asura:one", last_chapter_num=3, latest_chapter_num=5)
    versions = await web.sql("SELECT id, list_version FROM readers ORDER BY id")
    await web.sql("UPDATE series SET latest_checked_at = 5, latest_sighted_at = 6, acquiring_until = 7, cover = 'x'")
    await web.reader.put("asura:one", last_chapter_num=3, latest_chapter_num=5)
    await web.other.ask("DELETE", "/bookmarks/asura:one")
    assert await web.sql("SELECT id, list_version FROM readers ORDER BY id") == versions
    await web.other.put("demonic:two")
    mine = "SELECT list_version FROM readers WHERE id = %s"
    assert await web.sql(mine, web.reader_id) == [(dict(versions)[web.reader_id],)]


async def test_a_new_holder_waits_for_the_writer_of_the_series(web: Web) -> None:
    """API-012, SER-003: neither can miss the other, so no list is kept that lacks what a commit has just brought."""
    await web.reader.put("asura:one")
    async with trio.open_nursery() as nursery, web.database.transaction() as connection:
        await connection.execute("UPDATE series SET title = 'Late'")
        nursery.start_soon(
            web.sql,
            "INSERT INTO bookmarks (reader_id, site, series_id, updated_at) VALUES (%s, 'asura', 'one', 1)",
            web.other_id,
        )
        await _until_someone_waits_for_a_lock(web)
        assert await web.other.list() == []
    assert [row["title"] for row in await web.other.list()] == ["Late"]


async def _until_someone_waits_for_a_lock(web: Web) -> None:
    with trio.fail_after(20):
        while not await web.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
            await trio.lowlevel.checkpoint()


async def test_writers_of_shared_series_do_not_deadlock(web: Web, caplog: pytest.LogCaptureFixture) -> None:
    """API-036, SER-003: two Readers who hold the same Series write them crosswise, while Lanes write them too."""
    keys = [f"asura:{number}" for number in range(4)]
    for client in (web.reader, web.other):
        for key in keys:
            await client.put(key)

    async def read_on(client: Any, order: list[str]) -> None:
        for number in range(1, 11):
            for key in order:
                await client.put(key, last_chapter_num=number, latest_chapter_num=number + len(order[0]))

    async def poll() -> None:
        for number in range(100, 140):
            await web.sql("UPDATE series SET latest_chapter_num = %s WHERE series_id = '2'", number)

    async def come_and_go() -> None:
        for _ in range(10):
            await web.other.ask("DELETE", "/bookmarks/asura:0")
            await web.other.put("asura:0", latest_chapter_num=7)

    async with trio.open_nursery() as nursery:
        for client in (web.reader, web.other):
            nursery.start_soon(read_on, client, keys)
            nursery.start_soon(read_on, client, keys[::-1])
        nursery.start_soon(poll)
        nursery.start_soon(come_and_go)
    assert "deadlock" not in caplog.text  # a PUT that was the victim of one is done again, and logged


async def test_a_large_list_is_compressed_beside_other_requests(web: Web) -> None:
    """API-042, API-049: 1,500 rows, plain and compressed, read the same."""
    await web.sql(
        """
        INSERT INTO series (site, series_id, title)
        SELECT 'asura', 'series-' || number, repeat('title ', 40)
        FROM generate_series(1, 1500) AS number
        """
    )
    await web.sql(
        "INSERT INTO bookmarks (reader_id, site, series_id, updated_at) SELECT %s, site, series_id, 1 FROM series",
        web.reader_id,
    )
    assert len(await web.reader.list()) == 1_500
    compressed = await web.reader.ask("GET", "/bookmarks", headers={"Accept-Encoding": "gzip"})
    assert len(bytes(await compressed.get_data(as_text=False))) < 100_000


def test_the_kept_lists_are_bounded_by_their_bytes() -> None:
    """API-049: the one that was asked for longest ago goes first, and only the exact version is found."""
    bodies = [ListBody("etag", bytes(40)) for _ in range(4)]
    cache = ListCache(max_bytes=100)
    for reader in (1, 2):
        cache.keep(ListVersion(reader, 5), bodies[reader])
    assert cache.find(ListVersion(1, 5)) is bodies[1]
    cache.keep(ListVersion(3, 5), bodies[3])
    assert cache.find(ListVersion(2, 5)) is None
    assert cache.find(ListVersion(1, 4)) is None
    assert cache.find(ListVersion(1, 5)) is bodies[1]
    cache.keep(ListVersion(1, 6), bodies[0])
    assert cache.find(ListVersion(1, 5)) is None
    assert cache.find(ListVersion(3, 5)) is bodies[3]
    cache.keep(ListVersion(4, 1), ListBody("etag", bytes(101)))
    assert [cache.find(ListVersion(reader, version)) for reader, version in ((1, 6), (3, 5), (4, 1))] == [None] * 3


async def test_a_kept_list_reads_as_it_was() -> None:
    """API-049: compressed for keeping, undone piece by piece for a client that takes no gzip."""
    body = json.dumps(["é"] * 100_000).encode()
    kept = await ListBody.of(body)
    pieces = list(kept.plain())
    assert (b"".join(pieces), len(body)) == (body, kept.length)
    assert len(pieces) > 1
    assert kept == await ListBody.of(bytes(body))
    assert kept.etag != (await ListBody.of(body + b" ")).etag


async def test_a_list_is_made_once_for_all_who_wait(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """API-049: 24 at once took the memory and the pool 24 times; a leader that is cancelled strands nobody."""
    await web.reader.put("asura:one")
    made, entered, go_on = [0], trio.Event(), trio.Event()

    async def read(connection: TrioConnection, reader_id: int) -> Any:
        made[0] += 1
        entered.set()
        await go_on.wait()
        return await read_list(connection, reader_id)

    monkeypatch.setattr("bookmark_appliance.web.json_api.read_list", read)
    lists: list[Any] = []

    async def ask() -> None:
        lists.append(await web.reader.list())

    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            async with trio.open_nursery() as leading:
                leading.start_soon(ask)
                await entered.wait()
                for _ in range(24):
                    nursery.start_soon(ask)
                await trio.testing.wait_all_tasks_blocked()
                leading.cancel_scope.cancel()
            go_on.set()
    assert made == [2]
    assert len(lists) == 24
    assert all(rows == lists[0] != [] for rows in lists)


async def test_few_lists_are_made_at_once() -> None:
    """API-049: whoever's they are."""
    cache, inside = ListCache(), [0]

    async def make(reader_id: int) -> None:
        async with cache.turn(reader_id):
            inside[0] += 1
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        for reader_id in range(10):
            nursery.start_soon(make, reader_id)
        await trio.testing.wait_all_tasks_blocked()
        assert inside == [2]
        nursery.cancel_scope.cancel()
