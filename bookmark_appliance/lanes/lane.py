"""A Poll Lane: pass, sleep, repeat. The rules are in `gates`, `pace` and the due query; here is the waiting."""

import logging
from collections import deque

import trio

from bookmark_appliance.clock import HOUR_MS, MINUTE_MS, SECOND_MS, Clock
from bookmark_appliance.database import DATABASE_ERRORS, Database
from bookmark_appliance.lanes.fault_watch import FaultWatch
from bookmark_appliance.lanes.gates import ASLEEP_PACE_MS, Declined, bounded, first_gate, lateness_ms, wakes_browser
from bookmark_appliance.lanes.outcome import Outcome
from bookmark_appliance.lanes.pace import (
    LONGEST_LOOK_MS,
    QUERY_FAILED_PACE_MS,
    Gap,
    due_terms,
    effective_gap,
    sleep_until,
)
from bookmark_appliance.lanes.poll import Poller
from bookmark_appliance.lanes.recording import ReadListener, nobody_listens
from bookmark_appliance.lanes.request_slots import RequestSlots
from bookmark_appliance.lanes.routing import Route
from bookmark_appliance.lanes.series_read import SeriesReader
from bookmark_appliance.lanes.site import Site
from bookmark_appliance.lanes.supervision import last_word
from bookmark_appliance.lanes.tally import Tally
from bookmark_appliance.store.due import DueSeries, due_series, eligible_count, forced_series, next_due_at
from bookmark_appliance.store.lane_passes import latest_pass, record_pass
from bookmark_appliance.store.lane_rows import LaneRow, lane_row, shorten_waits

RECORD_SECONDS = 5.0
"""How long a pass that is being cut may take to write its row."""

log = logging.getLogger(__name__)


