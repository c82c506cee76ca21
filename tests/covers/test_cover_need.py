"""Which cover work a read calls for, as a pure decision."""

from dataclasses import replace

import pytest

from bookmark_appliance.chapter import Chapter
from bookmark_appliance.covers.cover_need import CoverNeed, cover_need
from bookmark_appliance.lanes.outcome import Judgement, Outcome
from bookmark_appliance.lanes.site import Reading
from tests.lanes.test_reading_decision import STORED

ADDRESS = "ab" * 32
SOURCE = "https://cdn.asurascans.com/asura-images/covers/iron-orchard.webp"
NEW_SOURCE = "https://cdn.asurascans.com/asura-images/covers/iron-orchard-2.webp"
BLANK = STORED
WITH_SOURCE = replace(BLANK, cover=SOURCE)
WITH_COVER = replace(BLANK, cover=SOURCE, cover_address=ADDRESS)
FAILED = [outcome for outcome in Outcome if outcome not in (Outcome.SUCCESS, Outcome.NO_CHAPTER, Outcome.UNFETCHABLE)]


def page(cover: str | None, outcome: Outcome = Outcome.SUCCESS) -> Judgement:
    latest = Chapter(181, "Chapter 181") if outcome is Outcome.SUCCESS else None
    return Judgement(outcome, Reading(latest, cover))


@pytest.mark.parametrize("outcome", [Outcome.SUCCESS, Outcome.NO_CHAPTER])
def test_a_series_without_any_cover_takes_the_one_of_the_page(outcome: Outcome) -> None:
    """COV-001, COV-011: at its birth and at any later Poll, a number or none."""
    assert cover_need(BLANK, page(SOURCE, outcome), forced=False) == CoverNeed(SOURCE)
    assert cover_need(BLANK, page(None, outcome), forced=False) is None


def test_a_stored_source_without_an_address_is_tried_again() -> None:
    """COV-011: that source, whatever the page names now."""
    for published in (SOURCE, NEW_SOURCE, None):
        assert cover_need(WITH_SOURCE, page(published), forced=False) == CoverNeed(SOURCE)


def test_a_series_with_an_address_is_left_alone() -> None:
    """COV-011: also one whose source was never written."""
    for stored in (WITH_COVER, replace(WITH_COVER, cover="")):
        assert cover_need(stored, page(NEW_SOURCE), forced=False) is None


@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize("outcome", FAILED)
def test_a_failed_page_still_lets_the_stored_source_be_tried(outcome: Outcome, forced: bool) -> None:
    """COV-013: refused, lost, missing or broken; where nothing is stored, nothing is known."""
    assert cover_need(WITH_SOURCE, Judgement(outcome), forced=forced) == CoverNeed(SOURCE)
    assert cover_need(BLANK, Judgement(outcome), forced=forced) is None
    assert cover_need(WITH_COVER, Judgement(outcome), forced=forced) is None


@pytest.mark.parametrize("forced", [False, True])
def test_what_the_gate_or_the_routing_refused_calls_for_nothing(forced: bool) -> None:
    """COV-006, COV-013."""
    for stored in (BLANK, WITH_SOURCE, WITH_COVER):
        assert cover_need(stored, Judgement(Outcome.UNFETCHABLE), forced=forced) is None


def test_a_forced_poll_takes_what_the_page_shows_today() -> None:
    """COV-014: over nothing, a source or a Cover, the same source included, since its bytes may have changed."""
    for stored in (BLANK, WITH_SOURCE, WITH_COVER):
        for published in (SOURCE, NEW_SOURCE):
            assert cover_need(stored, page(published), forced=True) == CoverNeed(published, replaces=True)


def test_a_forced_poll_of_a_page_without_a_cover_takes_nothing_away() -> None:
    """COV-014: it goes on as any other."""
    assert cover_need(WITH_COVER, page(None), forced=True) is None
    assert cover_need(WITH_SOURCE, page(None), forced=True) == CoverNeed(SOURCE)
    assert cover_need(BLANK, page(None), forced=True) is None
