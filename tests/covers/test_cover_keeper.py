"""Rows and files of covers, written and reclaimed together."""

from hashlib import sha256
from pathlib import Path

import pytest
import trio

from bookmark_appliance.covers.cover_files import CoverFiles, relative_path
from bookmark_appliance.covers.cover_keeper import CoverKeeper, Difference
from bookmark_appliance.database import Database
from bookmark_appliance.store.covers import RECLAIM_LOCK, StoredCover, lock_address, record_cover
from bookmark_appliance.store.owner_acts import Removal
from tests.covers.shelf import KEY, OTHER, SOURCE, Shelf, address_of, picture


@pytest.fixture
async def shelf(database: Database, tmp_path: Path) -> Shelf:
    """An empty one, and two Series without covers."""
    shelf = Shelf(database, tmp_path)
    await shelf.add_series(KEY, OTHER)
    return shelf


async def test_a_cover_is_a_file_a_row_and_a_series_that_points_at_it(shelf: Shelf) -> None:
    """COV-016, COV-017, COV-018: the address is the SHA-256 of the bytes, in the row no byte; it survives reopening."""
    address = await shelf.keep(picture("a"))
    assert await shelf.sql("SELECT * FROM covers") == [(address, relative_path(address), "image/jpeg")]
    assert await shelf.sql("SELECT cover, cover_address FROM series WHERE site = 'asura'") == [(SOURCE, address)]
    assert shelf.stored() == {f"{address[:2]}/{address[2:4]}/{address}"}
    found = await Shelf(shelf.database, shelf.folder).keeper.open(address)
    assert found is not None
    assert (found.file.read(0, 99_999), found.content_type) == (picture("a").body, "image/jpeg")


async def test_the_second_ordinary_writer_loses_and_leaves_nothing(shelf: Shelf) -> None:
    """COV-015, COV-031: only a Series without an address takes one; what lost is reclaimed."""
    first = await shelf.keep(picture("a"))
    await shelf.keep(picture("b"))
    assert await shelf.address() == first
    assert await shelf.rows() == {first}
    assert shelf.stored() == {relative_path(first)}


async def test_of_two_ordinary_writers_at_once_the_second_loses(shelf: Shelf) -> None:
    """COV-015: it waits for the first one, and judges the Series as that one leaves it."""
    first, second = (address_of(picture(name)) for name in "ab")
    lost: list[str] = []

    async def write(address: str) -> None:
        async with shelf.database.transaction() as connection:
            cover = StoredCover(relative_path(address), "image/jpeg")
            lost.append(await record_cover(connection, KEY, address, cover, source=SOURCE, replaces=False))
            if address == first:
                writers.start_soon(write, second)
                with trio.fail_after(20):
                    while await shelf.sql("SELECT 1 FROM pg_locks WHERE NOT granted") == []:
                        pass

    async with trio.open_nursery() as writers:
        writers.start_soon(write, first)
    assert lost == ["", second]
    assert await shelf.address() == first


async def test_a_forced_write_replaces_and_the_old_object_goes(shelf: Shelf) -> None:
    """COV-014, COV-031: blank is filled, the same bytes change nothing, new ones replace what is reclaimed then."""
    first = await shelf.keep(picture("a"), replaces=True)
    await shelf.keep(picture("a"), replaces=True)
    assert (await shelf.address(), await shelf.rows()) == (first, {first})
    second = await shelf.keep(picture("b"), replaces=True, source="https://new.example/b.webp")
    assert (await shelf.address(), await shelf.rows()) == (second, {second})
    assert shelf.stored() == {relative_path(second)}
    assert await shelf.sql("SELECT cover FROM series WHERE site = 'asura'") == [("https://new.example/b.webp",)]


async def test_what_another_series_points_at_is_not_reclaimed(shelf: Shelf) -> None:
    """COV-031: two Series share one object; it goes with the last of them, and all that was made of it."""
    address = await shelf.keep(picture("a"))
    await shelf.keep(picture("a"), OTHER)
    shelf.files.install(f"{address}.w240.webp", b"small")
    await shelf.keep(picture("b"), replaces=True)
    assert address in await shelf.rows()
    await shelf.keep(picture("b"), OTHER, replaces=True)
    assert shelf.stored() == {relative_path(str(await shelf.address(OTHER)))}


