"""The running product, end to end: `serve` in a process of its own, on embedded and on external Postgres.

Real time and real sockets; every wait is for a condition and has a bound.
"""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psycopg
import pytest
import trio
from psycopg.conninfo import conninfo_to_dict

from bookmark_appliance.embedded_postgres import EmbeddedPostgres, embedded_postgres
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.postgres.process import server_processes
from tests.open_folder import open_folder
from tests.serving_process import Place, Serve, eventually
from tests.simulated_sites import SimulatedSites, faults, simulated_sites
from tests.simulated_sites.images import image
from tests.simulated_sites.world import Series

TOKEN_KEY = "a token key for the running product, long enough"
OWNER = "100000000000000009"
PLAIN_SITES = ("asura", "demonic", "lightnovelworld", "novelfull")
BROWSER_SITES = ("comix", "kagane")
LATEST_SECONDS = 20.0
"""From a PUT to the Latest Chapter of its Series in the list, on a machine that is busy with other tests."""
UNHELD_SECONDS = 10.0
"""For an answer that waits for no page: of a silent Site one is waited for three times as long."""

Row = dict[str, Any]


@pytest.fixture
def empty_folder() -> Iterator[Path]:
    """Where nothing was ever started."""
    with open_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def used_folder() -> Iterator[Path]:
    """What `migrate` leaves behind, to be copied: making a cluster anew takes seconds."""
    with open_folder() as folder:
        made = trio.run(Place(folder).run, "migrate")
        assert made.returncode == 0, made.stderr
        yield folder


@pytest.fixture
def place(empty_folder: Path, used_folder: Path) -> Place:
    """A folder that was used before, on embedded Postgres."""
    return copied(used_folder, empty_folder)


@pytest.fixture
def external(empty_folder: Path, empty_database_url: str) -> Place:
    """A folder whose appliance works on an external database."""
    environ = {"DATABASE_URL": as_address(empty_database_url), "TOKEN_KEY": TOKEN_KEY, "OWNER_DISCORD_ID": OWNER}
    return Place(empty_folder, {"PORT": "0", **environ})


@pytest.fixture
async def sites() -> AsyncIterator[SimulatedSites]:
    """The six Sites in this process."""
    async with simulated_sites() as running:
        yield running


def copied(used: Path, empty: Path) -> Place:
    """With the owners of the files, which are two as root."""
    subprocess.run(["cp", "-a", str(used / "data"), str(empty)], check=True)
    return Place(empty)


def as_address(conninfo: str, password: str = "") -> str:
    parts = conninfo_to_dict(conninfo)
    user = f"{parts['user']}:{password}" if password else parts["user"]
    return f"postgresql://{user}@/{parts['dbname']}?host={quote(str(parts['host']), safe='')}"


def first_of(sites: SimulatedSites, site: str) -> Series:
    return next(series for series in sites.world.series if series.site == site)


def key_of(series: Series) -> str:
    return f"{series.site}:{series.slug}"


async def put(client: httpx.AsyncClient, series: Series, progress: float = 2) -> Row:
    """Bookmark `series` as a script does that knows no Latest Chapter; the row that comes back."""
    path = f"/bookmarks/{series.site}:{quote(series.slug, safe='')}"
    body = {"title": series.title, "series_url": series.address, "last_chapter_num": progress}
    if series.site in ("lightnovelworld", "novelfull"):
        body["kind"] = "novel"
    answer = await client.put(path, json=body)
    assert answer.status_code == 200, answer.text
    row: Row = answer.json()
    return row


async def rows(client: httpx.AsyncClient) -> dict[str, Row]:
    """The Reader's list by key."""
    answer = await client.get("/bookmarks")
    assert answer.status_code == 200, answer.text
    return {row["key"]: row for row in answer.json()}


async def latest_becomes(client: httpx.AsyncClient, expected: dict[str, float], within: float) -> None:
    """Wait until the list shows these Latest Chapters."""
    found: dict[str, float | None] = {}
    with trio.move_on_after(within):
        while found != expected:
            listed = await rows(client)
            found = {key: listed[key]["latest_chapter_num"] for key in expected}
            await trio.sleep(0.05)
    assert found == expected


