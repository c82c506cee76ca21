"""A running `serve` that plain tests share, and Readers with the Libraries that a test wants."""

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import trio
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row

from bookmark_appliance.clock import HOUR_MS, SystemClock
from bookmark_appliance.covers.cover_files import CoverFiles
from bookmark_appliance.covers.cover_keeper import CoverKeeper
from bookmark_appliance.database import open_database
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.series_key import SeriesKey
from tests.seed_library import Row, drawn_cover
from tests.serving_process import ROOT, START_SECONDS
from tests.test_serve import as_address

OWNER = "100000000000000009"
COVERS = 9

Stored = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Reader:
    """A Reader who is signed in. Their Series are theirs alone: every slug begins with their number."""

    appliance: "Appliance"
    id: int
    session: str

    def key(self, row: Row) -> str:
        """The key of a Bookmark of theirs."""
        return f"{row.site}:{self.slug(row)}"

    def slug(self, row: Row) -> str:
        """Of the Site."""
        return f"{self.id}-{row.slug}"

    def address(self, row: Row) -> str:
        """Where its next chapter is read on."""
        return f"https://{SITES[row.site].host}/{self.slug(row)}/chapter"

    def holds(self, rows: Iterable[Row]) -> None:
        """Add these Bookmarks, the most recently read first, behind those that are there."""
        now, rows, covers = SystemClock().now_ms(), list(rows), self.appliance.covers
        series, bookmarks = [], []
        for number, row in enumerate(rows):
            at = now - number * HOUR_MS
            cover = covers[number % len(covers)] if row.cover and covers else ""
            place = f"https://{SITES[row.site].host}/{self.slug(row)}"
            finished = at if row.finished else 0
            series.append((row.site, self.slug(row), row.title, place, row.kind, row.latest, finished, cover))
            bookmarks.append(
                (self.id, row.site, self.slug(row), row.read, f"{place}/chapter", row.favorite, row.status, at)
            )
        with self.appliance.connect() as connection, connection.cursor() as cursor:
            cursor.executemany(
                """
                INSERT INTO series (
                    site, series_id, title, series_url, kind, latest_chapter_num, finished_at, cover_address
                )
                VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
                """,
                series,
            )
            cursor.executemany(
                """
                INSERT INTO bookmarks (
                    reader_id, site, series_id, last_chapter_num, last_chapter_url, favorite, status, updated_at
                )
                VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
                """,
                bookmarks,
            )

    def stored(self, row: Row) -> Stored | None:
        """The Bookmark as the database has it."""
        rows = self.appliance.ask(
            "SELECT * FROM bookmarks WHERE reader_id = %s AND site = %s AND series_id = %s",
            *(self.id, row.site, self.slug(row)),
        )
        return rows[0] if rows else None

    def signs_in_again(self) -> "Reader":
        """In another browser."""
        session = secrets.token_hex(32)
        self.appliance.ask(
            "INSERT INTO sessions (id, reader_id, expires_at) VALUES (%s, %s, now() + '1 day') RETURNING id",
            *(session, self.id),
        )
        return replace(self, session=session)

    def loses_sessions(self) -> None:
        """Everywhere."""
        self.appliance.ask("DELETE FROM sessions WHERE reader_id = %s RETURNING id", self.id)


@dataclass(frozen=True, eq=False)
class Appliance:
    """One running `serve`. `covers` are the addresses of drawings in its keeping."""

    folder: Path
    environ: Mapping[str, str]
    conninfo: str
    address: str
    covers: tuple[str, ...] = ()

    def connect(self) -> psycopg.Connection[Stored]:
        """A connection to its database; a block commits."""
        return psycopg.connect(self.conninfo, row_factory=dict_row)

    def ask(self, statement: str, *values: object) -> list[Stored]:
        """One statement and its rows."""
        with self.connect() as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def reader(self, rows: Iterable[Row] = ()) -> Reader:
        """A new Reader who holds these."""
        found = self.ask(
            "INSERT INTO readers (discord_id, token_sha256) VALUES (%s, %s) RETURNING id",
            *(str(secrets.randbelow(10**18)), secrets.token_bytes(32)),
        )
        reader = Reader(self, found[0]["id"], "").signs_in_again()
        reader.holds(rows)
        return reader

    def owner(self) -> Reader:
        """The owner, who holds nothing."""
        return Reader(
            self, self.ask("SELECT id FROM readers WHERE discord_id = %s", OWNER)[0]["id"], ""
        ).signs_in_again()

    def run(self, *arguments: str) -> str:
        """What another command prints."""
        ended = subprocess.run(
            _command(*arguments), cwd=self.folder, env=self.environ, capture_output=True, check=True, text=True
        )
        return ended.stdout

    @contextmanager
    def broken(self) -> Iterator[None]:
        """Every request that needs Bookmarks fails within."""
        self.ask("ALTER TABLE bookmarks RENAME TO bookmarks_elsewhere")
        try:
            yield
        finally:
            self.ask("ALTER TABLE bookmarks_elsewhere RENAME TO bookmarks")


@contextmanager
def running(folder: Path, database_url: str, **settings: str) -> Iterator[Appliance]:
    """A `serve` in `folder`, on a database of its own; it must end in good order."""
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "PORT": "0",
        "DATABASE_URL": as_address(database_url),
        "TOKEN_KEY": "a token key for the pages in a browser, long enough",
        "OWNER_DISCORD_ID": OWNER,
        "LATEST_CHAPTER_POLL_ENABLED": "0",
        **settings,
    }
    log = folder / "log"
    with log.open("wb") as words:
        process = subprocess.Popen(_command("serve"), cwd=folder, env=environ, stdout=words, stderr=words)
        try:
            address = _listening(process, log)
            yield Appliance(folder, environ, database_url, address)
        finally:
            process.terminate()
            code = process.wait(START_SECONDS)
    assert code == 0, log.read_text()


def with_covers(appliance: Appliance) -> Appliance:
    """The same, with drawings in its keeping."""
    keys = [SeriesKey("asura", f"drawn-{number}") for number in range(COVERS)]

    async def keep() -> None:
        async with open_database(appliance.conninfo) as database:
            keeper = CoverKeeper(database, CoverFiles(appliance.folder / "data" / "covers"))
            for key in keys:
                await keeper.keep(key, drawn_cover(key.series_id), source=key.series_id, replaces=False)

    for key in keys:
        appliance.ask("INSERT INTO series (site, series_id) VALUES (%s, %s)", key.site, key.series_id)
    trio.run(keep)
    found = appliance.ask("SELECT DISTINCT cover_address FROM series WHERE cover_address <> '' ORDER BY 1")
    return replace(appliance, covers=tuple(row["cover_address"] for row in found))


@contextmanager
def new_database(conninfo: str) -> Iterator[str]:
    """An empty database for as long as the block lasts."""
    name = f"pages_{secrets.token_hex(8)}"
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
        try:
            yield make_conninfo(conninfo, dbname=name)
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "bookmark_appliance", *arguments]


def _listening(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait for it; the address."""
    give_up = time.monotonic() + START_SECONDS
    while "listening on " not in (said := log.read_text()):
        assert process.poll() is None, said
        assert time.monotonic() < give_up, said
        time.sleep(0.02)
    return said.partition("listening on ")[2].split()[0]