async def test_a_cover_of_a_series_that_has_gone_is_reclaimed(shelf: Shelf) -> None:
    """COV-031: removed while its cover was fetched."""
    await shelf.sql("DELETE FROM series")
    await shelf.keep(picture("a"))
    assert (await shelf.rows(), shelf.stored()) == (set(), set())


async def test_an_object_under_the_old_address_is_adopted(shelf: Shelf) -> None:
    """COV-011, COV-016: stored under the hash of its source; only where both row and file are, and nothing is blank."""
    old = sha256(SOURCE.encode()).hexdigest()
    assert not await shelf.keeper.adopt(KEY, SOURCE)
    await shelf.sql("INSERT INTO covers VALUES (%s, %s, 'image/jpeg')", old, relative_path(old))
    assert not await shelf.keeper.adopt(KEY, SOURCE), "there is no file"
    shelf.files.install(old, picture("old").body)
    assert await shelf.keeper.adopt(KEY, SOURCE)
    assert await shelf.address() == old
    new = await shelf.keep(picture("new"), OTHER)
    assert not await shelf.keeper.adopt(OTHER, SOURCE)
    assert await shelf.address(OTHER) == new


async def test_a_file_that_is_missing_is_noticed_and_cleared(shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    """COV-011, COV-028: from every Series, so that their next Polls heal them; the row goes too."""
    address = await shelf.keep(picture("a"))
    await shelf.keep(picture("a"), OTHER)
    shelf.files.path(address).unlink()
    assert await shelf.keeper.open(address) is None
    assert [await shelf.address(key) for key in (KEY, OTHER)] == ["", ""]
    assert await shelf.rows() == set()
    assert "asura:one, comix:two" in caplog.text
    await shelf.keep(picture("a"))
    assert await shelf.keeper.open(address) is not None


async def test_a_removed_series_takes_its_cover_along(shelf: Shelf) -> None:
    """SER-019: one that is held keeps it."""
    await shelf.keep(picture("a"))
    await shelf.sql(
        "INSERT INTO bookmarks (reader_id, site, series_id, updated_at) SELECT id, 'asura', 'one', 1 FROM readers"
    )
    assert await shelf.keeper.remove_series(KEY) is Removal.HELD
    assert len(shelf.stored()) == 1
    await shelf.sql("DELETE FROM bookmarks")
    assert await shelf.keeper.remove_series(KEY) is Removal.DONE
    assert (await shelf.rows(), shelf.stored()) == (set(), set())
    assert await shelf.keeper.remove_series(KEY) is Removal.UNKNOWN


async def test_a_reclaim_that_fails_is_logged_and_made_up_for(shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    """SER-019: the removal stands; row and file stay together, and go with the next reclaim."""
    address = await shelf.keep(picture("a"))
    obstacle = shelf.files.path(f"{address}.w240.webp")
    obstacle.mkdir()
    assert await shelf.keeper.remove_series(KEY) is Removal.DONE
    assert f"cover {address} is not reclaimed" in caplog.text
    assert (await shelf.rows(), shelf.stored()) == ({address}, {relative_path(address)})
    obstacle.rmdir()
    await shelf.keeper.reclaim("00" * 32)
    assert (await shelf.rows(), shelf.stored()) == (set(), set())


async def test_what_fails_half_way_is_healed_by_the_next_keep(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """COV-018: a full disk before the file, a lost database after it; the Series stays as it was."""
    install = shelf.files.install

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    def cut_off(address: str, body: bytes) -> None:
        install(address, body)
        raise ConnectionError

    address = address_of(picture("a"))
    for step, left in ((full, set()), (cut_off, {relative_path(address)})):
        with monkeypatch.context() as patch:
            patch.setattr(CoverFiles, "install", staticmethod(step))
            with pytest.raises(OSError, match=r"^$|No space"):
                await shelf.keep(picture("a"))
        assert (await shelf.address(), await shelf.rows(), shelf.stored()) == ("", set(), left)
        assert await shelf.keeper.open(address) is None
    assert await shelf.keep(picture("a")) == await shelf.address()
    assert await shelf.rows() == {address}


async def test_a_backup_holds_reclaim_off(shelf: Shelf) -> None:
    """COV-031: whoever has the lock alone finds every file where its row says; what was put off is done later."""
    first = await shelf.keep(picture("a"))
    async with shelf.database.transaction() as backup:
        await backup.execute("SELECT pg_advisory_xact_lock(%s)", (RECLAIM_LOCK,))
        second = await shelf.keep(picture("b"), replaces=True)
        assert await shelf.rows() == {first, second}
        assert len(shelf.stored()) == 2
    await shelf.keep(picture("a"), OTHER)
    await shelf.keep(picture("c"), replaces=True)
    assert first in await shelf.rows(), "somebody points at it again"
    assert second not in await shelf.rows()


async def test_database_and_folder_are_compared(shelf: Shelf) -> None:
    """COV-017: rows without files and files without rows; renditions have an owner."""
    kept, lost = await shelf.keep(picture("a")), await shelf.keep(picture("b"), OTHER)
    shelf.files.install(f"{kept}.w240.webp", b"small")
    (shelf.files.path(kept).parent / ".new-1").touch()
    shelf.files.path(lost).unlink()
    stray = "ab" * 32
    shelf.files.install(stray, b"x")
    shelf.files.install(f"{stray}.w240.webp", b"x")
    misplaced = shelf.files.path(kept).with_name("readme")
    misplaced.touch()
    async_list = [difference async for difference in shelf.keeper.compare()]
    assert sorted(async_list, key=lambda difference: difference.path) == sorted(
        (
            Difference(relative_path(lost), has_row=True),
            Difference(relative_path(stray), has_row=False),
            Difference(relative_path(f"{stray}.w240.webp"), has_row=False),
            Difference(str(misplaced.relative_to(shelf.folder)), has_row=False),
        ),
        key=lambda difference: difference.path,
    )


async def test_a_reclaim_waits_for_whoever_writes_the_same_bytes(shelf: Shelf) -> None:
    """COV-031: in any process; it looks for Series only when they are through."""
    address = await shelf.keep(picture("a"))
    await shelf.sql("UPDATE series SET cover_address = ''")
    async with trio.open_nursery() as nursery, shelf.database.transaction() as writer:
        await lock_address(writer, address)
        nursery.start_soon(shelf.keeper.reclaim, address)
        with trio.fail_after(10):
            while await shelf.sql("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") == []:
                pass
        await writer.execute("UPDATE series SET cover_address = %s WHERE site = 'comix'", (address,))
    assert await shelf.rows() == {address}
    assert shelf.stored() == {relative_path(address)}


async def test_install_and_reclaim_of_the_same_bytes_take_turns(shelf: Shelf) -> None:
    """COV-031: two processes; whatever the order, a Series never points at what has gone."""
    other = CoverKeeper(shelf.database, shelf.files)
    for _ in range(20):
        address = await shelf.keep(picture("a"), replaces=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(shelf.keep, picture("b"))
            nursery.start_soon(lambda: shelf.keeper.keep(KEY, picture("b"), source=SOURCE, replaces=True))
            nursery.start_soon(lambda: other.keep(OTHER, picture("a"), source=SOURCE, replaces=True))
        assert await shelf.address(OTHER) == address
        assert shelf.files.exists(address)
        await shelf.keep(picture("c"), OTHER, replaces=True)
        assert shelf.files.exists(str(await shelf.address(KEY)))


async def test_nothing_is_cleared_for_a_folder_that_is_empty(shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    """COV-011, COV-028: a folder that was not mounted holds none of its files, and none of them is lost."""
    address = await shelf.keep(picture("a"))
    shelf.folder.rename(shelf.folder.with_name("elsewhere"))
    for _ in range(2):
        assert await shelf.keeper.open(address) is None
        shelf.folder.mkdir(exist_ok=True)
    assert await shelf.address() == address
    assert caplog.messages == ["the cover folder is empty: is it mounted?"] * 2
