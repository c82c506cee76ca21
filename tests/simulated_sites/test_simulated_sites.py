"""The stand-in itself: what other tests believe of it has to hold."""

import subprocess
import sys
from pathlib import Path

import pytest
import trio

from bookmark_appliance.lanes.page_errors import TransportFailure
from bookmark_appliance.page import Page
from tests.lanes.fetching import at_once, fetcher_for, site_at
from tests.simulated_sites import SimulatedSites, faults
from tests.simulated_sites.world import HOSTS, SHAPES, Series, World

pytest_plugins = ["tests.simulated_sites.fixtures"]

MAGIC = {"image/jpeg": b"\xff\xd8\xff", "image/png": b"\x89PNG\r\n\x1a\n", "image/webp": b"RIFF"}


async def read(sites: SimulatedSites, host: str, target: str) -> Page:
    """What `https://host/target` answers."""
    return await fetcher_for(sites).fetch(site_at(host), f"https://{host}{target}", before_request=at_once)


async def read_page(sites: SimulatedSites, series: Series) -> Page:
    return await read(sites, series.shape.host, series.target)


@pytest.mark.parametrize("site", SHAPES)
async def test_a_published_chapter_is_on_the_next_page(simulated_sites: SimulatedSites, site: str) -> None:
    """LANE-047: growth, and a retraction, seen where a reader of this Site looks."""
    series = simulated_sites.world.add(site, "7h2qk-brass-garden", chapters=3)
    target = series.target if site != "kagane" else f"/api/v2/series/{series.slug}"
    for change, present in ((simulated_sites.world.publish, True), (simulated_sites.world.retract, False)):
        change(site, series.slug, "777.5")
        page = await read(simulated_sites, series.shape.host, target)
        assert ("777.5" in page.text) is present


async def test_every_cover_is_an_image_of_its_type(simulated_sites: SimulatedSites) -> None:
    """COV-020: the declared type and the first bytes agree, and no two Series share a picture."""
    covers = {}
    for series in simulated_sites.world.series:
        cover = await read(simulated_sites, series.shape.cover_host, series.cover_target)
        assert cover.headers["content-type"] == series.shape.cover_type
        assert cover.body.startswith(MAGIC[series.shape.cover_type])
        covers[series.address] = cover.body
    assert len(set(covers.values())) == len(simulated_sites.world.series)
    assert simulated_sites.requests_to("novelfull") == []


async def test_a_fault_is_for_one_series_or_for_a_host_until_it_ends(simulated_sites: SimulatedSites) -> None:
    """LANE-029: the pages around a broken one stay good."""
    one, other = simulated_sites.world.series[:2]
    simulated_sites.world.misbehave(one.address, faults.status(429, retry_after="60"))
    refused = await read_page(simulated_sites, one)
    assert (refused.status, refused.headers["retry-after"]) == (429, "60")
    assert (await read_page(simulated_sites, other)).status == 200
    simulated_sites.world.misbehave(other.shape.host, faults.challenge)
    assert (await read_page(simulated_sites, other)).headers["cf-mitigated"] == "challenge"
    simulated_sites.world.behave()
    assert [(await read_page(simulated_sites, series)).status for series in (one, other)] == [200, 200]


@pytest.mark.parametrize("name", [name for name in faults.BY_NAME if name not in {"silence", "drip", "in_halves"}])
async def test_every_named_fault_ends_in_an_answer_or_a_failure(simulated_sites: SimulatedSites, name: str) -> None:
    """LANE-029: none leaves a caller hanging, and none is the page itself."""
    series = simulated_sites.world.series[0]
    simulated_sites.world.misbehave(series.address, faults.BY_NAME[name])
    try:
        page = await read_page(simulated_sites, series)
    except TransportFailure:
        return
    assert "chapter/88" not in page.text


async def test_arrivals_are_recorded_in_order_with_their_times(simulated_sites: SimulatedSites) -> None:
    """LANE-056: gaps are asserted on the wire."""
    one, other = simulated_sites.world.series[0], simulated_sites.world.find("demonic", "Widow%2527s-Clockwork")
    for series in (one, other, one):
        await read_page(simulated_sites, series)
    assert [seen.target for seen in simulated_sites.requests] == [one.target, other.target, one.target]
    times = [seen.at for seen in simulated_sites.requests_to("asura")]
    assert len(times) == 2
    assert times == sorted(times)
    assert times[1] <= trio.current_time()


def test_it_runs_as_a_command(tmp_path: Path) -> None:
    """SITE-042: for the demonstration: settings in a file when ready, growth on a timer, control over HTTP, SIGTERM."""
    env_file = tmp_path / "sites.env"
    command = [sys.executable, "-m", "tests.simulated_sites", "--env-file", str(env_file), "--grow-every", "0.05"]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        printed = [process.stdout.readline() for _ in range(3)]
        assert env_file.read_text() == "".join(printed[:2])
        settings = dict(line.split("=", 1) for line in env_file.read_text().splitlines())
        connections = [entry.split("=") for entry in settings["SITE_CONNECT_TO"].split(",")]
        assert [host for host, _ in connections] == HOSTS
        port = int(connections[0][1].rpartition(":")[2])
        trio.run(drive, SimulatedSites(World(), Path(settings["SITE_CA_FILE"]), port))
        process.terminate()
        assert process.wait(20) == 0


async def drive(sites: SimulatedSites) -> None:
    """See the running command grow, then make it misbehave."""
    with trio.fail_after(20):
        while "['89']" not in (await read(sites, "asurascans.com", "/-/")).text:  # noqa: ASYNC110, another process
            await trio.sleep(0.05)
        await read(sites, "asurascans.com", "/-/misbehave/asurascans.com/forbidden")
        assert (await read(sites, "asurascans.com", "/")).status == 403