async def stop(serve: Serve, number: signal.Signals = signal.SIGTERM) -> None:
    """An orderly end."""
    serve.signal(number)
    assert await serve.ended() == 0, serve.said


async def nobody_listens_at(address: str) -> bool:
    try:
        async with httpx.AsyncClient(trust_env=False) as client:
            await client.get(f"{address}/healthz")
    except httpx.ConnectError:
        return True
    return False


# --- its start and its end


async def test_an_empty_folder_and_no_settings_are_enough(empty_folder: Path) -> None:
    """API-001, API-002, OPS-001, OPS-007: the first start, on loopback; SIGTERM leaves nothing but the data."""
    place = Place(empty_folder)
    async with place.serve() as serve:
        address = await serve.listening()
        assert address.startswith("http://127.0.0.1:")
        async with serve.client() as client:
            assert (await client.get("/healthz")).text == "ok"
            assert (await client.get("/bookmarks")).status_code == 401
        printed = await place.run("readers", "credential", "0")
        async with serve.client(printed.stdout.decode().strip()) as client:
            assert await rows(client) == {}
        assert server_processes(place.cluster)
        await eventually(lambda: len(place.sql("SELECT site FROM poll_passes")) == len(SITES))
        await stop(serve)
        assert serve.said.count("listening on") == 1
        assert "Traceback" not in serve.said
    assert await nobody_listens_at(address)
    assert not place.has_postgres()
    async with embedded_postgres(place.data):
        recorded = place.sql("SELECT site, skip FROM poll_passes ORDER BY site")
    skips = {site: "no-fetcher" if site in BROWSER_SITES else "nothing-eligible" for site in SITES}
    assert recorded == sorted(skips.items())


async def test_sigint_is_an_orderly_end_too(place: Place) -> None:
    """OPS-007"""
    async with place.serve() as serve:
        address = await serve.listening()
        await stop(serve, signal.SIGINT)
        assert "Traceback" not in serve.said
    assert await nobody_listens_at(address)
    assert not place.has_postgres()


async def test_a_second_signal_cuts_the_end_short(place: Place) -> None:
    """OPS-007: a request in flight would hold it up for seven seconds."""
    credential = place.credential()
    async with place.serve() as serve:
        host, port = (await serve.listening()).removeprefix("http://").split(":")
        async with await trio.open_tcp_stream(host, int(port)) as stream:
            head = f"PUT /bookmarks/asura:x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {credential}\r\n"
            await stream.send_all(f"{head}Content-Length: 99\r\nExpect: 100-continue\r\n\r\n".encode())
            await stream.receive_some()  # it is being handled
            serve.signal(signal.SIGTERM)
            await serve.says("SIGTERM: shutting down")
            assert serve.process.returncode is None
            serve.signal(signal.SIGTERM)
            assert await serve.ended(within=5) == 0
    assert not place.has_postgres()


@pytest.mark.parametrize("moment", ["postgres.new", "postgres/postmaster.pid"])
async def test_an_end_that_is_asked_for_during_the_start(empty_folder: Path, moment: str) -> None:
    """OPS-007: while the cluster is made, or Postgres starts; the next start is none the worse."""
    place = Place(empty_folder)
    async with place.serve() as serve:
        await eventually((place.data / moment).exists)
        await stop(serve)
        assert "listening" not in serve.said
        assert "Traceback" not in serve.said
    assert not place.has_postgres()
    assert not server_processes(place.data / "postgres.new")
    async with place.serve() as serve:
        await serve.listening()
        await stop(serve)


# --- a Bookmark and its Latest Chapter


