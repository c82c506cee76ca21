"""Writes what a read came to, in the transaction that its caller opened: the same for Poll and Acquisition."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from psycopg import AsyncConnection

from bookmark_appliance.lanes.outcome import Judgement, Outcome
from bookmark_appliance.lanes.reading_decision import (
    FAILURES,
    RaiseVerdict,
    ReadingDecision,
    decide,
    overtaken,
)
from bookmark_appliance.lanes.refusals import note_answer
from bookmark_appliance.lanes.series_read import SeriesRead
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.lane_rows import mark_browser_lost
from bookmark_appliance.store.page_validators import forget_reading, keep_reading
from bookmark_appliance.store.series import StoredSeries, apply_change, clear_failure, lock_series, record_failure
from bookmark_appliance.store.sightings import lock_judged, record_agreement, record_contradiction

log = logging.getLogger(__name__)

_PAGE_AS_BEFORE = frozenset({Outcome.UNREACHABLE, Outcome.UNFETCHABLE, Outcome.ERRORS})
"""Outcomes without a page of the Site's own: what was kept of the last one still holds."""


ReadListener = Callable[[SeriesKey, StoredSeries, Judgement, bool], None]
"""Told, after the commit, of each reading that was recorded: the Series as it stood before, what its page came to, and
whether its Poll was forced. Must neither block nor raise."""


def nobody_listens(*_: object) -> None:
    """The listener where there is none."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """`backed_off` says that this answer began the Site's backoff.

    `stored` is the Series as it stood before this reading; None when nothing was written of it, because it has gone or
    changed after it was asked for, and is due again.
    """

    backed_off: bool
    stored: StoredSeries | None = None


async def record_reading(
    connection: AsyncConnection, key: SeriesKey, read: SeriesRead, asked: StoredSeries, now_ms: int
) -> Recorded:
    """Write what a page said of its Series, which stood as `asked` when its page was asked for.

    Failure rows are the Poll's alone (record_failing).
    """
    backed_off = await note_answer(connection, key.site, read.judgement, now_ms)
    if read.judgement.outcome is Outcome.UNREACHABLE:
        await mark_browser_lost(connection, now_ms)
    stored = await lock_series(connection, key)
    if stored is None or overtaken(asked, stored):
        return Recorded(backed_off)
    decision = decide(stored, read.judgement, now_ms)
    if decision.verdict is not None and stored.raised_by is not None:
        await lock_judged(connection, key, stored.raised_by)
    await apply_change(connection, key, decision.change, now_ms)
    await _judge_raiser(connection, key, stored, decision, read)
    await _keep_or_forget(connection, key, read)
    _tell(key, stored, decision)
    return Recorded(backed_off, stored)


async def record_failing(connection: AsyncConnection, key: SeriesKey, outcome: Outcome, now_ms: int) -> None:
    """Begin, go on with or end a run of failures of this Series (FAIL-001 to FAIL-005)."""
    if outcome is Outcome.SUCCESS:
        await clear_failure(connection, key)
    elif outcome in FAILURES:
        await record_failure(connection, key, outcome, now_ms)


async def _judge_raiser(
    connection: AsyncConnection, key: SeriesKey, stored: StoredSeries, decision: ReadingDecision, read: SeriesRead
) -> None:
    if decision.verdict is None or stored.raised_by is None:
        return
    if decision.verdict is RaiseVerdict.AGREEMENT:
        await record_agreement(connection, stored.raised_by)
        return
    await record_contradiction(connection, stored.raised_by)
    latest = read.judgement.reading.latest
    log.warning(
        "%s: Reader %d reported %g, the Site says %g",
        key,
        stored.raised_by,
        stored.latest_chapter_num,
        latest.number if latest else None,
    )


async def _keep_or_forget(connection: AsyncConnection, key: SeriesKey, read: SeriesRead) -> None:
    if read.keep is not None:
        await keep_reading(connection, key, read.keep)
    elif read.had_kept and not read.not_modified and not _leaves_kept(read):
        await forget_reading(connection, key)


def _leaves_kept(read: SeriesRead) -> bool:
    """Whether no page came that could replace what was kept; a body that came and was not readable does (LANE-055)."""
    return read.judgement.outcome in _PAGE_AS_BEFORE and read.status != 200


def _tell(key: SeriesKey, stored: StoredSeries, decision: ReadingDecision) -> None:
    change = decision.change
    before = stored.latest_chapter or "nothing"
    if change.latest is not None:
        log.info("%s: %s, before it %s", key, change.latest.label, before)
    elif change.doubtful is not None:
        log.warning("%s: %s is too far from %s to be believed at once", key, change.doubtful.label, before)
