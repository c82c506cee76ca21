"""A Poll Lane: pass, sleep, repeat. The rules are in `pace` and the due query; here is the waiting and recording."""

import logging
from collections import Counter
from dataclasses import dataclass, field

import trio

from bookmark_appliance.clock import SECOND_MS, Clock
from bookmark_appliance.database import DATABASE_ERRORS, Database
from bookmark_appliance.lanes.outcome import Outcome
from bookmark_appliance.lanes.pace import (
    LONGEST_LOOK_MS,
    NO_FETCHER_PACE_MS,
    QUERY_FAILED_PACE_MS,
    Gap,
    declined,
    due_terms,
    effective_gap,
    sleep_until,
)
from bookmark_appliance.lanes.poll import Poller
from bookmark_appliance.lanes.request_slots import RequestSlots
from bookmark_appliance.lanes.series_read import SeriesReader
from bookmark_appliance.lanes.site import Site
from bookmark_appliance.store.due import DueSeries, due_series, eligible_count, next_due_at
from bookmark_appliance.store.lane_passes import LanePass, latest_pass, record_pass
from bookmark_appliance.store.lane_rows import LaneRow, lane_row

RECORD_SECONDS = 5.0
"""How long a pass that is being cut may take to write its row."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Tally:
    """What a running pass has come to so far; it becomes the pass row."""

    ran_at: int
    gap: Gap | None = None
    skip: str = ""
    due: int = 0
    checked: int = 0
    outcomes: Counter[Outcome] = field(default_factory=Counter)

    def count(self, outcome: Outcome) -> None:
        """Add one check. A lost browser ends the pass before the check counts (LANE-028, LANE-033)."""
        self.outcomes[outcome] += 1
        if outcome is not Outcome.UNREACHABLE:
            self.checked += 1

    def row(self, site: Site, previous: LanePass | None) -> LanePass:
        """The row of this pass; one that never chose a gap copies the figures of the row before (LANE-038)."""
        carried = previous if self.gap is None else None
        gap = self.gap or Gap(0, clamped=False)
        return LanePass(
            site=site.name,
            ran_at=self.ran_at,
            skip=self.skip,
            due=carried.due if carried else self.due,
            checked=carried.checked if carried else self.checked,
            gap_ms=carried.gap_ms if carried else gap.ms,
            clamped=carried.clamped if carried else gap.clamped,
            refused=self.outcomes[Outcome.REFUSED],
            unreachable=self.outcomes[Outcome.UNREACHABLE],
            no_chapter=self.outcomes[Outcome.NO_CHAPTER],
            unfetchable=self.outcomes[Outcome.UNFETCHABLE],
            not_found=self.outcomes[Outcome.NOT_FOUND],
            errors=self.outcomes[Outcome.ERRORS],
        )


class Lane:
    """One Site's stream of Polls."""

    def __init__(self, site: Site, database: Database, reader: SeriesReader, slots: RequestSlots, clock: Clock) -> None:
        self.site = site
        self._database = database
        self._reader = reader
        self._slots = slots
        self._clock = clock
        self._poller = Poller(site, database, reader, slots, clock)
        self._nudged = trio.Event()

    @property
    def name(self) -> str:
        """What its task and its log lines are called."""
        return f"lane[{self.site.name}]"

    async def run(self) -> None:
        """Pass, then sleep, until cancelled; the first pass at once (LANE-002)."""
        while True:
            await self._sleep_until(await self.run_pass())

    def nudge(self) -> None:
        """Something of this Site has changed: look at the rows now instead of at the next look."""
        self._nudged.set()

    async def run_pass(self) -> int:
        """One sweep; returns the moment of the next, in ms. Leaves exactly one row, however it ends (LANE-037)."""
        tally = Tally(ran_at=self._clock.now_ms())
        try:
            return await self._sweep(tally)
        finally:
            with trio.move_on_after(RECORD_SECONDS, shield=True):
                await self._record(tally)

    async def _sweep(self, tally: Tally) -> int:
        """The gates in LANE-003's order, then the loop."""
        now = tally.ran_at
        if verdict := declined(await self._lane_row(), now):
            tally.skip, left = verdict
            return now + left
        tally.gap = Gap(self.site.gap_ms, clamped=False)
        if not self._reader.has_route(self.site):
            tally.skip = "no-fetcher"
            return now + NO_FETCHER_PACE_MS
        try:
            async with self._database.connection() as connection:
                due = await due_series(connection, self.site.name, due_terms(self.site, now))
        except DATABASE_ERRORS as error:
            return self._query_failed(tally, "due-query", error)
        tally.due = len(due)
        try:
            async with self._database.connection() as connection:
                eligible = await eligible_count(connection, self.site.name)
        except DATABASE_ERRORS as error:
            return self._query_failed(tally, "eligible-count", error)
        if not due and not eligible:
            tally.skip = "nothing-eligible"
            return now + self.site.rest_ms
        tally.gap = effective_gap(self.site.gap_ms, self.site.rest_ms, eligible)
        if tally.gap.clamped:
            log.warning("%s: %d Series want more Polls than one a second", self.site.name, eligible)
        await self._poll_all(due, tally)
        return await self._next_run(tally.gap)

    async def _poll_all(self, due: list[DueSeries], tally: Tally) -> None:
        assert tally.gap is not None
        for series in due:
            await self._slots.take(self.site.name, tally.gap.ms)
            if declined(await self._lane_row(), self._clock.now_ms()):
                return
            result = await self._poller.poll(series.series_id)
            if result is None:
                continue
            tally.count(result.outcome)
            if result.refused_out or result.outcome is Outcome.UNREACHABLE:
                return

    async def _next_run(self, gap: Gap) -> int:
        """When the rows say this Lane has something to do again."""
        now = self._clock.now_ms()
        if verdict := declined(await self._lane_row(), now):
            return now + verdict[1]
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
            self._nudged = trio.Event()
            with trio.move_on_after(min(left, LONGEST_LOOK_MS) / SECOND_MS):
                await self._nudged.wait()
            moment = min(moment, await self._next_run(Gap(0, clamped=False)))

    async def _lane_row(self) -> LaneRow:
        try:
            async with self._database.connection() as connection:
                return await lane_row(connection, self.site.name)
        except DATABASE_ERRORS as error:
            log.warning("%s: its pause and backoff could not be read: %s", self.site.name, error)
            return LaneRow()

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
