"""PUT, DELETE and GET of Bookmarks: what is stored, what is kept, who sees it."""

import json

import pytest

from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.bookmarks import NewSeries
from tests.web.conftest import Web

WHOLE = {
    "title": "One",
    "series_url": "https://asurascans.com/series/one",
    "last_chapter": "Chapter 10",
    "last_chapter_num": 10,
    "last_chapter_url": "https://asurascans.com/series/one/chapter/10",
    "favorite": False,
    "latest_chapter_num": 14,
    "status": "reading",
    "kind": "manga",
}


async def test_the_path_names_site_and_series(web: Web) -> None:
    """API-011, API-012: cut at the first colon, stored, and read back as it was answered."""
    row = await web.reader.put("asura:solo-leveling-123")
    assert (row["site"], row["series_id"]) == ("asura", "solo-leveling-123")
    assert await web.sql("SELECT site, series_id FROM series") == [("asura", "solo-leveling-123")]
    assert await web.reader.list() == [row]


@pytest.mark.parametrize(
    ("path", "site", "series_id"),
    [
        ("demonic%3AFoo%2527s", "demonic", "Foo%27s"),
        ("demonic:Foo%27s", "demonic", "Foo's"),
        ("demonic:a/b//c", "demonic", "a/b//c"),
        ("demonic:a%2Fb", "demonic", "a/b"),
        ("demonic:a%20b+c", "demonic", "a b+c"),
        ("demonic:%C3%A9%0A%3F%23", "demonic", "é\n?#"),
        ("demonic:a/", "demonic", "a/"),
        ("demonic:a/../b", "demonic", "a/../b"),
    ],
)
async def test_the_key_is_decoded_once(web: Web, path: str, site: str, series_id: str) -> None:
    """API-047, API-050: as sent, slashes and all; the same path deletes it."""
    row = await web.reader.put(path)
    assert (row["key"], row["site"], row["series_id"]) == (f"{site}:{series_id}", site, series_id)
    assert (await web.reader.ask("DELETE", f"/bookmarks/{path}")).status_code == 204
    assert await web.reader.list() == []


@pytest.mark.parametrize(
    "path", ["", "asura", "nowhere:one", "asura:" + "x" * 513, "asura:a%00b", "asura:%FF", "%2Fasura:one", "/asura:one"]
)
async def test_a_bad_key_is_refused(web: Web, path: str) -> None:
    """API-013, API-050: with a word about it, and nothing written."""
    assert await web.reader.refused(path, {}) in (
        "key must be <site>:<series_id>, the id at most 512 characters",
        "unknown site",
        "key must be UTF-8",
    )
    assert await web.sql("SELECT 1 FROM series") == []


async def test_a_bad_body_is_refused_and_nothing_written(web: Web) -> None:
    """API-014, API-019, API-022, API-043, API-046: the rules themselves stand in test_put_body."""
    row = await web.reader.put("asura:one", **WHOLE)
    for body, error in (
        (b"{", "the body is not valid JSON"),
        (b"[]", "the body must be a JSON object"),
        (b'{"last_chapter_num":11} x', "the body is not valid JSON"),
        ({"last_chapter_num": "11"}, "last_chapter_num: expected float | null, got str"),
        ({"last_chapter_num": 11, "title": "a\0"}, "title: must not hold a NUL character"),
        ({"last_chapter_num": 11, "status": "finished"}, "invalid status"),
        ({"last_chapter_num": 11, "kind": "book"}, "invalid kind"),
        ({"last_chapter_num": 11, "site": "demonic"}, "site disagrees with the key"),
        ({"last_chapter_num": 100_001}, "last_chapter_num: must be between 0 and 100000"),
    ):
        assert await web.reader.refused("asura:one", body) == error
    assert await web.reader.list() == [row]


async def test_a_body_of_65536_bytes_is_the_largest(web: Web) -> None:
    """API-014: one byte more is 413 with a JSON error."""
    body = b'{"extra":"' + b"x" * (65_536 - 12) + b'"}'
    assert (await web.reader.ask("PUT", "/bookmarks/asura:one", body)).status_code == 200
    response = await web.reader.ask("PUT", "/bookmarks/asura:two", body + b" ")
    assert response.status_code == 413
    assert list(json.loads(await response.get_data())) == ["error"]
    assert len(await web.reader.list()) == 1


