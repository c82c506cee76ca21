"""Judges the faults after every pass and keeps the episodes; nothing that fails here touches the pass (FAULT-014)."""

import logging
from collections.abc import Awaitable, Mapping
from typing import TypeVar

import psycopg

from bookmark_appliance.database import DATABASE_ERRORS, Database
from bookmark_appliance.lanes.faults import (
    OWNER_WINDOW_MS,
    Condition,
    Fault,
    FaultEvidence,
    judge_faults,
    proves_recovery,
)
from bookmark_appliance.lanes.pace import CLOCK_TOLERANCE_MS
from bookmark_appliance.lanes.site import Site
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.store import fault_rows
from bookmark_appliance.store.lane_passes import LanePass

T = TypeVar("T")

log = logging.getLogger(__name__)


class FaultWatch:
    """The faults of one deployment; a browser that was never configured is a setting and no fault (FAULT-006)."""

    def __init__(self, database: Database, sites: Mapping[str, Site], *, browser_configured: bool) -> None:
        self._database = database
        self._sites = sites
        self._browser_configured = browser_configured

    async def judge(self, site_name: str, now_ms: int) -> None:
        """Open the episodes of new faults, close those that the newest pass of `site_name` proves over.

        Raises nothing but cancellation.
        """
        try:
            async with self._database.connection() as connection:
                evidence = await self.gather(connection, now_ms)
                faults = judge_faults(self._sites.values(), evidence, now_ms)
                await self._open_new(connection, faults)
                latest = evidence.latest.get(site_name)
                if latest is not None:
                    await self._close_over(connection, faults, evidence.unjudged, self._sites[site_name], latest)
        except DATABASE_ERRORS as error:
            log.warning("the faults could not be judged: %s", error)
        except Exception:
            log.exception("judging the faults crashed")

    async def gather(self, connection: TrioConnection, now_ms: int) -> FaultEvidence:
        """What the judgement rests on now; a derived read that fails is logged and leaves its condition unjudged."""
        unjudged = set[Condition]()

        async def derived(condition: Condition, read: Awaitable[T], otherwise: T) -> T:
            try:
                return await read
            except psycopg.Error as error:
                log.warning("%s cannot be judged: %s", condition, error)
                unjudged.add(condition)
                return otherwise

        until = now_ms + CLOCK_TOLERANCE_MS
        return FaultEvidence(
            latest=await fault_rows.latest_passes(connection, self._sites, until),
            refusing_since=await derived(
                Condition.NO_BROWSER_ROUTE, fault_rows.refusing_runs(connection, self._sites, until), {}
            ),
            browser_reached_at=await derived(
                Condition.SIDECAR_DOWN, fault_rows.browser_reached_at(connection, until), None
            ),
            layout_broken=await derived(
                Condition.ADAPTER_BROKEN,
                fault_rows.broken_layouts(connection, now_ms - OWNER_WINDOW_MS),
                frozenset[str](),
            ),
            browser_configured=self._browser_configured,
            unjudged=frozenset(unjudged),
        )

    async def _open_new(self, connection: TrioConnection, faults: list[Fault]) -> None:
        for fault in faults:
            if await fault_rows.open_episode(connection, fault.condition, fault.site, fault.since):
                log.error("fault: %s %s", fault.site or "browser", fault.condition)

    async def _close_over(
        self,
        connection: TrioConnection,
        faults: list[Fault],
        unjudged: frozenset[Condition],
        site: Site,
        latest: LanePass,
    ) -> None:
        standing = {(fault.condition, fault.site) for fault in faults}
        for episode in await fault_rows.open_episodes(connection):
            if episode.condition not in list(Condition):
                continue  # another version of us told of it, and knows what would prove it over
            condition = Condition(episode.condition)
            if (condition, episode.site) in standing or condition in unjudged:
                continue
            if not proves_recovery(Fault(condition, episode.site, episode.since), site, latest):
                continue
            if await fault_rows.close_episode(connection, condition, episode.site):
                log.info("fault over: %s %s", episode.site or "browser", condition)
