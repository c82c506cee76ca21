"""What the Reader's pages take on the server, and what a first visit brings over the wire.

Each figure is the median time of whole requests at the application, without a network: session, queries, template and
gzip, one at a time.
"""

import gzip
import re
import secrets
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import trio
from quart import Quart
from quart.typing import TestClientProtocol

from bookmark_appliance.clock import SystemClock
from bookmark_appliance.database import Database
from bookmark_appliance.store.sessions import create_session
from bookmark_appliance.web.app import create_app
from bookmark_appliance.web.sessions import COOKIE
from tests.bench.api import add_reader_with_rows, bench_context, bench_database
from tests.bench.disk_folder import disk_folder
from tests.bench.figures import Figure

ROUNDS = 40
MANY = 2_000

_VARIED = """
    UPDATE bookmarks
    SET updated_at = updated_at - hashtext(series_id),
        favorite = hashtext(series_id) % 9 = 0,
        last_chapter_num = CASE WHEN hashtext(series_id) % 3 = 0 THEN 120 ELSE last_chapter_num END
"""
"""A tie at every place would be a list that no Reader has."""


@dataclass
class _Visitor:
    client: TestClientProtocol
    session: str

    async def ask(self, target: str, form: Mapping[str, str] | None = None, *, htmx: bool = False) -> bytes:
        headers = {"Cookie": f"{COOKIE}={self.session}", "Accept-Encoding": "gzip"}
        if htmx:
            headers["HX-Request"] = "true"
        response = await self.client.open(  # type: ignore[call-arg]
            target, method="GET" if form is None else "POST", form=dict(form) if form else None, headers=headers
        )
        assert response.status_code == 200, (target, response.status_code)
        return bytes(await response.get_data(as_text=False))

    async def milliseconds(self, target: str, form: Mapping[str, str] | None = None, *, htmx: bool = False) -> float:
        """The median of ROUNDS requests."""
        took = []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            await self.ask(target, form, htmx=htmx)
            took.append((time.perf_counter() - started) * 1_000)
        return statistics.median(took)


def run() -> list[Figure]:
    """Measure over a database of its own: a few seconds."""
    with disk_folder() as folder:
        return trio.run(_measure, folder)


async def _measure(folder: Path) -> list[Figure]:
    async with bench_database(folder) as database:
        app = create_app(bench_context(database, folder))
        few, many = await _visitor(app, database, 60), await _visitor(app, database, MANY)
        async with database.connection() as connection:
            await connection.execute(_VARIED)
            await connection.execute("ANALYZE")
        more = re.search(rb'hx-get="(/ui/list[^"]*after=[^"]*)"', gzip.decompress(await many.ask("/")))
        assert more is not None
        next_cards = more[1].decode().replace("&amp;", "&")
        card = f"/ui/bookmarks/asura%3Ar{MANY}-7"
        shelf = "?library=manga&tab=all"
        return [
            Figure("page of 60 cards", await few.milliseconds("/"), "ms", most=25),
            Figure(f"first page of {MANY:,}", await many.milliseconds("/"), "ms", most=40),
            Figure("the next 120 cards", await many.milliseconds(next_cards, htmx=True), "ms"),
            Figure("favourite, of 2,000", await _toggle(many, f"{card}/favorite{shelf}", "favorite"), "ms", most=15),
            Figure("chapter, of 2,000", await _toggle(many, f"{card}/chapter{shelf}", "chapter"), "ms", most=15),
            Figure("first visit, HTML + CSS + JS", await _first_visit(few) / 1_000, "kB", most=60),
        ]


async def _toggle(visitor: _Visitor, target: str, field: str) -> float:
    values = {"favorite": ("true", "false"), "chapter": ("101", "102")}[field]
    took = [await visitor.milliseconds(target, {field: value}, htmx=True) for value in values]
    return statistics.mean(took)


async def _first_visit(visitor: _Visitor) -> int:
    """Bytes as they are sent."""
    page = await visitor.ask("/")
    linked = re.findall(rb'(?:src|href)="(/static/[^"]+\.(?:js|css)\?[^"]*)"', gzip.decompress(page))
    assert len(linked) == 3, linked
    return len(page) + sum([len(await visitor.ask(address.decode())) for address in linked])


async def _visitor(app: Quart, database: Database, rows: int) -> _Visitor:
    reader = await add_reader_with_rows(database, str(rows), rows)
    session = secrets.token_hex(32)
    async with database.transaction() as connection:
        await create_session(connection, session, reader.id, SystemClock().now_ms())
    return _Visitor(app.test_client(), session)
