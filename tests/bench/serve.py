"""What `serve` takes: time to listening, resident memory and idle CPU.

Each in a process of its own, as an operator starts it, with six Lanes at rest and 2,000 Series just checked.
"""

import os
import signal
import statistics
from pathlib import Path
from urllib.parse import quote

import psycopg
import trio
from psycopg.conninfo import conninfo_to_dict

from bookmark_appliance.clock import SystemClock
from bookmark_appliance.embedded_postgres import EmbeddedPostgres
from tests.bench.disk_folder import disk_folder
from tests.bench.figures import Figure
from tests.serving_process import OWNER, Place, Serve

SERIES = 2_000
STARTS = 5
IDLE_SECONDS = 20.0

_MANY_SERIES = """
    WITH made AS (
        INSERT INTO series (site, series_id, title, series_url, latest_chapter, latest_chapter_num, latest_checked_at)
        SELECT (ARRAY['asura', 'comix', 'demonic', 'kagane', 'lightnovelworld', 'novelfull'])[1 + number %% 6],
               'series-' || number, 'The Title of Series Number ' || number,
               'https://asurascans.com/comics/series-' || number, 'Chapter 120', 120, %(now)s
        FROM generate_series(1, %(series)s) AS number
        RETURNING site, series_id
    )
    INSERT INTO bookmarks (reader_id, site, series_id, last_chapter, last_chapter_num, last_chapter_url, updated_at)
    SELECT readers.id, site, series_id, 'Chapter 100', 100, '', %(now)s
    FROM made, readers
"""


def run() -> list[Figure]:
    """Start, measure and stop it, on databases of its own: about a minute."""
    with disk_folder() as folder:
        return trio.run(_measure, folder)


async def _measure(folder: Path) -> list[Figure]:
    embedded = _place(folder / "embedded")
    first = await _start_and_stop(embedded)
    warm = [await _start_and_stop(embedded) for _ in range(STARTS)]
    (folder / "server").mkdir(0o711)
    server = EmbeddedPostgres(folder / "server", serve=True, settings={})
    await server.start()
    try:
        external = _place(folder / "external")
        external.environ |= {"DATABASE_URL": _address(server.conninfo), "TOKEN_KEY": "of the bench " * 3}
        await external.run("migrate")
        warm_external = [await _start_and_stop(external) for _ in range(STARTS)]
        with psycopg.connect(server.conninfo) as connection:
            connection.execute(_MANY_SERIES, {"now": SystemClock().now_ms(), "series": SERIES})
        at_rest = await _at_rest(external)
    finally:
        await server.stop()
    return [
        Figure("first start, embedded", first, "s"),
        Figure("start, embedded", statistics.median(warm), "s", most=2.5),
        Figure("start, external", statistics.median(warm_external), "s", most=1.5),
        *at_rest,
    ]


async def _start_and_stop(place: Place) -> float:
    """Seconds from the start to listening."""
    started = trio.current_time()
    async with place.serve() as serve:
        await serve.listening()
        took = trio.current_time() - started
        serve.signal(signal.SIGTERM)
        await serve.ended()
    return took


async def _at_rest(place: Place) -> list[Figure]:
    async with place.serve() as serve:
        await serve.listening()
        credential = place.credential(OWNER)
        memory, before = resident_mb(serve), _cpu_seconds(serve)
        await trio.sleep(IDLE_SECONDS)
        busy = _cpu_seconds(serve) - before
        async with serve.client(credential) as client:
            listed = await client.get("/bookmarks")
            assert len(listed.json()) == SERIES
        return [
            Figure(f"memory, {SERIES} Series", memory, "MB", most=90),
            Figure("memory once they were listed", resident_mb(serve), "MB", most=90),
            Figure("idle CPU of one core", 100 * busy / IDLE_SECONDS, "%", most=1),
        ]


def _place(folder: Path) -> Place:
    folder.mkdir(0o711)
    return Place(folder)


def _address(conninfo: str) -> str:
    parts = conninfo_to_dict(conninfo)
    return f"postgresql://{parts['user']}@/{parts['dbname']}?host={quote(str(parts['host']), safe='')}"


def resident_mb(serve: Serve) -> float:
    """What a process holds of the machine's memory."""
    pages = int(Path(f"/proc/{serve.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _cpu_seconds(serve: Serve) -> float:
    fields = Path(f"/proc/{serve.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