async def test_a_new_series_shows_its_latest_chapter(place: Place, sites: SimulatedSites) -> None:
    """COV-001, COV-007, SITE-003: at each plain Site within seconds; a Site behind a browser is not asked."""
    place.reads(sites)
    credential = place.credential()
    async with place.serve() as serve:
        await serve.listening()
        async with serve.client(credential) as client:
            added = {site: first_of(sites, site) for site in SITES}
            for series in added.values():
                with trio.fail_after(UNHELD_SECONDS):
                    assert (await put(client, series))["latest_chapter_num"] is None
            expected = {key_of(added[site]): float(added[site].chapters[-1]) for site in PLAIN_SITES}
            await latest_becomes(client, expected, LATEST_SECONDS)
            listed = await rows(client)
            assert len(listed) == len(SITES)
            assert all(listed[key_of(added[site])]["latest_chapter_num"] is None for site in BROWSER_SITES)
        await stop(serve)
        assert "Traceback" not in serve.said
    assert {site: len(sites.requests_to(site)) for site in SITES} == {site: int(site in PLAIN_SITES) for site in SITES}


async def test_a_chapter_published_later_appears_and_the_gap_is_kept(place: Place, sites: SimulatedSites) -> None:
    """LANE-002, LANE-019, LANE-020, LANE-047: a restart is no way around the gap between two requests."""
    place.reads(sites)
    credential = place.credential()
    series = first_of(sites, "asura")
    async with place.serve() as serve:
        await serve.listening()
        async with serve.client(credential) as client:
            await put(client, series)
            await latest_becomes(client, {key_of(series): 88}, LATEST_SECONDS)
        place.sql("UPDATE series SET latest_checked_at = 1")
        await stop(serve)
    sites.world.publish("asura", series.slug, "89")
    async with place.serve() as serve:
        await serve.listening()
        async with serve.client(credential) as client:
            await latest_becomes(client, {key_of(series): 89}, 15)
        [(checked, due)] = place.sql("SELECT checked, due FROM poll_passes WHERE due > 0")
        assert (checked, due) == (1, 1)
        await stop(serve)
    acquired, polled = sites.requests_to("asura")
    assert polled.at - acquired.at >= 10


async def test_a_silent_site_holds_up_neither_a_put_nor_the_end(place: Place, sites: SimulatedSites) -> None:
    """COV-003, LANE-020, OPS-007: the read is cut, and the Series is due as it was before."""
    place.reads(sites)
    credential = place.credential()
    acquired, polled = first_of(sites, "novelfull"), first_of(sites, "demonic")
    sites.world.misbehave(acquired.shape.host, faults.silence)
    async with place.serve() as serve:
        await serve.listening()
        async with serve.client(credential) as client:
            await put(client, polled)
            await latest_becomes(client, {key_of(polled): 172}, LATEST_SECONDS)
            with trio.fail_after(UNHELD_SECONDS):
                await put(client, acquired)
            with trio.fail_after(LATEST_SECONDS):
                await sites.wait_until(lambda: len(sites.requests_to("novelfull")) == 1)
            with trio.fail_after(UNHELD_SECONDS):
                assert len(await rows(client)) == 2
        place.sql("UPDATE series SET latest_checked_at = 1 WHERE site = 'demonic'")
        place.sql("UPDATE site_requests SET last_request_at = 1")
        await stop(serve)
    sites.world.misbehave(polled.shape.host, faults.silence)
    async with place.serve() as serve:
        with trio.fail_after(20):
            await sites.wait_until(lambda: len(sites.requests_to("demonic")) == 2)
        await stop(serve)
        assert "Traceback" not in serve.said
    async with embedded_postgres(place.data):
        stamps = place.sql("SELECT site, latest_checked_at FROM series ORDER BY site")
        passes = place.sql("SELECT checked, errors FROM poll_passes WHERE site = 'demonic' AND due = 1")
    assert stamps == [("demonic", 1), ("novelfull", 0)]
    assert passes == [(0, 0)]


