"""What a reading changes of its Series: one pure decision for Poll and Acquisition (LANE-047, LANE-050, LANE-051)."""

from bookmark_appliance.lanes.outcome import Judgement, Outcome
from bookmark_appliance.lanes.site import Reading
from bookmark_appliance.store.series import SeriesChange, StoredSeries

READABLE = frozenset({Outcome.SUCCESS, Outcome.NO_CHAPTER})
"""The outcomes whose page may be believed."""

FAILURES = frozenset({Outcome.NOT_FOUND, Outcome.NO_CHAPTER, Outcome.UNFETCHABLE, Outcome.ERRORS})
"""The outcomes of a run of failures; a refusal or a lost browser says nothing of a Series (FAIL-003)."""


def decide_change(stored: StoredSeries, judgement: Judgement, now_ms: int) -> SeriesChange:
    """What to write, given the row as it stands now.

    A number equal to the stored one is not written but confirms it: a Correction and a raise by a Reader are settled
    either way (SER-015, SER-016). An unreadable page changes nothing.
    """
    if judgement.outcome not in READABLE:
        return SeriesChange()
    reading = judgement.reading
    latest = reading.latest
    return SeriesChange(
        latest=latest if latest is not None and latest.number != stored.latest_chapter_num else None,
        clears_raiser=latest is not None and stored.raised_by is not None,
        clears_correction=latest is not None and stored.corrected_at != 0,
        site_completed_at=_completed_stamp(stored, reading, now_ms),
        cover=reading.cover if not stored.cover and not stored.cover_address else None,
    )


def _completed_stamp(stored: StoredSeries, reading: Reading, now_ms: int) -> int | None:
    """Set when the page first says completed, zeroed when it stops saying so, else left alone (LANE-050)."""
    if reading.completed == (stored.site_completed_at != 0):
        return None
    return now_ms if reading.completed else 0
