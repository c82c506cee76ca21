"""The gaps of the running product, measured at the Site's side: a real `serve`, real sockets, real time.

The contract's gap is 10 s, and a Site with more Series than a rest has room for is asked more often (LANE-018):
thousands that were just checked stand beside those that are due, so that fifty of them take a minute.
"""

import signal
from collections.abc import Iterator
from itertools import pairwise

import psycopg
import pytest
import trio

from bookmark_appliance.clock import SystemClock
from tests.open_folder import open_folder
from tests.serving_process import Place, Serve, eventually
from tests.simulated_sites import SimulatedSites, simulated_sites
from tests.simulated_sites.world import Series, World
from tests.test_serve import OWNER, TOKEN_KEY, as_address, stop

ELIGIBLE = 3_000
"""An hour has room for them 1.2 s apart."""
CROWDED_GAP, GAP = 1.2, 10.0

WAY_SECONDS = 0.2
"""What a busy machine may take of one request's way to the Site and not of the next one's, beyond the margin."""


@pytest.fixture
def database(empty_database_url: str) -> Iterator[psycopg.Connection]:
    """A session on the database of `place`."""
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def place(empty_database_url: str) -> Iterator[Place]:
    """Migrated, and never served."""
    environ = {"DATABASE_URL": as_address(empty_database_url), "TOKEN_KEY": TOKEN_KEY, "OWNER_DISCORD_ID": OWNER}
    with open_folder() as folder:
        place = Place(folder, {"PORT": "0", **environ})
        migrated = trio.run(place.run, "migrate")
        assert migrated.returncode == 0, migrated.stderr
        yield place


def world_of(**due: int) -> World:
    """So many Series at each Site."""
    world = World()
    for site, count in due.items():
        for number in range(count):
            world.add(site, f"wired-{number}")
    return world


def bookmark(database: psycopg.Connection, world: World, crowded: str) -> None:
    """Hold every Series of `world`, never checked, and at `crowded` as many just checked ones as make it ELIGIBLE."""
    now = SystemClock().now_ms()
    due = [(series.site, series.slug, series.address, 0) for series in world.series]
    rested = ELIGIBLE - sum(series.site == crowded for series in world.series)
    filling = [(crowded, f"rested-{number}", f"https://{number}.example/", now) for number in range(rested)]
    with database.transaction(), database.cursor() as cursor:
        # The triggers keep list versions and wake Lanes: there is nobody yet to read or to sleep.
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.executemany(
            """
            INSERT INTO series (site, series_id, title, series_url, latest_checked_at)
            VALUES (%s, %s, 'A Series', %s, %s)
            """,
            [*due, *filling],
        )
        cursor.execute(
            """
            INSERT INTO bookmarks (reader_id, site, series_id, updated_at)
            SELECT readers.id, site, series_id, 1
            FROM series
            CROSS JOIN readers
            """
        )


def recorded(database: psycopg.Connection, site: str) -> list[tuple[object, ...]]:
    """The passes of a Site that had something due, oldest first."""
    cursor = database.execute(
        "SELECT due, checked, gap_ms, clamped, cut FROM poll_passes WHERE site = %s AND due > 0 ORDER BY ran_at",
        (site,),
    )
    return cursor.fetchall()


async def has_recorded(serve: Serve, series: Series) -> None:
    """Wait until what was read of it is written down."""
    await serve.says(rf"{series.site}:{series.slug}: Chapter ")


def assert_gaps(sites: SimulatedSites, site: str, gap: float) -> None:
    """Every Series of the Site was asked once, no two requests within a second and all of them `gap` seconds apart."""
    requests = sites.requests_to(site)
    assert sorted(one.target for one in requests) == sorted(
        one.target for one in sites.world.series if one.site == site
    )
    arrived = [request.at for request in requests]
    gaps = [after - before for before, after in pairwise(arrived)]
    assert min(gaps) >= max(1, gap - WAY_SECONDS), gaps
    assert arrived[-1] - arrived[0] >= gap * len(gaps) - WAY_SECONDS, gaps


async def test_a_pass_over_fifty_series_keeps_its_gaps(place: Place, database: psycopg.Connection) -> None:
    """LANE-018, LANE-019, LANE-056: at a crowded Site the second, beside it at another one the contract's ten."""
    async with simulated_sites(world_of(asura=50, demonic=5)) as sites:
        bookmark(database, sites.world, crowded="asura")
        place.reads(sites)
        async with place.serve() as serve:
            await serve.listening()
            with trio.fail_after(80):
                await sites.wait_until(lambda: len(sites.requests_to("asura") + sites.requests_to("demonic")) == 55)
            await eventually(lambda: bool(recorded(database, "asura") and recorded(database, "demonic")))
            await stop(serve)
    assert recorded(database, "asura") == [(50, 50, 1_200, False, False)]
    assert recorded(database, "demonic") == [(5, 5, 10_000, False, False)]
    assert_gaps(sites, "asura", CROWDED_GAP)
    assert_gaps(sites, "demonic", GAP)
    assert "Traceback" not in serve.said


async def test_a_pass_that_a_restart_cuts_in_two_keeps_its_gaps(place: Place, database: psycopg.Connection) -> None:
    """LANE-019, LANE-020, LANE-056, OPS-007: the second process goes on where the first one stood."""
    async with simulated_sites(world_of(asura=8, lightnovelworld=2)) as sites:
        bookmark(database, sites.world, crowded="asura")
        place.reads(sites)
        async with place.serve() as serve:
            await serve.listening()
            with trio.fail_after(30):
                await sites.wait_until(lambda: len(sites.requests_to("asura")) == 4)
            last = next(one for one in sites.world.series if one.target == sites.requests_to("asura")[-1].target)
            await has_recorded(serve, last)
            await stop(serve, signal.SIGTERM)
        async with place.serve() as serve:
            await serve.listening()
            with trio.fail_after(40):
                await sites.wait_until(
                    lambda: len(sites.requests_to("asura") + sites.requests_to("lightnovelworld")) == 10
                )
            await eventually(
                lambda: len(recorded(database, "asura")) == len(recorded(database, "lightnovelworld")) == 2
            )
            await stop(serve)
    assert recorded(database, "asura") == [(8, 4, 1_200, False, True), (4, 4, 1_200, False, False)]
    assert_gaps(sites, "asura", CROWDED_GAP)
    assert_gaps(sites, "lightnovelworld", GAP)
