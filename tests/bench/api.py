"""Requests a second of the JSON API, as ratios to a bare route on the same server.

The cases take turns with the bare route, several rounds, so that what else the machine does meanwhile falls on both;
what is printed is the median of the ratios.
"""

import statistics
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import trio
from quart import Quart

from bookmark_appliance.clock import SystemClock
from bookmark_appliance.covers.cover_files import CoverFiles
from bookmark_appliance.covers.cover_keeper import CoverKeeper
from bookmark_appliance.credentials import derive_credential
from bookmark_appliance.database import Database, open_database
from bookmark_appliance.embedded_postgres import EmbeddedPostgres
from bookmark_appliance.postgres.migrations import migrate
from bookmark_appliance.secret import Secret
from bookmark_appliance.store.readers import Reader, add_reader, seed_owner
from bookmark_appliance.web.app import create_app
from bookmark_appliance.web.context import WebContext
from bookmark_appliance.web.server import serve_web
from tests.bench.disk_folder import disk_folder
from tests.bench.figures import Figure
from tests.bench.load import Load, Tally

CONNECTIONS = 16
ROUNDS = 5
SECONDS = 1.5
"""Of each case in each round."""

_KEY = Secret("a token key for the bench, 32 characters or more")
OK, _UNCHANGED = b"HTTP/1.1 200 ", b"HTTP/1.1 304 "
CHUNKED_END, _HEAD_END = b"\r\n0\r\n\r\n", b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked, and the least ratio to the bare route that it must reach."""

    name: str
    target: float
    load: Load


def run() -> list[Figure]:
    """Start a server and a database of their own, measure, and stop them: about a minute."""
    with disk_folder() as folder:
        return trio.run(_measure, folder)


async def _measure(folder: Path) -> list[Figure]:
    async with bench_database(folder) as database:
        app = create_app(bench_context(database, folder))
        async with serving(app) as (host, port):
            return await to_bare_route(host, port, await _cases(database, app, host, port))


@asynccontextmanager
async def serving(app: Quart) -> AsyncIterator[tuple[str, int]]:
    """`app` with a bare route, on a port of loopback."""

    @app.get("/bare")
    async def bare() -> str:
        return "ok"

    shutdown = trio.Event()
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(serve_web, app, listeners, shutdown=shutdown))
        host, port = listeners[0].socket.getsockname()[:2]
        yield host, port
        shutdown.set()


async def to_bare_route(host: str, port: int, cases: list[Case]) -> list[Figure]:
    """What each case reaches, as a ratio."""
    bare = case(host, port, "bare route", 1.0, request("GET", "/bare"), b"ok", end=CHUNKED_END)
    ratios: dict[str, list[float]] = {each.name: [] for each in cases}
    speeds: dict[str, list[float]] = {each.name: [] for each in (bare, *cases)}
    for _ in range(ROUNDS):
        for each in cases:
            base, here = await _load(bare.load), await _load(each.load)
            speeds[bare.name].append(base.per_second)
            speeds[each.name].append(here.per_second)
            ratios[each.name].append(here.per_second / base.per_second)
    figures = [Figure(bare.name, statistics.median(speeds[bare.name]), "/s")]
    for each in cases:
        speed, ratio = statistics.median(speeds[each.name]), statistics.median(ratios[each.name])
        figures.append(Figure(f"{each.name}, to it", ratio, least=each.target, note=f"{speed:.0f}/s"))
    return figures


def case(
    host: str, port: int, name: str, target: float, asked: bytes, content: bytes, *, end: bytes, start: bytes = OK
) -> Case:
    """One request, over and over, on each of many connections."""
    return Case(
        name,
        target,
        Load(
            host=host,
            port=port,
            connections=CONNECTIONS,
            seconds=SECONDS,
            requests=[[asked]],
            contents=[[content]],
            start=start,
            end=end,
        ),
    )


@asynccontextmanager
async def bench_database(folder: Path) -> AsyncIterator[Database]:
    """A fresh one, with the settings that an operator gets: every commit reaches the disk."""
    server = EmbeddedPostgres(folder, serve=True, settings={})
    await server.start()
    try:
        await migrate(server.conninfo, lambda connection: seed_owner(connection, "1", _KEY))
        async with open_database(server.conninfo) as database:
            yield database
    finally:
        await server.stop()


def bench_context(database: Database, covers: Path) -> WebContext:
    """What the application is given here."""
    return WebContext(
        database=database,
        clock=SystemClock(),
        public_base_url="https://books.example",
        allowed_origins=frozenset(("https://asurascans.com",)),
        trusted_proxies=(),
        web_base_url="https://books.example",
        owner_discord_id="1",
        token_key=_KEY,
        discord=None,
        sites={"asura": "asurascans.com"},
        userscripts={},
        covers=CoverKeeper(database, CoverFiles(covers)),
        series_created=lambda series: None,
    )


async def _load(load: Load) -> Tally:
    finished = await trio.run_process(
        [sys.executable, "-m", "tests.bench.load"], stdin=msgspec.json.encode(load), capture_stdout=True
    )
    return msgspec.json.decode(finished.stdout, type=Tally)


async def _cases(database: Database, app: Quart, host: str, port: int) -> list[Case]:
    small, large = await _reader(database, "30", 30), await _reader(database, "1500", 1_500)
    writers = [await _reader(database, f"w{number}", 30) for number in range(CONNECTIONS)]
    response = await app.test_client().get("/bookmarks", headers={"Authorization": f"Bearer {large}"})
    etag = response.headers["ETag"]

    listed = partial(request, "GET", "/bookmarks")
    unchanged = listed(large, f"If-None-Match: {etag}\r\n")
    here = partial(case, host, port)
    put = here("PUT of one bookmark", 0.3, b"", b"", end=CHUNKED_END)
    put.load.requests, put.load.contents = _puts(writers)
    put.load.same_length = False
    return [
        here("GET /bookmarks, 30 rows", 0.55, listed(small), b'"asura:r30-29"', end=CHUNKED_END),
        here("GET /bookmarks, 1,500 rows", 0.5, listed(large), b'"asura:r1500-1499"', end=CHUNKED_END),
        here("GET /bookmarks, If-None-Match", 0.6, unchanged, b"", start=_UNCHANGED, end=_HEAD_END),
        put,
    ]


def _puts(writers: list[str]) -> tuple[list[list[bytes]], list[list[bytes]]]:
    """A Reader for each connection, who reads on in one Series: every PUT moves Progress and is a Sighting."""
    requests, contents = [], []
    for number, credential in enumerate(writers):
        numbers = range(1, 101)
        bodies = [
            msgspec.json.encode(
                {
                    "site": "asura",
                    "title": f"Series {chapter}",
                    "series_url": "https://asurascans.com/series/one",
                    "last_chapter": f"Chapter {chapter}",
                    "last_chapter_num": chapter,
                    "last_chapter_url": f"https://asurascans.com/series/one/chapter/{chapter}",
                    "latest_chapter": "Chapter 120",
                    "latest_chapter_num": 120,
                }
            )
            for chapter in numbers
        ]
        path = f"/bookmarks/asura:rw{number}-7"
        requests.append([request("PUT", path, credential, body=body) for body in bodies])
        contents.append([b'"last_chapter_num":%d.0,' % chapter for chapter in numbers])
    return requests, contents


def request(method: str, path: str, credential: str = "none", extra: str = "", body: bytes = b"") -> bytes:
    """As a browser sends it from a Site's page."""
    length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
    return (
        f"{method} {path} HTTP/1.1\r\nHost: books.example\r\nAuthorization: Bearer {credential}\r\n"
        f"User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate, br\r\n"
        f"Origin: https://asurascans.com\r\n{extra}{length}\r\n"
    ).encode() + body


