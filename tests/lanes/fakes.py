"""The fakes of the Lanes' two seams: the clock, and what asks a Site for a page."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, repeat
from types import MappingProxyType

import trio

from bookmark_appliance.clock import SECOND_MS
from bookmark_appliance.database import Database
from bookmark_appliance.lanes.site import Site
from bookmark_appliance.page import Page
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.store.readers import Reader

START_MS = 1_800_000_000_000


class TrioClock:
    """Wall time that runs with Trio's: under `autojump_clock` a simulated day takes seconds."""

    def __init__(self) -> None:
        self._began = trio.current_time()
        self.set_forward_ms = 0

    def now_ms(self) -> int:
        """Unix milliseconds, from START_MS on."""
        return START_MS + self.set_forward_ms + round((trio.current_time() - self._began) * SECOND_MS)


Answer = Page | BaseException | Callable[[], Awaitable[Page]]


@dataclass(slots=True)
class FakeFetcher:
    """Answers from a script by address, else with a page that publishes chapter 181; keeps the times of its fetches."""

    clock: TrioClock
    answers: dict[str, Iterator[Answer]] = field(default_factory=dict)
    fetched: list[tuple[int, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    seconds: float = 0.0

    def script(self, address: str, *answers: Answer) -> None:
        """Answer `address` with these in turn, and with the last one ever after."""
        self.answers[address] = chain(answers, repeat(answers[-1]))

    async def fetch(
        self,
        site: Site,
        address: str,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        before_request: Callable[[], Awaitable[None]],
    ) -> Page:
        """As PageFetcher.fetch."""
        await before_request()
        self.fetched.append((self.clock.now_ms(), address))
        self.headers.append(dict(headers))
        await trio.sleep(self.seconds)
        answer = next(self.answers[address]) if address in self.answers else asura_page(address, 181)
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, Page) else await answer()

    def addresses(self) -> list[str]:
        """What was fetched, in order."""
        return [address for _, address in self.fetched]


def asura_url(slug: str) -> str:
    """A Series address of asura."""
    return f"https://asurascans.com/comics/{slug}-4be1c07a"


def asura_page(address: str, number: float | None, *, status: int = 200, completed: bool = False) -> Page:
    """A Series page of asura that publishes `number`, or a page with its landmarks and no chapter."""
    path = address.removeprefix("https://asurascans.com")
    slug = path.removeprefix("/comics/")[:-9]
    link = "" if number is None else f'<a href="{path}/chapter/{number:g}">Chapter {number:g}</a>'
    state = "completed" if completed else "ongoing"
    props = f"{{&quot;title&quot;:[0,&quot;{slug}&quot;],&quot;status&quot;:[0,&quot;{state}&quot;]}}"
    body = f"""<html><head><title>{slug} | Asura Scans</title>
        <link rel="canonical" href="{address}"><meta property="og:title" content="{slug}"></head>
        <body><h1>{slug}</h1><astro-island props="{props}"></astro-island>{link}</body></html>"""
    return Page(status, {"content-type": "text/html"}, body.encode(), address)


def answer(status: int, **headers: str) -> Page:
    """An answer without a page worth reading; header names with `_` for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Page(status, named, b"<html><body>no</body></html>", "https://asurascans.com/")


MakeReader = Callable[[TrioConnection, str], Awaitable[Reader]]


async def hold_series(
    database: Database,
    reader: Reader,
    slug: str,
    *,
    site: str = "asura",
    checked_at: int = 0,
    latest: float | None = None,
    sighted_at: int = 0,
    forced_at: int = 0,
    finished_at: int = 0,
    url: str | None = None,
) -> None:
    """Store a Series, unless it is there, and this Reader's Bookmark of it."""
    async with database.transaction() as connection:
        await connection.execute(
            """
            INSERT INTO series (
                site, series_id, title, series_url, latest_checked_at, latest_chapter, latest_chapter_num,
                latest_sighted_at, force_poll_at, finished_at
            )
            VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
            ON CONFLICT DO NOTHING
            """,
            (
                site,
                slug,
                slug,
                asura_url(slug) if url is None else url,
                checked_at,
                "" if latest is None else f"Chapter {latest:g}",
                latest,
                sighted_at,
                forced_at,
                finished_at,
            ),
        )
        await connection.execute(
            "INSERT INTO bookmarks (reader_id, site, series_id, updated_at) VALUES (%s, %s, %s, %s)",
            (reader.id, site, slug, START_MS),
        )


async def series_value(database: Database, slug: str, column: str, site: str = "asura") -> object:
    """One column of one Series."""
    async with database.connection() as connection:
        cursor = await connection.execute(
            f"SELECT {column} FROM series WHERE site = %s AND series_id = %s".encode(), (site, slug)
        )
        row = await cursor.fetchone()
    assert row is not None
    return row[0]


async def passes(database: Database, site: str = "asura") -> list[dict[str, object]]:
    """The pass log of a Site, oldest first."""
    async with database.connection() as connection:
        cursor = await connection.execute(
            "SELECT to_jsonb(poll_passes) FROM poll_passes WHERE site = %s ORDER BY ran_at", (site,)
        )
        return [row[0] for row in await cursor.fetchall()]
