"""One Poll of one Series: stamp, read, record."""

import logging
from dataclasses import dataclass

import trio

from bookmark_appliance.clock import Clock
from bookmark_appliance.database import DATABASE_ERRORS, Database
from bookmark_appliance.lanes.outcome import Judgement, Outcome
from bookmark_appliance.lanes.pace import due_terms
from bookmark_appliance.lanes.recording import ReadListener, nobody_listens, record_failing, record_reading
from bookmark_appliance.lanes.refusals import note_answer
from bookmark_appliance.lanes.request_slots import HeldSlot
from bookmark_appliance.lanes.routing import Route
from bookmark_appliance.lanes.series_read import SeriesRead, SeriesReader, log_read
from bookmark_appliance.lanes.site import Site
from bookmark_appliance.lanes.supervision import last_word
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.due import StampedSeries, stamp_if_due
from bookmark_appliance.store.series import give_back_stamp

RECORD_SECONDS = 5.0
"""How long a Poll that is being cut may take to write what its read came to."""

GIVE_BACK_SECONDS = 2.0
"""How long a cut Poll may take to give its stamp back while everything else is being cancelled."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PollResult:
    """`backed_off` says that this answer began the Site's backoff: the pass ends here.

    `stamped` is False when not even the check stamp could be written: the Series is as due as it was.
    """

    outcome: Outcome
    backed_off: bool = False
    browser_answered: bool = False
    stamped: bool = True


class Poller:
    """Polls the Series of one Site."""

    def __init__(
        self,
        site: Site,
        database: Database,
        reader: SeriesReader,
        clock: Clock,
        recorded: ReadListener = nobody_listens,
    ) -> None:
        self._site = site
        self._database = database
        self._reader = reader
        self._clock = clock
        self._recorded = recorded

    async def poll(self, series_id: str, way: Route, slot: HeldSlot) -> PollResult | None:
        """Check one Series once over `way`, from `slot` on; None when it is no longer due, and nothing was asked.

        A crash inside the check is contained: it is one Series' outcome, never the pass's end (LANE-027, LANE-048).
        """
        key = SeriesKey(self._site.name, series_id)
        stamp = None
        try:
            stamp = await self._stamp(key)
            if stamp is None:
                return None
            read = await self._read(key, stamp, way, slot)
            # What was answered is recorded even while we are being stopped: the Site is not asked again for a rest.
            with last_word(RECORD_SECONDS):
                return await self._record(key, stamp, read, way)
            log.error("%s: what was read of it was lost: the database did not take it in time", key)
        except DATABASE_ERRORS as error:
            log.warning("%s: the database failed during its Poll: %s", key, error)
        except Exception:
            log.exception("%s: its Poll crashed", key)
        await self._record_error(key)
        return PollResult(Outcome.ERRORS, stamped=stamp is not None)

    async def _stamp(self, key: SeriesKey) -> StampedSeries | None:
        """Write the check stamp first, so that a page that kills us is not asked for again at once.

        In a transaction, whose end is not cut: a stamp that was written is known, and can be given back.
        """
        async with self._database.transaction() as connection:
            return await stamp_if_due(connection, key, due_terms(self._site, self._clock.now_ms()))

    async def _read(self, key: SeriesKey, stamp: StampedSeries, way: Route, slot: HeldSlot) -> SeriesRead:
        """Read the page; a read that we cut short, or that lost the browser, asked nothing and gives the stamp back."""
        series = stamp.series
        try:
            read = await self._reader.read(
                self._site,
                series.series_url,
                way,
                slot,
                kept=stamp.kept,
                conditional=not stamp.forced and bool(series.cover_address) and series.doubtful is None,
            )
        except BaseException as error:
            if not isinstance(error, Exception):
                await self._give_back(key, stamp)
            raise
        log_read(key, read)
        if read.judgement.outcome is Outcome.UNREACHABLE:
            await self._give_back(key, stamp)
        return read

    async def _give_back(self, key: SeriesKey, stamp: StampedSeries) -> None:
        with trio.move_on_after(GIVE_BACK_SECONDS, shield=True):
            try:
                async with self._database.connection() as connection:
                    await give_back_stamp(connection, key, stamp.at, stamp.series.checked_at)
            except DATABASE_ERRORS as error:
                log.warning("%s: its check stamp could not be given back: %s", key, error)

    async def _record(self, key: SeriesKey, stamp: StampedSeries, read: SeriesRead, way: Route) -> PollResult:
        now = self._clock.now_ms()
        outcome = read.judgement.outcome
        async with self._database.transaction() as connection:
            recorded = await record_reading(connection, key, read, stamp.series, now)
            if recorded.stored is None:
                await give_back_stamp(connection, key, stamp.at, stamp.series.checked_at)
        if recorded.stored is not None:
            self._recorded(key, recorded.stored, read.judgement, stamp.forced)
            try:
                async with self._database.connection() as connection:
                    await record_failing(connection, key, outcome, now)
            except DATABASE_ERRORS as error:
                log.warning("%s: its failure row could not be written: %s", key, error)
        answered = way is Route.BROWSER and outcome not in (Outcome.UNREACHABLE, Outcome.UNFETCHABLE)
        return PollResult(outcome, recorded.backed_off, answered)

    async def _record_error(self, key: SeriesKey) -> None:
        """An error of our own is an outcome like any other: it begins a run of failures, and ends one of refusals."""
        now = self._clock.now_ms()
        try:
            async with self._database.transaction() as connection:
                await note_answer(connection, key.site, Judgement(Outcome.ERRORS), now)
                await record_failing(connection, key, Outcome.ERRORS, now)
        except DATABASE_ERRORS as error:
            log.warning("%s: its error could not be recorded: %s", key, error)
