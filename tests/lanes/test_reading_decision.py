"""What a reading changes of its Series, as a pure decision."""

from dataclasses import replace

import pytest

from bookmark_appliance.chapter import Chapter
from bookmark_appliance.lanes.outcome import Judgement, Outcome
from bookmark_appliance.lanes.reading_decision import decide
from bookmark_appliance.lanes.site import Reading
from bookmark_appliance.store.series import SeriesChange, StoredSeries

NOW = 1_800_000_000_000
COVER = "https://cdn.asurascans.com/asura-images/covers/iron-orchard.webp"
STORED = StoredSeries(
    series_url="https://asurascans.com/comics/iron-orchard-4be1c07a",
    latest_chapter="Chapter 181",
    latest_chapter_num=181,
    checked_at=0,
    force_poll_at=0,
    finished_at=0,
    site_completed_at=0,
    corrected_at=0,
    raised_by=None,
    by_person=False,
    cover="",
    cover_address="",
    doubtful=None,
)


def success(number: float, *, completed: bool = False, cover: str | None = None) -> Judgement:
    return Judgement(Outcome.SUCCESS, Reading(Chapter(number, f"Chapter {number:g}"), cover, completed))


def test_an_equal_number_writes_nothing() -> None:
    """LANE-047: the number on the page is the stored one."""
    assert decide(STORED, success(181), NOW).change == SeriesChange()


@pytest.mark.parametrize("number", [182.0, 180.5])
def test_a_different_number_is_written_up_or_down(number: float) -> None:
    """LANE-047: a retraction is corrected down."""
    change = decide(STORED, success(number), NOW).change
    assert change == SeriesChange(latest=Chapter(number, f"Chapter {number:g}"))


def test_a_first_number_is_written() -> None:
    """COV-001: a Series that has no number takes the one on the page."""
    stored = replace(STORED, latest_chapter="", latest_chapter_num=None)
    assert decide(stored, success(0), NOW).change.latest == Chapter(0, "Chapter 0")


def test_a_machine_read_settles_a_correction_and_a_raise_even_when_it_agrees() -> None:
    """SER-015, SER-016: the stamp goes; the number stays where it was confirmed."""
    stored = replace(STORED, corrected_at=NOW - 1, raised_by=7)
    assert decide(stored, success(181), NOW).change == SeriesChange(clears_raiser=True, clears_correction=True)
    assert decide(stored, success(180), NOW).change.clears_correction


def test_a_page_without_a_number_settles_nothing() -> None:
    """LANE-024: a real page on which no chapter was found says nothing of a Correction."""
    stored = replace(STORED, corrected_at=NOW - 1, raised_by=7)
    assert decide(stored, Judgement(Outcome.NO_CHAPTER, Reading()), NOW).change == SeriesChange()


def test_the_completed_stamp_is_set_kept_and_zeroed() -> None:
    """LANE-050: set when the page first says so, left alone while it does, zeroed when it stops; chapter or not."""
    assert decide(STORED, success(181, completed=True), NOW).change.site_completed_at == NOW
    stamped = replace(STORED, site_completed_at=NOW - 5)
    assert decide(stamped, success(181, completed=True), NOW).change.site_completed_at is None
    assert decide(stamped, Judgement(Outcome.NO_CHAPTER, Reading()), NOW).change.site_completed_at == 0


@pytest.mark.parametrize(
    "outcome", [Outcome.REFUSED, Outcome.UNREACHABLE, Outcome.ERRORS, Outcome.NOT_FOUND, Outcome.UNFETCHABLE]
)
def test_an_unreadable_page_changes_nothing(outcome: Outcome) -> None:
    """LANE-051: whatever a refused or missing page holds is not read, the completed stamp included."""
    stamped = replace(STORED, site_completed_at=NOW - 5)
    poisoned = Reading(Chapter(999, "Chapter 999"), COVER, completed=False)
    assert decide(stamped, Judgement(outcome, poisoned), NOW).change == SeriesChange()


def test_a_cover_source_is_taken_only_where_there_is_no_cover_at_all() -> None:
    """COV-011, COV-015: a source or an address of ours is left alone."""
    assert decide(STORED, success(181, cover=COVER), NOW).change.cover == COVER
    assert decide(replace(STORED, cover="https://x/y.webp"), success(181, cover=COVER), NOW).change.cover is None
    assert decide(replace(STORED, cover_address="ab" * 32), success(181, cover=COVER), NOW).change.cover is None