async def test_progress_alone_moves_the_bookmark(web: Web) -> None:
    """API-016, API-017, API-015, API-023: nothing else touches `updated_at`."""
    first = await web.reader.put("asura:one", **WHOLE, updated_at=5)
    assert first["updated_at"] == web.clock.now
    web.clock.now += 1_000
    for change in (
        {},
        {"favorite": True},
        {"favorite": False},
        {"latest_chapter_num": 15},
        {"title": "Other", "cover": "https://elsewhere.example/c.png"},
        {"status": "archived"},
    ):
        row = await web.reader.put("asura:one", **WHOLE | change)
        assert row["updated_at"] == first["updated_at"], change
        assert row["favorite"] is change.get("favorite", False)
    row = await web.reader.put("asura:one", **WHOLE | {"last_chapter_num": 11})
    assert row["updated_at"] == web.clock.now


async def test_progress_moves_within_one_millisecond_and_against_the_clock(web: Web) -> None:
    """API-017: strictly greater each time."""
    stamps = [(await web.reader.put("asura:one", last_chapter_num=10))["updated_at"]]
    for number, step in ((11, 0), (12, 0), (11, -50_000)):
        web.clock.now += step
        stamps.append((await web.reader.put("asura:one", last_chapter_num=number))["updated_at"])
    assert stamps == [stamps[0], stamps[0] + 1, stamps[0] + 2, stamps[0] + 3]


async def test_the_list_is_newest_first_then_by_key(web: Web) -> None:
    """API-006, API-017: keys compare by their characters, whatever the database's language."""
    for key in ("asura:b", "asura:B", "asura:a", "comix:a", "asura:_"):
        await web.reader.put(key)
    web.clock.now += 1
    await web.reader.put("novelfull:z")
    keys = [row["key"] for row in await web.reader.list()]
    assert keys == ["novelfull:z", "asura:B", "asura:_", "asura:a", "asura:b", "comix:a"]


async def test_what_is_not_said_is_kept(web: Web) -> None:
    """API-018, API-020, API-044, API-045: bucket, kind, favourite, Progress and the Latest Chapter."""
    new = await web.reader.put("asura:one")
    assert (new["status"], new["kind"], new["favorite"], new["last_chapter_num"]) == ("reading", "manga", False, 0)
    said = {"status": "archived", "kind": "novel", "favorite": True}
    row = await web.reader.put("asura:one", **WHOLE | said)
    nothing = dict.fromkeys(WHOLE)
    assert await web.reader.put("asura:one") == row
    assert await web.reader.put("asura:one", **nothing) == row
    moved = await web.reader.put("asura:one", **nothing | {"last_chapter_num": 11, "status": "", "kind": ""})
    assert (moved["last_chapter_num"], moved["kind"], moved["status"]) == (11, "novel", "archived")


async def test_an_address_goes_with_its_number(web: Web) -> None:
    """API-044: kept while the number stays, dropped when the number moves on without one."""
    row = await web.reader.put("asura:one", **WHOLE)
    same = await web.reader.put("asura:one", last_chapter_num=10)
    assert same["last_chapter_url"] == row["last_chapter_url"]
    moved = await web.reader.put("asura:one", last_chapter_num=11)
    assert (moved["last_chapter"], moved["last_chapter_url"]) == ("Chapter 11", "")


async def test_the_shared_facts_are_taken_once(web: Web) -> None:
    """API-025, API-026, API-024: title and address from the first PUT, the cover from none; Progress lands."""
    await web.reader.put("asura:one", **WHOLE)
    other = {"title": "Other", "series_url": "https://asurascans.com/other", "cover": "x", "last_chapter_num": 11}
    row = await web.reader.put("asura:one", **other)
    assert (row["title"], row["series_url"], row["cover"]) == (WHOLE["title"], WHOLE["series_url"], "")
    assert row["last_chapter_num"] == 11


async def test_kind_and_latest_chapter_are_shared_and_last_write_wins(web: Web) -> None:
    """API-021, API-027, API-036, SER-002: one Series, two Bookmarks, Progress of their own."""
    await web.reader.put("asura:one", **WHOLE)
    await web.other.put("asura:one", last_chapter_num=3, kind="novel", latest_chapter_num=12)
    mine, theirs = (await web.reader.list())[0], (await web.other.list())[0]
    assert (mine["last_chapter_num"], theirs["last_chapter_num"]) == (10, 3)
    assert (mine["kind"], mine["latest_chapter_num"], mine["latest_chapter"]) == ("novel", 12, "Chapter 12")
    assert len(await web.sql("SELECT 1 FROM series")) == 1


async def test_the_check_stamp_is_nobodys_to_write(web: Web) -> None:
    """API-030: 777 stays 777."""
    await web.reader.put("asura:one", **WHOLE)
    await web.sql("UPDATE series SET latest_checked_at = 777")
    await web.reader.put("asura:one", **WHOLE, latest_checked_at=5)
    assert await web.sql("SELECT latest_checked_at FROM series") == [(777,)]


