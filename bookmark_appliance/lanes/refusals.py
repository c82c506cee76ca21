"""Refusals in a row at one Site, whoever asked: two of them, and the Site is left alone for a while (LANE-030)."""

import logging

from psycopg import AsyncConnection

from bookmark_appliance.clock import MINUTE_MS
from bookmark_appliance.lanes.gates import backoff_ms
from bookmark_appliance.lanes.outcome import Judgement, Outcome
from bookmark_appliance.store.lane_rows import back_off, count_refusal, end_refusals

REFUSALS_THAT_END_A_PASS = 2

log = logging.getLogger(__name__)


async def note_answer(connection: AsyncConnection, site: str, judgement: Judgement, now_ms: int) -> bool:
    """Count what a Site answered; call it inside a transaction. True when this answer began a backoff.

    Any outcome but a refusal ends the run (LANE-031). The backoff counts from `now_ms`, when it was earned (LANE-036).
    """
    if judgement.outcome is not Outcome.REFUSED:
        await end_refusals(connection, site)
        return False
    if await count_refusal(connection, site) < REFUSALS_THAT_END_A_PASS:
        return False
    length = backoff_ms(judgement.retry_after_ms)
    await back_off(connection, site, now_ms, length)
    log.warning("%s refuses us: it is left alone for %d min", site, length // MINUTE_MS)
    return True
