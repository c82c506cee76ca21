"""One Poll of one Series: stamp, read, record."""

import logging
from dataclasses import dataclass

import trio

from bookmark_appliance.clock import Clock
from bookmark_appliance.database import DATABASE_ERRORS, Database
from bookmark_appliance.lanes.outcome import Judgement, Outcome
from bookmark_appliance.lanes.pace import due_terms
from bookmark_appliance.lanes.reading_decision import FAILURES, decide_change
from bookmark_appliance.lanes.refusals import note_answer
from bookmark_appliance.lanes.request_slots import HeldSlot, RequestSlots
from bookmark_appliance.lanes.series_read import SeriesReader, log_read
from bookmark_appliance.lanes.site import Site
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.due import still_due
from bookmark_appliance.store.series import (
    StoredSeries,
    apply_change,
    clear_failure,
    give_back_stamp,
    lock_series,
    record_failure,
    stamp_checked,
)

GIVE_BACK_SECONDS = 2.0
"""How long a cut Poll may take to give its stamp back while everything else is being cancelled."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PollResult:
    """`refused_out` says that this answer began a backoff: the pass ends here."""

    outcome: Outcome
    refused_out: bool = False


@dataclass(frozen=True, slots=True)
class _Stamp:
    at: int
    before: int
    series: StoredSeries


class Poller:
    """Polls the Series of one Site. The caller holds the request slot."""

    def __init__(self, site: Site, database: Database, reader: SeriesReader, slots: RequestSlots, clock: Clock) -> None:
        self._site = site
        self._database = database
        self._reader = reader
        self._slots = slots
        self._clock = clock

    async def poll(self, series_id: str) -> PollResult | None:
        """Check one Series once; None when it is no longer due, and nothing was asked.

        A crash inside the check is contained: it is one Series' outcome, never the pass's end (LANE-027, LANE-048).
        """
        key = SeriesKey(self._site.name, series_id)
        try:
            stamp = await self._stamp(key)
            if stamp is None:
                return None
            judgement = await self._read(key, stamp)
            return await self._record(key, judgement)
        except DATABASE_ERRORS as error:
            log.warning("%s: the database failed during its Poll: %s", key, error)
        except Exception:
            log.exception("%s: its Poll crashed", key)
        return PollResult(Outcome.ERRORS)

    async def _stamp(self, key: SeriesKey) -> _Stamp | None:
        """Write the check stamp before anything is asked, so that a Site that kills us is not asked again at once."""
        now = self._clock.now_ms()
        async with self._database.transaction() as connection:
            due = await still_due(connection, key, due_terms(self._site, now))
            series = await lock_series(connection, key) if due else None
            if due is None or series is None:
                return None
            await stamp_checked(connection, key, now)
        return _Stamp(now, due.checked_at, series)

    async def _read(self, key: SeriesKey, stamp: _Stamp) -> Judgement:
        """Read the page; a read that we cut short, or that lost the browser, asked nothing and gives the stamp back."""
        try:
            read = await self._reader.read(self._site, stamp.series.series_url, HeldSlot(self._slots, self._site.name))
        except BaseException as error:
            if not isinstance(error, Exception):
                await self._give_back(key, stamp)
            raise
        log_read(key, read)
        if read.judgement.outcome is Outcome.UNREACHABLE:
            await self._give_back(key, stamp)
        return read.judgement

    async def _give_back(self, key: SeriesKey, stamp: _Stamp) -> None:
        with trio.move_on_after(GIVE_BACK_SECONDS, shield=True):
            try:
                async with self._database.connection() as connection:
                    await give_back_stamp(connection, key, stamp.at, stamp.before)
            except DATABASE_ERRORS as error:
                log.warning("%s: its check stamp could not be given back: %s", key, error)

    async def _record(self, key: SeriesKey, judgement: Judgement) -> PollResult:
        """Write what the page said, against the row as it stands now: a Reader may have written during the read."""
        now = self._clock.now_ms()
        async with self._database.transaction() as connection:
            refused_out = await note_answer(connection, self._site.name, judgement, now)
            stored = await lock_series(connection, key)
            if stored is not None:
                await apply_change(connection, key, decide_change(stored, judgement, now))
                if judgement.outcome is Outcome.SUCCESS:
                    await clear_failure(connection, key)
                elif judgement.outcome in FAILURES:
                    await record_failure(connection, key, judgement.outcome, now)
        return PollResult(judgement.outcome, refused_out)
