"""What a PUT records of the Latest Chapter that the Reader's browser saw."""

import logging

import pytest

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
        "ALTER TABLE series DROP COLUMN latest_raised_by",
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
