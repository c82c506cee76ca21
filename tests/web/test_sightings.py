"""What a PUT records of the Latest Chapter that the Reader's browser saw."""

import logging

import psycopg
import pytest

from bookmark_appliance.bookmark_put import BookmarkPut
from bookmark_appliance.credentials import credential_hash
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.bookmarks import put_bookmark
from tests.web.conftest import Web

SIGHTING = "SELECT latest_sighted_at, latest_raised_by, latest_corrected_at FROM series"


async def test_a_report_is_recorded_with_the_write(web: Web) -> None:
    """API-033, SIG-001, SIG-002, SIG-003, SIG-004: on the row as it stood; the number moves, Progress doesn't."""
    first = await web.reader.put("asura:one", last_chapter_num=5, latest_chapter_num=100)
    assert await web.sql(SIGHTING) == [(0, None, 0)], "the PUT that makes a Series names no raiser"
    made_at = web.clock.now
    for client, number, raiser in (
        (web.reader, 100, None),  # unchanged: puts off a Poll, attributes nothing
        (web.reader, 120, web.reader_id),
        (web.other, 120, web.reader_id),
        (web.other, 130, web.other_id),
        (web.reader, 110, None),  # lower
    ):
        web.clock.now += 1_000
        await client.put("asura:one", latest_chapter_num=number)
        assert await web.sql(SIGHTING) == [(web.clock.now, raiser, 0)], number
    seen_at = web.clock.now
    web.clock.now += 1_000
    await web.reader.put("asura:one", favorite=True)
    assert await web.sql(SIGHTING) == [(seen_at, None, 0)], "a PUT without a number is no Sighting"
    row = (await web.reader.list())[0]
    assert (row["latest_chapter_num"], row["last_chapter_num"], row["updated_at"]) == (110, 5, made_at)
    assert first["updated_at"] == made_at


async def test_a_first_number_counts_as_higher(web: Web) -> None:
    """SIG-003: on a Series that has none."""
    await web.reader.put("asura:one")
    await web.other.put("asura:one", latest_chapter_num=0)
    assert await web.sql("SELECT latest_raised_by FROM series") == [(web.other_id,)]


async def test_three_disagreements_end_the_deferring(web: Web) -> None:
    """SIG-014: the number is written and attributed still, the stamp stays."""
    await web.reader.put("asura:one", latest_chapter_num=100)
    for disagreements, deferred in ((2, True), (3, False), (4, False)):
        await web.sql("UPDATE series SET latest_sighted_at = 7")
        await web.sql("UPDATE readers SET sighting_disagreements = %s WHERE id = %s", disagreements, web.reader_id)
        row = await web.reader.put("asura:one", latest_chapter_num=900 + disagreements)
        assert row["latest_chapter_num"] == 900 + disagreements
        expected = web.clock.now if deferred else 7
        assert await web.sql(SIGHTING) == [(expected, web.reader_id, 0)]
    await web.other.put("asura:one", latest_chapter_num=900)
    assert await web.sql(SIGHTING) == [(web.clock.now, None, 0)], "another Reader's are trusted as before"


async def test_standing_is_read_when_the_sighting_is_recorded(web: Web) -> None:
    """SIG-017: what was bought before lasts out its rest."""
    await web.reader.put("asura:one")
    await web.reader.put("asura:one", latest_chapter_num=5)
    await web.sql("UPDATE readers SET sighting_disagreements = 3")
    await web.reader.put("asura:one", favorite=True)
    assert await web.sql(SIGHTING) == [(web.clock.now, web.reader_id, 0)]


async def test_a_report_overwrites_a_correction(web: Web) -> None:
    """SER-015: also an equal one; a PUT without a number leaves it."""
    await web.reader.put("asura:one", latest_chapter_num=100)
    for fields, stamp in (({"favorite": True}, 7), ({"latest_chapter_num": 100}, 0), ({"latest_chapter_num": 90}, 0)):
        await web.sql("UPDATE series SET latest_corrected_at = 7")
        await web.reader.put("asura:one", **fields)
        assert await web.sql("SELECT latest_corrected_at FROM series") == [(stamp,)]


