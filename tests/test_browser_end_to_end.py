"""Reads through a real Chromium, end to end: `serve` and `browser` in processes of their own, Sites behind a challenge.

Real time and real sockets; every wait is for a condition and has a bound. What takes a quarter of an hour or an hour is
moved by the rows that remember it.
"""

import json
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import psycopg
import pytest
import trio

from bookmark_appliance.cdp.chrome_command import find_chrome
from bookmark_appliance.clock import HOUR_MS, MINUTE_MS, SECOND_MS
from bookmark_appliance.secret import Secret
from tests.open_folder import open_folder
from tests.serving_process import Place, Serve
from tests.simulated_sites import SimulatedSites, faults, simulated_sites
from tests.simulated_sites.images import image
from tests.simulated_sites.pages import STRICT
from tests.simulated_sites.world import GATED, Series
from tests.test_serve import Row, as_address, first_of, key_of, latest_becomes, put, rows, stop

pytestmark = pytest.mark.skipif(find_chrome() is None, reason="no Chrome on this machine")

LATEST_SECONDS = 90.0
"""From a PUT, or the owner's press, to the Latest Chapter in the list: Chromium's start, challenge, and turns."""


class Appliance:
    """A folder, a database and the Sites of one test; `serve` and `browser` run in it."""

    def __init__(self, place: Place, database_url: str, owner: str, sites: SimulatedSites) -> None:
        self.place = place
        self.sites = sites
        self._database_url = database_url
        self._owner = owner

    def points_at(self, address: str) -> int:
        """From the next start on `serve` reads through the browser host that listens there; its port."""
        self.place.environ["BROWSER_WS_URL"] = address.replace("http:", "ws:")
        return int(address.rpartition(":")[2])

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[tuple[Serve, httpx.AsyncClient]]:
        """`serve` once it listens, and a client of its owner's."""
        async with self.place.serve() as serve:
            await serve.listening()
            async with serve.client(self.place.credential(self._owner)) as client:
                yield serve, client

    async def bookmark(self, *wanted: Series) -> None:
        """Have these Series bookmarked, and their Latest Chapters read.

        In a `serve` of its own: the next one owes no Site a gap.
        """
        async with self.serve() as (serve, client):
            for series in wanted:
                await put(client, series)
            await latest_becomes(client, latest(*wanted), LATEST_SECONDS)
            await stop(serve)
            assert "Traceback" not in serve.said

    def sql(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self._database_url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def check_now(self, *wanted: Series) -> int:
        """As if last checked two hours ago, and asked for now: the check stamp that this left."""
        checked_at = now_ms() - 2 * HOUR_MS
        for series in wanted:
            self.sql("UPDATE site_requests SET last_request_at = 1 WHERE site = %s", series.site)
            self.sql("UPDATE series SET latest_checked_at = %s WHERE series_id = %s", checked_at, series.slug)
            self.sql("UPDATE series SET force_poll_at = %s WHERE series_id = %s", now_ms(), series.slug)
        return checked_at

    def checked_at(self, series: Series) -> int:
        [(stamp,)] = self.sql("SELECT latest_checked_at FROM series WHERE series_id = %s", series.slug)
        return int(stamp)

    async def sql_says(self, statement: str, expected: list[tuple[Any, ...]]) -> None:
        found: list[tuple[Any, ...]] = []
        with trio.move_on_after(LATEST_SECONDS):
            while found != expected:
                found = self.sql(statement)
                await trio.sleep(0.1)
        assert found == expected


@pytest.fixture
async def appliance(database_url: str, token_key: Secret, owner_discord_id: str) -> AsyncIterator[Appliance]:
    environ = {
        "PORT": "0",
        "DATABASE_URL": as_address(database_url),
        "TOKEN_KEY": token_key.reveal(),
        "OWNER_DISCORD_ID": owner_discord_id,
    }
    with open_folder() as folder:
        async with simulated_sites() as sites:
            place = Place(folder, environ)
            place.reads(sites)
            yield Appliance(place, database_url, owner_discord_id, sites)


def now_ms() -> int:
    return round(time.time() * SECOND_MS)


def latest(*wanted: Series) -> dict[str, float]:
    return {key_of(series): float(series.chapters[-1]) for series in wanted}


def grow(sites: SimulatedSites, series: Series) -> None:
    """The next chapter: one that is far ahead would not be believed at once."""
    sites.world.publish(series.site, series.slug, str(int(float(series.chapters[-1])) + 1))


def agents(sites: SimulatedSites, host: str) -> set[str]:
    """Who asked this host, or this Site for pages: a browser names itself by its brands too."""
    return {f"{seen.headers.get('user-agent')} {seen.headers.get('sec-ch-ua')}" for seen in sites.requests_to(host)}


async def open_pages(port: int) -> list[str]:
    """The addresses of the tabs that are open, as Chrome tells them through the host."""
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        answer = await client.get(f"http://127.0.0.1:{port}/json/list")
    pages = [target["url"] for target in answer.json() if target["type"] == "page"]
    return [url for url in pages if url != "about:blank" and not url.startswith("chrome:")]  # Chrome's own first tab


async def open_pages_become(port: int, expected: list[str]) -> None:
    found = ["not asked yet"]
    with trio.move_on_after(20):
        while found != expected:
            found = await open_pages(port)
            await trio.sleep(0.1)
    assert found == expected


async def covers_become(client: httpx.AsyncClient, expected: list[Series]) -> None:
    """Wait until the list shows a cover of each, and look at its bytes."""
    listed: dict[str, Row] = {}
    with trio.move_on_after(LATEST_SECONDS):
        while not listed or not all(listed[key_of(series)]["cover"] for series in expected):
            listed = await rows(client)
            await trio.sleep(0.1)
    for series in expected:
        answer = await client.get(listed[key_of(series)]["cover"])
        assert answer.content == image(series.shape.cover_type, series.slug)


async def test_series_behind_a_challenge_show_their_latest_chapter(appliance: Appliance) -> None:
    """BRO-002, BRO-004, BRO-006, BRO-009, SITE-003: through the browser alone, whose clearance outlives a restart.

    COV-008, COV-009, BRO-013, BRO-015: their covers too, but for novelfull's, which is had plainly.
    """
    sites = appliance.sites
    gated, plain = [first_of(sites, site) for site in GATED], first_of(sites, "asura")
    for site in GATED:
        sites.world.gate(site, seconds=1)
    gates = [sites.world.gates[series.shape.host] for series in gated]
    sites.world.policies["kagane.to"] = STRICT
    sites.world.misbehave("novelfull.com", faults.in_halves(0.5))
    async with appliance.place.browser() as browser:
        port = appliance.points_at(await browser.listening())
        await appliance.bookmark(*gated, plain)
        cleared = [gate.cleared for gate in gates]
        assert all(cleared)
        for series in gated:
            grow(sites, series)
        appliance.check_now(*gated)
        async with appliance.serve() as (serve, client):
            await latest_becomes(client, latest(*gated, plain), LATEST_SECONDS)
            await covers_become(client, gated)
            await stop(serve)
            assert "Traceback" not in serve.said
        await open_pages_become(port, [])
    assert [gate.cleared for gate in gates] == cleared
    assert "left behind" not in browser.said
    [of_browser] = set[str]().union(
        *(agents(sites, where) for where in ("comix.to", "static.comix.to", "kagane.to", "novelfull"))
    )
    assert "Headless" not in of_browser
    assert of_browser not in agents(sites, plain.shape.host)


async def test_without_the_browser_others_go_on_and_its_queue_waits(appliance: Appliance) -> None:
    """BRO-018, BRO-021, LANE-007, LANE-023, LANE-035: stopped, a restart of ours meanwhile, and started again."""
    sites = appliance.sites
    every = plain, comix, kagane, novelfull = [
        first_of(sites, site) for site in ("asura", "comix", "kagane", "novelfull")
    ]
    sites.world.gate("comix", seconds=0.5)
    sites.world.gate("kagane", seconds=0.5)
    async with appliance.place.browser() as browser:
        port = appliance.points_at(await browser.listening())
        await appliance.bookmark(*every)
        browser.signal(signal.SIGTERM)
        assert await browser.ended() == 0, browser.said
    waiting, asked = latest(comix, kagane), [len(sites.requests_to(site)) for site in ("comix", "kagane")]
    for series in every:
        grow(sites, series)
    checked_at = appliance.check_now(kagane)
    async with appliance.serve() as (serve, client):
        await appliance.sql_says("SELECT site, unreachable FROM poll_passes WHERE due > 0", [("kagane", 1)])
        assert appliance.checked_at(kagane) == checked_at
        checked_at = appliance.check_now(*every)
        await latest_becomes(client, latest(plain, novelfull) | waiting, LATEST_SECONDS)
        await stop(serve)
    appliance.sql("DELETE FROM poll_passes")
    async with appliance.serve() as (serve, client):
        down = "SELECT site FROM poll_passes WHERE skip = 'sidecar-down' ORDER BY site"
        await appliance.sql_says(down, [("comix",), ("kagane",)])
        assert [appliance.checked_at(series) for series in (comix, kagane)] == [checked_at, checked_at]
        assert [len(sites.requests_to(site)) for site in ("comix", "kagane")] == asked
        async with appliance.place.browser(port=port) as browser:
            await browser.listening()
            appliance.sql("UPDATE browser_losses SET lost_at = lost_at - %s", 16 * MINUTE_MS)
            appliance.sql("UPDATE series SET force_poll_at = %s WHERE site IN ('comix', 'kagane')", now_ms())
            await latest_becomes(client, latest(*every), LATEST_SECONDS)
            await stop(serve)
            assert "Traceback" not in serve.said


async def test_an_end_in_the_middle_of_a_read_leaves_no_tab_and_no_stamp(appliance: Appliance) -> None:
    """BRO-009, BRO-012, LANE-020, OPS-007: asked for, the stamp is given back; killed, the next start reads on."""
    sites = appliance.sites
    kagane = first_of(sites, "kagane")
    async with appliance.place.browser() as browser:
        port = appliance.points_at(await browser.listening())
        await appliance.bookmark(kagane)
        grow(sites, kagane)
        async with appliance.serve() as (serve, _):
            checked_at = await held(appliance, kagane)
            await open_pages_become(port, [kagane.address])
            await stop(serve)
            assert "Traceback" not in serve.said
        assert appliance.checked_at(kagane) == checked_at
        await open_pages_become(port, [])
        assert "left behind" not in browser.said  # it was closed by whoever had opened it
        async with appliance.serve() as (serve, _):
            await held(appliance, kagane)
            serve.signal(signal.SIGKILL)
            assert await serve.ended() == -signal.SIGKILL
        await open_pages_become(port, [])
        sites.world.gate("kagane", seconds=0.5)
        appliance.check_now(kagane)
        async with appliance.serve() as (serve, client):
            await latest_becomes(client, latest(kagane), LATEST_SECONDS)
            await stop(serve)
        await open_pages_become(port, [])
        assert "Traceback" not in browser.said


async def held(appliance: Appliance, series: Series) -> int:
    """Bring the Lane to where it holds a tab on a challenge that never clears; the check stamp before."""
    appliance.sites.world.gate(series.site, seconds=0.5, clears=False)
    counts = appliance.sites.counts[series.shape.host]
    enough = counts["machinery"] + 4
    checked_at = appliance.check_now(series)
    with trio.fail_after(LATEST_SECONDS):
        await appliance.sites.wait_until(lambda: counts["machinery"] >= enough)
    assert appliance.checked_at(series) > checked_at
    return checked_at


async def test_probe_reads_through_the_browser(appliance: Appliance) -> None:
    """SITE-003, SITE-005: what the Lane would read; a browser that is out of reach is told as that."""
    kagane = first_of(appliance.sites, "kagane")
    async with appliance.place.browser() as browser:
        appliance.points_at(await browser.listening())
        for site in GATED:
            series = first_of(appliance.sites, site)
            appliance.sites.world.gate(site, seconds=0.5)
            told = await probed(appliance.place, series)
            assert (told["outcome"], told["latest"], told["status"]) == ("success", latest(series)[key_of(series)], 200)
        browser.signal(signal.SIGTERM)
        assert await browser.ended() == 0, browser.said
    told = await probed(appliance.place, kagane)
    assert (told["outcome"], told["status"]) == ("unreachable", None)


async def probed(place: Place, series: Series) -> dict[str, Any]:
    ended = await place.run("probe", series.site, series.address)
    assert ended.returncode == 0, ended.stderr
    line: dict[str, Any] = json.loads(ended.stdout)
    return line