async def _reader(database: Database, name: str, rows: int) -> str:
    """The credential of a new Reader with so many Bookmarks."""
    return derive_credential(_KEY, (await add_reader_with_rows(database, name, rows)).discord_id, 0).reveal()


async def add_reader_with_rows(database: Database, name: str, rows: int) -> Reader:
    """A Reader with so many Bookmarks of their own."""
    async with database.transaction() as connection:
        reader = await add_reader(connection, name, _KEY)
        await connection.execute(
            """
            WITH made AS (
                INSERT INTO series (site, series_id, title, series_url, latest_chapter, latest_chapter_num)
                SELECT 'asura', 'r' || %(name)s || '-' || number, 'The Title of Series Number ' || number,
                       'https://asurascans.com/series/the-title-of-series-number-' || number, 'Chapter 120', 120
                FROM generate_series(0, %(rows)s::integer - 1) AS number
                RETURNING series_id
            )
            INSERT INTO bookmarks (reader_id, site, series_id, last_chapter, last_chapter_num, last_chapter_url,
                                   updated_at)
            SELECT %(reader)s, 'asura', series_id, 'Chapter 100', 100,
                   'https://asurascans.com/series/' || series_id || '/chapter/100', 1700000000000
            FROM made
            """,
            {"name": name, "rows": rows, "reader": reader.id},
        )
    return reader