class Lane:
    """One Site's stream of Polls."""

    def __init__(
        self,
        site: Site,
        database: Database,
        reader: SeriesReader,
        slots: RequestSlots,
        faults: FaultWatch,
        clock: Clock,
        recorded: ReadListener = nobody_listens,
    ) -> None:
        self.site = site
        self._database = database
        self._reader = reader
        self._slots = slots
        self._faults = faults
        self._clock = clock
        self._poller = Poller(site, database, reader, clock, recorded)
        self._nudged = trio.Event()

    @property
    def name(self) -> str:
        """What its task and its log lines are called."""
        return f"lane[{self.site.name}]"

    async def run(self) -> None:
        """Pass, then sleep, until cancelled; the first pass at once (LANE-002)."""
        while True:
            self._nudged = trio.Event()
            await self._sleep_until(await self.run_pass())

    def nudge(self) -> None:
        """Something of this Site has changed: look at the rows now instead of at the next look."""
        self._nudged.set()

    async def run_pass(self) -> int:
        """One sweep; returns the moment of the next, in ms. Leaves exactly one row, however it ends (LANE-037)."""
        tally = Tally(ran_at=self._clock.now_ms())
        try:
            next_run = await self._sweep(tally)
        except BaseException:
            tally.cut = True
            raise
        finally:
            with last_word(RECORD_SECONDS) as recording:
                await self._record(tally)
            if recording.cancelled_caught:
                log.error("%s: the row of its pass was lost: the database did not take it in time", self.site.name)
        if words := tally.in_words():
            log.info("%s: %s", self.site.name, words)
        await self._faults.judge(self.site.name, self._clock.now_ms())
        return next_run

    async def _sweep(self, tally: Tally) -> int:
        """The gates in LANE-003's order, then the loop."""
        now = tally.ran_at
        gate = self._gate(await self._lane_row(), now)
        if isinstance(gate, Declined):
            tally.skip = gate.skip
            if gate.skip == "no-fetcher":
                tally.gap = Gap(self.site.gap_ms, clamped=False)
            return now + gate.left_ms
        tally.gap = Gap(self.site.gap_ms, clamped=False)
        try:
            async with self._database.connection() as connection:
                due = await due_series(connection, self.site.name, due_terms(self.site, now))
        except DATABASE_ERRORS as error:
            return self._query_failed(tally, "due-query", error)
        tally.due = len(due)
        if gate is Route.BROWSER and not wakes_browser(due, self.site.rest_ms, now):
            tally.skip = "asleep"
            return now + ASLEEP_PACE_MS if due else await self._next_run(tally.gap)
        try:
            async with self._database.connection() as connection:
                eligible = await eligible_count(connection, self.site.name)
        except DATABASE_ERRORS as error:
            return self._query_failed(tally, "eligible-count", error)
        if not due and not eligible:
            tally.skip = "nothing-eligible"
            return now + self.site.rest_ms
        tally.gap = effective_gap(self.site.gap_ms, self.site.rest_ms, eligible)
        self._tell_strain(tally.gap, eligible, lateness_ms(due, now))
        try:
            await self._poll_all(due, tally, tally.gap)
        except DATABASE_ERRORS as error:
            log.warning("%s: its pass ends, the database gave it no turn: %s", self.site.name, error)
            tally.stopped_by("due-query")
            return self._clock.now_ms() + QUERY_FAILED_PACE_MS
        return await self._next_run(tally.gap)

    async def _poll_all(self, due: list[DueSeries], tally: Tally, gap: Gap) -> None:
        """Poll what is due, a gap apart. What has changed meanwhile is looked at before each fetch (LANE-044).

        A turn in which nothing could be asked is the next Series'. Raises what the database raises when there is none.
        """
        queue = deque(series.series_id for series in due)
        unstampable: set[str] = set()
        slot = None
        while queue:
            slot = slot or await self._slots.take(self.site.name, gap.spacing_ms)
            way, forced = await self._look()
            if isinstance(way, Declined):
                tally.stopped_by(way.skip)
                return
            series_id = next((one for one in forced if one not in unstampable), None)
            if series_id is None:
                series_id = queue.popleft()
            elif series_id in queue:
                queue.remove(series_id)
            else:
                tally.due += 1
            result = await self._poller.poll(series_id, way, slot)
            if result is None:
                tally.due -= 1  # finished, dropped, claimed or checked meanwhile: nothing is owed any more
                continue
            tally.count(result)
            if not result.stamped:
                unstampable.add(series_id)  # still forced, and would be tried at each slot for ever
            if result.backed_off or result.outcome is Outcome.UNREACHABLE:
                return
            if result.outcome is not Outcome.UNFETCHABLE or slot.used:
                slot = None

    async def _look(self) -> tuple[Route | Declined, list[str]]:
        """The gate as it stands now, and the Series that jump the queue."""
        now = self._clock.now_ms()
        try:
            async with self._database.connection() as connection:
                row = await lane_row(connection, self.site.name)
                forced = await forced_series(connection, self.site.name, due_terms(self.site, now))
        except DATABASE_ERRORS as error:
            log.warning("%s: what changed during its pass could not be read: %s", self.site.name, error)
            return self._gate(LaneRow(), now), []
        return self._gate(bounded(row, now), now), [series.series_id for series in forced]

    def _gate(self, row: LaneRow, now: int) -> Route | Declined:
        plain, browser = self._reader.has(Route.PLAIN), self._reader.has(Route.BROWSER)
        return first_gate(self.site, row, now, plain=plain, browser=browser)

    async def _next_run(self, gap: Gap) -> int:
        """When the rows say that this Lane has something to do again."""
        now = self._clock.now_ms()
        gate = self._gate(await self._lane_row(), now)
        if isinstance(gate, Declined):
            return now + gate.left_ms
        try:
            async with self._database.connection() as connection:
                moment = await next_due_at(connection, self.site.name, due_terms(self.site, now))
        except DATABASE_ERRORS as error:
            log.warning("%s: the next due moment could not be read: %s", self.site.name, error)
            return now + QUERY_FAILED_PACE_MS
        return sleep_until(moment, now, gap.ms, self.site.rest_ms)

    async def _sleep_until(self, moment: int) -> None:
        """Sleep in looks of at most a minute that re-read the rows and record nothing (LANE-002)."""
        while (left := moment - self._clock.now_ms()) > 0:
            with trio.move_on_after(min(left, LONGEST_LOOK_MS) / SECOND_MS):
                await self._nudged.wait()
            if self._clock.now_ms() >= moment:
                return
            self._nudged = trio.Event()  # before the rows are read: what is told from here on ends the next wait
            moment = min(moment, await self._next_run(Gap(0, clamped=False)))

    async def _lane_row(self) -> LaneRow:
        """The Lane's row, bounded; as if there were none when it can't be read (LANE-004)."""
        now = self._clock.now_ms()
        try:
            async with self._database.connection() as connection:
                stored = await lane_row(connection, self.site.name)
                row = bounded(stored, now)
                if row != stored:
                    await shorten_waits(connection, self.site.name, row)
                return row
        except DATABASE_ERRORS as error:
            log.warning("%s: its pause and backoff could not be read: %s", self.site.name, error)
            return LaneRow()

    def _tell_strain(self, gap: Gap, eligible: int, late_ms: int) -> None:
        if gap.clamped:
            log.warning("%s: %d Series want more Polls than one a second", self.site.name, eligible)
        if late_ms > self.site.rest_ms:
            hours, minutes = divmod(late_ms // MINUTE_MS, HOUR_MS // MINUTE_MS)
            log.warning("%s: its longest waiting Series is %dh%02dm overdue", self.site.name, hours, minutes)

    def _query_failed(self, tally: Tally, skip: str, error: BaseException) -> int:
        log.warning("%s: %s failed: %s", self.site.name, skip, error)
        tally.skip = skip
        return tally.ran_at + QUERY_FAILED_PACE_MS

    async def _record(self, tally: Tally) -> None:
        try:
            async with self._database.transaction() as connection:
                previous = await latest_pass(connection, self.site.name)
                await record_pass(connection, tally.row(self.site, previous), self._clock.now_ms())
        except DATABASE_ERRORS as error:
            log.error("%s: the row of its pass was lost: %s", self.site.name, error)