async def test_two_readers_share_a_series_and_a_fetch(external: Place, sites: SimulatedSites) -> None:
    """API-003, COV-007, LANE-049, TOK-004: and neither sees what the other keeps."""
    external.reads(sites)
    async with external.serve() as serve:
        await serve.listening()
        assert (await external.run("readers", "add", "1002")).returncode == 0
        shared, mine, theirs = first_of(sites, "asura"), first_of(sites, "demonic"), first_of(sites, "novelfull")
        one, other = external.credential(OWNER), external.credential("1002")
        async with serve.client(one) as owner, serve.client(other) as reader:
            await put(owner, shared, 5)
            await put(owner, mine)
            await latest_becomes(owner, {key_of(shared): 88}, LATEST_SECONDS)
            assert (await put(reader, shared, 7))["latest_chapter_num"] == 88
            await put(reader, theirs)
            await latest_becomes(reader, {key_of(theirs): 1520}, LATEST_SECONDS)
            listed = [await rows(client) for client in (owner, reader)]
        assert [each.keys() for each in listed] == [
            {key_of(shared), key_of(mine)},
            {key_of(shared), key_of(theirs)},
        ]
        assert [each[key_of(shared)]["last_chapter_num"] for each in listed] == [5, 7]
        await stop(serve)
    assert len(sites.requests_to("asura")) == 1


# --- nothing acknowledged is lost


# httpx leaves the body of a request that was cut off in the middle to the collector.
@pytest.mark.filterwarnings("ignore:Async generator 'httpx:ResourceWarning")
async def test_a_killed_process_loses_no_acknowledged_put(place: Place) -> None:
    """API-012, OPS-001: with PUTs in flight, embedded Postgres included; each start recovers by itself."""
    credential = place.credential()
    acknowledged: dict[str, float] = {}

    async def write(client: httpx.AsyncClient, reader: str) -> None:
        for number in range(1, 100_000):
            key = f"asura:{reader}-{number % 7}"
            try:
                answer = await client.put(f"/bookmarks/{key}", json={"title": "x", "last_chapter_num": number})
            except httpx.TransportError:
                return
            assert answer.status_code == 200, answer.text
            acknowledged[key] = number
            written.release()

    for kill in range(2):
        written = trio.Semaphore(0)
        async with place.serve() as serve:
            await serve.listening()
            async with serve.client(credential) as client:
                listed = {key: row["last_chapter_num"] for key, row in (await rows(client)).items()}
                # One PUT a writer may have been stored and its answer cut off.
                lost = {key: number for key, number in acknowledged.items() if listed.get(key, 0) < number}
                assert not lost
                async with trio.open_nursery() as writers:
                    for writer in range(6):
                        writers.start_soon(write, client, f"{kill}{writer}")
                    with trio.fail_after(20):
                        for _ in range(60 + 40 * kill):
                            await written.acquire()
                    serve.signal(signal.SIGKILL)
            assert await serve.ended() == -signal.SIGKILL
    assert len(acknowledged) > 60
    async with place.serve() as serve:
        await serve.listening()
        async with serve.client(credential) as client:
            listed = {key: row["last_chapter_num"] for key, row in (await rows(client)).items()}
        assert not {key: number for key, number in acknowledged.items() if listed.get(key, 0) < number}
        await stop(serve)


# --- what does not start


async def test_a_second_serve_on_a_folder_is_refused(place: Place) -> None:
    """CFG-001: INTERFACE.md, exit 2; and so is a port that is taken. The first goes on."""
    async with place.serve() as serve:
        address = await serve.listening()
        code, said = await place.fails()
        assert code == 2
        assert "another serve" in said.splitlines()[-1]
        elsewhere = Place(place.folder, {**place.environ, "PORT": address.rpartition(":")[2]})
        elsewhere.environ["DATA_DIR"] = str(place.folder / "other")
        shutil.copytree(place.folder / "data", place.folder / "other", ignore=shutil.ignore_patterns("*"))
        code, said = await elsewhere.fails()
        assert code == 2
        assert said.splitlines()[-1].startswith("BIND, PORT: ")
        assert not server_processes(place.folder / "other" / "postgres")
        async with serve.client() as client:
            assert (await client.get("/healthz")).status_code == 200
        await stop(serve)


async def test_mistakes_in_the_settings_are_named(external: Place) -> None:
    """CFG-001: exit 2, before anything listens; a line for each."""
    external.environ |= {"PORT": "eighty", "LOG_LEVEL": "loud"}
    code, said = await external.fails()
    assert code == 2
    assert [line.split(": ")[0] for line in sorted(said.splitlines())] == ["LOG_LEVEL", "PORT"]


