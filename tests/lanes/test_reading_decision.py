"""What a reading changes of its Series, as a pure decision."""

from dataclasses import replace

import pytest

from bookmark_appliance.chapter import Chapter
from bookmark_appliance.lanes.outcome import Judgement, Outcome
from bookmark_appliance.lanes.reading_decision import RaiseVerdict, decide
from bookmark_appliance.lanes.site import Reading
from bookmark_appliance.store.series import SeriesChange, StoredSeries

NOW = 1_800_000_000_000
COVER = "https://cdn.asurascans.com/asura-images/covers/iron-orchard.webp"
STORED = StoredSeries(
    series_url="https://asurascans.com/comics/iron-orchard-4be1c07a",
    latest_chapter="Chapter 181",
    latest_chapter_num=181,
    checked_at=0,
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


@pytest.mark.parametrize(
    ("stored", "read", "is_doubtful"),
    [
        (100, 150, False),
        (100, 151, True),
        (1000, 1200, False),
        (1000, 1201, True),
        (250, 300, False),
        (30, 25, False),
        (30, 24.5, True),
        (1000, 900, False),
        (1000, 899, True),
        (0, 50, False),
        (0, 51, True),
    ],
)
def test_a_number_too_far_off_is_kept_beside_the_stored_one(stored: float, read: float, is_doubtful: bool) -> None:
    """LANE-054: up by more than the larger of 50 and 20 %, or down by more than the larger of 5 and 10 %."""
    decision = decide(replace(STORED, latest_chapter_num=stored), success(read), NOW)
    chapter = Chapter(read, f"Chapter {read:g}")
    expected = SeriesChange(doubtful=chapter) if is_doubtful else SeriesChange(latest=chapter)
    assert (decision.change, decision.verdict) == (expected, None)


@pytest.mark.parametrize(
    ("doubtful", "read", "published", "still_doubtful"),
    [
        (900, 900, True, False),
        (900, 640, True, False),
        (900, 20, False, True),
        (20, 20, True, False),
        (20, 100, True, False),
        (20, 900, False, True),
        (900, 181, False, False),
        (900, 185, True, False),
        (20, 180, True, False),
    ],
)
def test_a_second_reading_settles_a_doubtful_one(
    doubtful: float, read: float, published: bool, still_doubtful: bool
) -> None:
    """LANE-054: the same number, or one as far off in the same direction, is believed; the old region drops it.

    One in the opposite direction is as doubtful as the first, and takes its place.
    """
    stored = replace(STORED, doubtful=Chapter(doubtful, ""))
    change = decide(stored, success(read), NOW).change
    assert (change.latest is not None) is published
    assert (change.doubtful is not None) is still_doubtful
    assert change.drops_doubtful is not still_doubtful


@pytest.mark.parametrize("read", [900.0, 2.0])
@pytest.mark.parametrize(
    "stored",
    [
        replace(STORED, by_person=True, raised_by=7),
        replace(STORED, by_person=True),
        replace(STORED, by_person=True, corrected_at=NOW - 1),
        replace(STORED, latest_chapter="", latest_chapter_num=None),
    ],
)
def test_a_number_that_no_machine_established_is_corrected_at_once(stored: StoredSeries, read: float) -> None:
    """LANE-054: a Reader's raise, any other report of a Reader's, a Correction, and no number at all."""
    change = decide(stored, success(read), NOW).change
    assert change.latest == Chapter(read, f"Chapter {read:g}")
    assert change.doubtful is None
    assert change.confirms is stored.by_person


@pytest.mark.parametrize("judged", [Judgement(Outcome.NO_CHAPTER, Reading()), Judgement(Outcome.ERRORS)])
def test_a_read_without_a_number_leaves_a_doubtful_reading(judged: Judgement) -> None:
    """LANE-054: only a number settles it."""
    assert decide(replace(STORED, doubtful=Chapter(900, "")), judged, NOW).change == SeriesChange()


@pytest.mark.parametrize(
    ("read", "verdict"),
    [
        (181.0, RaiseVerdict.AGREEMENT),
        (180.0, RaiseVerdict.CONTRADICTION),
        (2.0, RaiseVerdict.CONTRADICTION),
        (182.0, None),
    ],
)
def test_a_raise_is_judged_once_by_the_number_that_a_poll_reads(read: float, verdict: RaiseVerdict | None) -> None:
    """SIG-010, SIG-011, SIG-012, SIG-013: and whatever it reads, the attribution is over; without one, no verdict."""
    decision = decide(replace(STORED, by_person=True, raised_by=7), success(read), NOW)
    assert (decision.verdict, decision.change.clears_raiser) == (verdict, True)
    assert decide(STORED, success(read), NOW).verdict is None
    unknown = replace(STORED, latest_chapter_num=None, by_person=True, raised_by=7)
    assert decide(unknown, success(read), NOW).verdict is None