async def test_an_automatic_save_never_goes_back(web: Web) -> None:
    """API-048: a lower number is dropped with its label and address, the rest is taken; a person's edit goes back."""
    row = await web.reader.put("asura:one", **WHOLE)
    back = {"last_chapter_num": 9, "last_chapter_url": "https://asurascans.com/9", "favorite": True}
    kept = await web.reader.put("asura:one?advance=1", **back)
    assert kept == row | {"favorite": True}
    onward = await web.reader.put("asura:one?advance=1", last_chapter_num=11)
    assert onward["last_chapter_num"] == 11
    equal = await web.reader.put("asura:one?advance=1", last_chapter_num=11, last_chapter="Chapter 11 - End")
    assert equal["last_chapter"] == "Chapter 11 - End"
    assert (await web.reader.put("asura:one?advance=0", **back))["last_chapter_num"] == 9
    fresh = await web.reader.put("asura:two?advance=1", last_chapter_num=2)
    assert fresh["last_chapter_num"] == 2


async def test_delete_is_done_when_it_is_gone(web: Web) -> None:
    """API-032, SER-006: twice, and for what no key can be; the Series keeps title and cover."""
    await web.reader.put("asura:one", **WHOLE)
    await web.sql("UPDATE series SET cover_address = 'c'")
    for path in ("asura:one", "asura:one", "nonsense", "asura:a%00b"):
        response = await web.reader.ask("DELETE", f"/bookmarks/{path}")
        assert (response.status_code, await response.get_data()) == (204, b"")
    assert (await web.reader.ask("DELETE", "/bookmarks/")).status_code == 400
    assert await web.reader.list() == []
    back = await web.reader.put("asura:one", last_chapter_num=5)
    assert (back["title"], back["cover"]) == ("One", "https://books.example/covers/c")
    assert back["last_chapter_num"] == 5


async def test_no_reader_reaches_anothers_rows(web: Web) -> None:
    """API-037, API-036: list, change, delete, in both directions."""
    for mine, theirs in ((web.reader, web.other), (web.other, web.reader)):
        await mine.put("asura:one", last_chapter_num=10, favorite=True)
        await theirs.put("asura:one", last_chapter_num=3)
        before = await mine.list()
        await theirs.put("asura:one", last_chapter_num=4, status="archived")
        assert await mine.list() == before
        await theirs.ask("DELETE", "/bookmarks/asura:one")
        assert await mine.list() == before
        assert await theirs.list() == []


async def test_a_series_is_announced_once(web: Web) -> None:
    """SER-004, SER-005, SER-003: by the PUT that made it, with what it became; claimed for 45 s."""
    await web.reader.put("asura:one", **WHOLE)
    assert web.created == [NewSeries(SeriesKey("asura", "one"), "One", str(WHOLE["series_url"]), "manga")]
    assert await web.sql("SELECT acquiring_until FROM series") == [(web.clock.now + 45_000,)]
    await web.reader.put("asura:one", last_chapter_num=11)
    await web.other.put("asura:one")
    await web.reader.ask("DELETE", "/bookmarks/asura:one")
    await web.reader.put("asura:one")
    assert len(web.created) == 1
    await web.other.put("asura:two", kind="novel")
    assert [new.kind for new in web.created] == ["manga", "novel"]


async def test_a_new_series_nudges_its_lane(web: Web) -> None:
    """COV-002: the claim and the word to the Lane come with the commit, and only for a new Series."""
    async with web.database.connection() as listening:
        await listening.execute("LISTEN lane_wakeups")
        heard: list[str] = []
        listening.add_notify_handler(lambda notification: heard.append(notification.payload))
        await web.reader.put("asura:one")
        await web.reader.put("asura:one", last_chapter_num=2)
        await web.other.put("novelfull:two")
        await listening.execute("SELECT 1")
        assert heard == ["asura", "novelfull"]
        await listening.execute("UNLISTEN *")


async def test_a_readers_end_leaves_the_series(web: Web) -> None:
    """SER-008, SER-001: their Bookmarks go, their raise stays without a name."""
    await web.reader.put("asura:one")
    await web.reader.put("asura:one", latest_chapter_num=20)
    assert await web.sql("SELECT latest_raised_by FROM series") == [(web.reader_id,)]
    await web.sql("DELETE FROM readers WHERE id = %s", web.reader_id)
    assert await web.sql("SELECT 1 FROM bookmarks") == []
    assert await web.sql("SELECT latest_raised_by, latest_chapter_num FROM series") == [(None, 20)]