async def test_a_database_out_of_reach_is_told_without_its_password(external: Place) -> None:
    """OPS-001: exit 3, one line."""
    external.environ["DATABASE_URL"] = "postgresql://books:correct-horse-battery@127.0.0.1:1/books"
    code, said = await external.fails()
    assert code == 3
    assert len(said.splitlines()) == 1
    assert "127.0.0.1" in said
    assert "correct-horse" not in said


async def test_a_database_newer_than_the_code_is_left_alone(external: Place, database_url: str) -> None:
    """OPS-001: exit 3."""
    external.environ["DATABASE_URL"] = as_address(database_url)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("INSERT INTO schema_migrations (version) SELECT max(version) + 1 FROM schema_migrations")
    code, said = await external.fails()
    assert code == 3
    assert said.startswith("the database is at version ")


# --- on what it can do without


async def test_an_external_database_is_all_that_is_touched(
    external: Place, empty_database_url: str, sites: SimulatedSites
) -> None:
    """CFG-006, OPS-001, OPS-008: no server of its own; with polling off the rest works, and no Lane writes a row."""
    external.reads(sites)
    external.environ["LATEST_CHAPTER_POLL_ENABLED"] = "0"
    series = first_of(sites, "lightnovelworld")
    async with external.serve() as serve:
        await serve.listening()
        async with serve.client(external.credential(OWNER)) as client:
            await put(client, series)
            await latest_becomes(client, {key_of(series): 57}, LATEST_SECONDS)
        await stop(serve)
        assert "polling is off" in serve.said
    assert sorted(path.name for path in external.data.iterdir()) == ["covers", "serve.lock"]
    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute("SELECT site FROM poll_passes").fetchall() == []
        assert connection.execute("SELECT discord_id FROM readers").fetchall() == [(OWNER,)]


async def test_without_the_plain_client_all_else_works(external: Place, sites: SimulatedSites) -> None:
    """OPS-004: it is said loudly, and no page is asked for."""
    external.reads(sites)
    shim = external.folder / "shim" / "curl_cffi"
    shim.mkdir(parents=True)
    shim.joinpath("__init__.py").write_text("raise ImportError('libcurl of another machine')\n")
    external.python_path = (shim.parent,)
    async with external.serve() as serve:
        await serve.listening()
        await serve.says("ERROR .*plain client cannot be built: libcurl of another machine")
        async with serve.client(external.credential(OWNER)) as client:
            assert (await put(client, first_of(sites, "asura")))["latest_chapter_num"] is None
            assert len(await rows(client)) == 1
        await stop(serve)
        assert "Traceback" not in serve.said
    assert sites.requests == []


async def test_no_secret_is_written(external: Place, empty_database_url: str, sites: SimulatedSites) -> None:
    """API-003, OPS-001: at the most talkative level, with requests good and bad."""
    external.reads(sites)
    password = "correct-horse-battery"
    external.environ |= {"DATABASE_URL": as_address(empty_database_url, password), "LOG_LEVEL": "debug"}
    async with external.serve() as serve:
        await serve.listening()
        credential = external.credential(OWNER)
        async with serve.client(credential) as client:
            series = first_of(sites, "asura")
            await put(client, series)
            await latest_becomes(client, {key_of(series): 88}, LATEST_SECONDS)
            assert (await client.put("/bookmarks/asura:x", content=b"{")).status_code == 400
            assert (await client.get(f"/bookmarks/{credential}")).status_code == 405
        with psycopg.connect(empty_database_url, autocommit=True) as connection:
            connection.execute("ALTER TABLE bookmarks RENAME TO gone")
            connection.execute("UPDATE readers SET list_version = list_version + 1")
        async with serve.client(credential) as client:
            assert (await client.get("/bookmarks")).status_code == 500
        await stop(serve)
    assert "Traceback" in serve.said
    assert not [secret for secret in (credential, TOKEN_KEY, password) if secret in serve.said]
    assert len(re.findall("listening on", serve.said)) == 1


# --- when the database goes


async def test_the_end_of_embedded_postgres_is_the_end_of_serve(place: Place) -> None:
    """OPS-001: nothing works without it; loudly, and the next start recovers."""
    async with place.serve() as serve:
        await serve.listening()
        os.kill(place.postmaster(), signal.SIGKILL)
        assert await serve.ended() == 3
        assert "embedded database has ended" in serve.said
    async with place.serve() as serve:
        await serve.listening()
        await stop(serve)