@pytest.mark.parametrize(
    "breakage",
    [
        "ALTER TABLE series ADD CONSTRAINT nothing_seen CHECK (latest_sighted_at = 0)",
        "ALTER TABLE series ADD CONSTRAINT nobody_raises CHECK (latest_raised_by IS NULL)",
    ],
)
async def test_a_sighting_that_fails_costs_nobody_their_row(
    web: Web, caplog: pytest.LogCaptureFixture, breakage: str
) -> None:
    """API-034: undone, logged, and the PUT answers 200 with everything else written."""
    await web.reader.put("asura:one", last_chapter_num=5, latest_chapter_num=100)
    await web.sql(breakage)
    with caplog.at_level(logging.ERROR):
        row = await web.reader.put("asura:one", last_chapter_num=6, latest_chapter_num=120)
    assert (row["last_chapter_num"], row["latest_chapter_num"]) == (6, 120)
    assert await web.reader.list() == [row]
    assert await web.sql("SELECT latest_sighted_at FROM series") == [(0,)]
    assert "the sighting of asura:one is not recorded" in caplog.text


async def test_a_number_without_its_sighting_is_nobodys(web: Web) -> None:
    """API-034, SIG-003: the one who raised the number before is not judged for the one that took its place."""
    await web.reader.put("asura:one", latest_chapter_num=100)
    await web.other.put("asura:one", latest_chapter_num=120)
    for number, raiser in ((120, web.other_id), (130, None)):
        await web.sql("ALTER TABLE series DROP CONSTRAINT IF EXISTS nothing_new")
        await web.sql(f"ALTER TABLE series ADD CONSTRAINT nothing_new CHECK (latest_sighted_at <= {web.clock.now})")
        web.clock.now += 1
        assert (await web.reader.put("asura:one", latest_chapter_num=number))["latest_chapter_num"] == number
        assert await web.sql("SELECT latest_raised_by FROM series") == [(raiser,)]


async def test_a_put_that_ran_out_of_time_is_not_taken_for_a_failed_sighting(
    web: Web, caplog: pytest.LogCaptureFixture
) -> None:
    """API-034, API-038: it is not tried again; nothing is written, and nothing is lost."""
    await web.reader.put("asura:one", latest_chapter_num=100)
    put = BookmarkPut(SeriesKey("asura", "one"), latest_chapter="Chapter 120", latest_chapter_num=120)
    async with web.database.transaction() as holder, web.database.connection() as connection:
        await holder.execute("SELECT FROM series FOR UPDATE")
        await connection.execute("SET lock_timeout = '20ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            await put_bookmark(connection, credential_hash(web.reader.credential), put, web.clock.now)
        await connection.execute("RESET lock_timeout")
    assert caplog.text == ""
    assert [row["latest_chapter_num"] for row in await web.reader.list()] == [100]


async def test_a_put_that_was_given_up_for_another_is_done_again_as_a_whole(
    web: Web, caplog: pytest.LogCaptureFixture
) -> None:
    """API-033: the victim of a deadlock keeps its Sighting."""
    await web.reader.put("asura:one", latest_chapter_num=100)
    await web.sql("CREATE SEQUENCE tries")
    await web.sql(
        """
        CREATE FUNCTION fall_victim_once() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF nextval('tries') = 1 THEN
                RAISE EXCEPTION 'deadlock detected' USING ERRCODE = 'deadlock_detected';
            END IF;
            RETURN NULL;
        END $$
        """
    )
    await web.sql("CREATE TRIGGER victim AFTER UPDATE ON series FOR EACH ROW EXECUTE FUNCTION fall_victim_once()")
    assert (await web.reader.put("asura:one", latest_chapter_num=120))["latest_chapter_num"] == 120
    assert await web.sql("SELECT latest_raised_by, latest_sighted_at FROM series") == [(web.reader_id, web.clock.now)]
    assert "the put of asura:one is done again: deadlock detected" in caplog.text
