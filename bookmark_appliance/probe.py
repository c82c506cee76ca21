"""`probe`: one Series page, read or given as a saved body, judged as a Lane judges it and told in one line of JSON."""

import fcntl
import json
import time
from collections.abc import Mapping
from itertools import chain, repeat
from pathlib import Path

import trio

from bookmark_appliance.clock import SECOND_MS, SystemClock
from bookmark_appliance.config import Settings
from bookmark_appliance.fetchers import browser_fetcher, plain_fetcher
from bookmark_appliance.lanes.address_gate import fetchable
from bookmark_appliance.lanes.judgement import judge_page
from bookmark_appliance.lanes.outcome import Outcome
from bookmark_appliance.lanes.routing import Route, route
from bookmark_appliance.lanes.series_read import UNFETCHABLE, SeriesRead, SeriesReader
from bookmark_appliance.lanes.site import Site
from bookmark_appliance.page import MAX_BODY_BYTES, Page

PAUSE_SECONDS = 1.0
"""Before each request: a Site is asked once a second at most (LANE-056), and a probe has no database to ask."""


def judge_body(site: Site, series_url: str, status: int, headers: Mapping[str, str], body: bytes) -> SeriesRead:
    """Judge a saved answer; nothing is fetched. What lies beyond MAX_BODY_BYTES is cut off as the fetcher does.

    `headers` has lower-case names.
    """
    if not fetchable(site, series_url):
        return UNFETCHABLE
    kept = body[:MAX_BODY_BYTES]
    started = time.perf_counter()
    page = Page(status, headers, kept, series_url, truncated=len(body) > len(kept))
    judgement = judge_page(site, series_url, page, SystemClock().now_ms())
    return SeriesRead(judgement, status, len(kept), round((time.perf_counter() - started) * SECOND_MS))


def read_live(site: Site, series_url: str, settings: Settings) -> SeriesRead:
    """The read that a Lane makes, over the routes that this machine has. Probes of one build take turns."""
    reader = SeriesReader(SystemClock(), plain_fetcher(settings), browser_fetcher(settings))
    way = route(site, browser_usable=reader.has(Route.BROWSER))
    if way is None or not reader.has(way) or not fetchable(site, series_url):
        return UNFETCHABLE
    pauses = chain([0.0], repeat(PAUSE_SECONDS))

    async def pause() -> None:
        await trio.sleep(next(pauses))

    with Path(__file__).open("rb") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        time.sleep(PAUSE_SECONDS)  # here, so that `ms` is the Site's time
        return trio.run(reader.read, site, series_url, way, pause)


def line(site: Site, series_url: str, read: SeriesRead) -> str:
    """The line that `probe` prints, in the order of docs/INTERFACE.md; what is absent is null."""
    reading = read.judgement.reading
    latest = reading.latest
    return json.dumps(
        {
            "site": site.name,
            "series_url": series_url,
            "outcome": read.judgement.outcome,
            "latest": None if latest is None else _number(latest.number),
            "label": None if latest is None else latest.label,
            "cover": reading.cover,
            "completed": reading.completed,
            "status": read.status,
            "bytes": None if read.status is None else read.bytes,
            "ms": None if read.judgement.outcome is Outcome.UNFETCHABLE else read.ms,
        }
    )


def _number(number: float) -> float:
    return int(number) if number.is_integer() else number