async def test_an_external_database_may_go_and_come_back(empty_folder: Path, used_folder: Path) -> None:
    """API-004, API-022: 503 meanwhile, and all is well again without a restart."""
    elsewhere = empty_folder / "elsewhere"
    elsewhere.mkdir(0o711)
    database = EmbeddedPostgres(copied(used_folder, elsewhere).data, serve=True, settings={})
    await database.start()
    place = Place(empty_folder, {"PORT": "0", "TOKEN_KEY": TOKEN_KEY, "DATABASE_URL": as_address(database.conninfo)})
    try:
        async with place.serve() as serve:
            await serve.listening()
            async with serve.client(place.credential()) as client:
                assert await rows(client) == {}
                await database.stop()
                away = await client.get("/bookmarks")
                assert (away.status_code, list(away.json())) == (503, ["error"])
                assert int(away.headers["Retry-After"]) > 0
                refused = await client.put("/bookmarks/asura:x", json={"title": "x", "last_chapter_num": 1})
                assert refused.status_code == 503
                assert (await client.get("/healthz")).status_code == 200
                await database.start()
                assert await rows(client) == {}
                kept = await client.put("/bookmarks/asura:x", json={"title": "x", "last_chapter_num": 1})
                assert kept.status_code == 200
            await stop(serve)
    finally:
        await database.stop()


# --- covers


async def test_covers_come_from_our_own_origin(place: Place, sites: SimulatedSites) -> None:
    """COV-001, COV-026, COV-027, COV-034, LANE-053: the plain Sites' covers, whatever their address and its type."""
    place.reads(sites)
    shown = [first_of(sites, site) for site in ("asura", "demonic", "lightnovelworld")]
    async with place.serve() as serve:
        address = await serve.listening()
        async with serve.client(place.credential()) as client:
            for series in shown:
                assert (await put(client, series))["cover"] == ""
            listed: dict[str, Row] = {}
            with trio.move_on_after(LATEST_SECONDS):
                while not all(row["cover"] for row in listed.values()) or not listed:
                    listed = await rows(client)
                    await trio.sleep(0.05)
        async with serve.client() as anyone:
            for series in shown:
                cover = listed[key_of(series)]["cover"]
                assert cover.startswith(f"{address}/covers/")
                whole = await anyone.get(cover)
                kind = series.shape.cover_type
                assert (whole.status_code, whole.headers["content-type"], whole.content) == (
                    200,
                    kind,
                    image(kind, series.slug),
                )
                small = await anyone.get(cover, params={"w": "240"})
                assert (small.status_code, small.headers["content-type"]) == (200, "image/webp")
        await stop(serve)
        assert serve.said.count(": cover of ") == len(shown)
        assert "WARNING" not in serve.said
    for series in shown:
        assert len(sites.requests_to(series.shape.cover_host)) == 1


async def test_a_poll_heals_a_cover_that_was_not_to_be_had(place: Place, sites: SimulatedSites) -> None:
    """COV-005, COV-012, COV-013: the number stands alone meanwhile; the next Poll asks for the stored source again."""
    place.reads(sites)
    series = first_of(sites, "demonic")
    sites.world.misbehave(series.shape.cover_host, faults.BY_NAME["server_error"])
    async with place.serve() as serve:
        await serve.listening()
        async with serve.client(place.credential()) as client:
            await put(client, series)
            await latest_becomes(client, {key_of(series): 172}, LATEST_SECONDS)
            await serve.says(rf"{re.escape(key_of(series))}: no cover: status 500")
            assert (await rows(client))[key_of(series)]["cover"] == ""
            sites.world.behave()
            place.sql("UPDATE series SET force_poll_at = latest_checked_at + 1")
            await serve.says(rf"{re.escape(key_of(series))}: cover of ")
            cover = (await rows(client))[key_of(series)]["cover"]
            assert (await client.get(cover)).content == image(series.shape.cover_type, series.slug)
        await stop(serve)
