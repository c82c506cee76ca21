"""What a reading changes of its Series: one pure decision for Poll and Acquisition (LANE-047, LANE-050, LANE-054)."""

from dataclasses import dataclass, field
from enum import Enum, auto

from bookmark_appliance.chapter import Chapter
from bookmark_appliance.lanes.outcome import Judgement, Outcome
from bookmark_appliance.lanes.site import Reading
from bookmark_appliance.store.series import SeriesChange, StoredSeries

READABLE = frozenset({Outcome.SUCCESS, Outcome.NO_CHAPTER})
"""The outcomes whose page may be believed."""

FAILURES = frozenset({Outcome.NOT_FOUND, Outcome.NO_CHAPTER, Outcome.UNFETCHABLE, Outcome.ERRORS})
"""The outcomes of a run of failures; a refusal or a lost browser says nothing of a Series (FAIL-003)."""


class RaiseVerdict(Enum):
    """What a Poll came to about the Reader whose Sighting raised the number (SIG-010, SIG-011)."""

    AGREEMENT = auto()
    CONTRADICTION = auto()


@dataclass(frozen=True, slots=True)
class ReadingDecision:
    """What to write, and what to hold for or against the raiser, if there is one."""

    change: SeriesChange = field(default_factory=SeriesChange)
    verdict: RaiseVerdict | None = None


def overtaken(asked: StoredSeries, stored: StoredSeries) -> bool:
    """Whether a person has written of this Series since its page was asked for: what they wrote, a later page judges.

    An address that was repaired meanwhile is another page altogether (SIG-010, SER-014, SER-017).
    """
    return any(
        getattr(asked, name) != getattr(stored, name)
        for name in ("series_url", "latest_chapter_num", "raised_by", "corrected_at")
    )


def decide(stored: StoredSeries, judgement: Judgement, now_ms: int) -> ReadingDecision:
    """What a reading changes, given the row as it stands now. An unreadable page changes nothing (LANE-051)."""
    if judgement.outcome not in READABLE:
        return ReadingDecision()
    reading = judgement.reading
    completed = _completed_stamp(stored, reading, now_ms)
    cover = reading.cover if not stored.cover and not stored.cover_address else None
    if reading.latest is None:
        return ReadingDecision(SeriesChange(site_completed_at=completed, cover=cover))
    if _is_doubtful(stored, reading.latest):
        return ReadingDecision(SeriesChange(site_completed_at=completed, cover=cover, doubtful=reading.latest))
    change = SeriesChange(
        latest=None if reading.latest.number == stored.latest_chapter_num else reading.latest,
        clears_raiser=stored.raised_by is not None,
        clears_correction=stored.corrected_at != 0,
        confirms=stored.by_person,
        site_completed_at=completed,
        cover=cover,
        drops_doubtful=stored.doubtful is not None,
    )
    return ReadingDecision(change, _judge_raise(stored, reading.latest))


def _is_doubtful(stored: StoredSeries, read: Chapter) -> bool:
    """Whether this number must be read again before it is published (LANE-054).

    Only a number that a machine established is defended: a Reader's and a Correction are corrected at once. A
    second reading as far off in the same direction, the same one included, is believed.
    """
    number = stored.latest_chapter_num
    if number is None or stored.by_person:
        return False
    direction = _leap(number, read.number)
    if direction == 0:
        return False
    return stored.doubtful is None or _leap(number, stored.doubtful.number) != direction


def _leap(stored: float, read: float) -> int:
    """1 or -1 for a number too far above or below the stored one to be taken on one reading's word, else 0."""
    if read - stored > max(50, stored / 5):
        return 1
    if stored - read > max(5, stored / 10):
        return -1
    return 0


def _judge_raise(stored: StoredSeries, read: Chapter) -> RaiseVerdict | None:
    """A page that is ahead of the raise says nothing of the raiser (SIG-012, SIG-013)."""
    if stored.raised_by is None or stored.latest_chapter_num is None or read.number > stored.latest_chapter_num:
        return None
    return RaiseVerdict.AGREEMENT if read.number == stored.latest_chapter_num else RaiseVerdict.CONTRADICTION


def _completed_stamp(stored: StoredSeries, reading: Reading, now_ms: int) -> int | None:
    """Set when the page first says completed, zeroed when it stops saying so, else left alone (LANE-050)."""
    if reading.completed == (stored.site_completed_at != 0):
        return None
    return now_ms if reading.completed else 0
