"""The challenge that only a live tab clears, asked by clients of every kind."""

import os
import re
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

import pytest
import trio

from bookmark_appliance.cdp.chrome_command import find_chrome
from bookmark_appliance.page import Page
from tests.lanes.fetching import at_once, fetcher_for, site_at
from tests.simulated_sites import SimulatedSites, faults
from tests.simulated_sites.gate import COOKIE, MACHINERY, answer_to
from tests.simulated_sites.pages import STRICT
from tests.simulated_sites.world import GATED, HOSTS, Series

pytest_plugins = ["tests.simulated_sites.fixtures"]

CHROME = find_chrome()
needs_chrome = pytest.mark.skipif(CHROME is None, reason="no Chrome on this machine")
NO_HEADERS: Mapping[str, str] = MappingProxyType({})
GATED_HOSTS = [host for hosts in GATED.values() for host in hosts]


async def read(sites: SimulatedSites, host: str, target: str, headers: Mapping[str, str] = NO_HEADERS) -> Page:
    address = f"https://{host}{target}"
    return await fetcher_for(sites).fetch(site_at(host), address, headers=headers, before_request=at_once)


async def answer(
    sites: SimulatedSites, host: str, *, off_by: int = 0, zone: str = "Asia/Jakarta", agent: str = ""
) -> str | None:
    """Be challenged, and answer as the script would; the cookie that was earned."""
    challenge = await read(sites, host, "/")
    assert (challenge.status, challenge.headers["cf-mitigated"]) == (403, "challenge")
    ray = re.findall(r"cRay:'([0-9a-f]{16})'", challenge.text)[0]
    target = f"{MACHINERY}/flow/ov1/{ray}/{answer_to(ray) + off_by}?zone={zone}"
    answered = await read(sites, host, target, {"User-Agent": agent} if agent else NO_HEADERS)
    assert answered.status == 200
    return answered.headers.get("set-cookie")


def first_of(sites: SimulatedSites, site: str) -> Series:
    return next(series for series in sites.world.series if series.site == site)


async def test_a_gate_stands_before_everything_of_its_hosts_but_novelfulls_images(
    simulated_sites: SimulatedSites,
) -> None:
    """Pages, API, images and the Site's own 404s; faults are behind it."""
    for site in GATED:
        simulated_sites.world.gate(site)
        series = first_of(simulated_sites, site)
        simulated_sites.world.misbehave(series.address, faults.status(429))
        targets = [(series.shape.host, series.target), (series.shape.host, "/nowhere")]
        if site == "kagane":
            targets.append((series.shape.host, f"/api/v2/series/{series.slug}"))
        if site != "novelfull":
            targets.append((series.shape.cover_host, series.cover_target))
        for host, target in targets:
            page = await read(simulated_sites, host, target)
            assert (page.status, page.headers["cf-mitigated"]) == (403, "challenge")
        simulated_sites.world.behave()
    cover = first_of(simulated_sites, "novelfull").cover_target
    assert (await read(simulated_sites, "novelfull.com", cover)).status == 200
    assert simulated_sites.counts["kagane.to"] == {"challenge": 4}
    assert simulated_sites.counts["novelfull.com"] == {"challenge": 2, "image": 1}


@pytest.mark.parametrize("host", GATED_HOSTS)
async def test_the_right_answer_opens_one_host_for_some_time(simulated_sites: SimulatedSites, host: str) -> None:
    """By a cookie, which no script sees, which is void when its time is over and at another host."""
    simulated_sites.world.gate("comix")
    simulated_sites.world.gate("kagane")
    simulated_sites.world.gate("novelfull")
    cookie = await answer(simulated_sites, host)
    assert cookie is not None
    assert cookie.startswith(f"{COOKIE}=")
    assert cookie.endswith("; Path=/; Max-Age=1800; Secure; HttpOnly; SameSite=None")
    carried = {"Cookie": cookie.partition(";")[0]}
    assert (await read(simulated_sites, host, "/nowhere", carried)).status == 404
    for other in set(GATED_HOSTS) - {host}:
        assert (await read(simulated_sites, other, "/nowhere", carried)).status == 403
    simulated_sites.world.misbehave(host, faults.status(429))
    assert (await read(simulated_sites, host, "/nowhere", carried)).status == 429
    simulated_sites.world.gate("kagane", lifetime=0)
    if host == "kagane.to":
        carried = {"Cookie": ((await answer(simulated_sites, host)) or "").partition(";")[0]}
        assert (await read(simulated_sites, host, "/nowhere", carried)).status == 403


@pytest.mark.parametrize(
    "wrong",
    [{"off_by": 1}, {"zone": "UTC"}, {"zone": "Etc/UTC"}, {"agent": "HeadlessChrome/156.0.0.0"}],
    ids=["wrong answer", "UTC", "Etc/UTC", "headless"],
)
async def test_who_is_no_live_tab_earns_nothing(simulated_sites: SimulatedSites, wrong: dict[str, str]) -> None:
    """As measured of the real ones."""
    simulated_sites.world.gate("kagane")
    assert await answer(simulated_sites, "kagane.to", **wrong) is None  # type: ignore[arg-type]


async def test_a_gate_is_changed_while_it_runs(simulated_sites: SimulatedSites) -> None:
    """By its control address: never clearing, clearing, off."""
    await read(simulated_sites, "asurascans.com", "/-/gate/comix/never")
    assert [await answer(simulated_sites, host) for host in GATED["comix"]] == [None, None]
    await read(simulated_sites, "asurascans.com", "/-/gate/comix/clearing")
    assert None not in [await answer(simulated_sites, host) for host in GATED["comix"]]
    assert [gate.cleared for gate in simulated_sites.world.gates.values()] == [1, 1]
    state = (await read(simulated_sites, "asurascans.com", "/-/gate/comix/off")).text
    assert "gates: []" in state
    assert "requests to comix.to: {'challenge': 2, 'machinery': 2}" in state
    assert (await read(simulated_sites, "comix.to", "/nowhere")).status == 404


def chrome(sites: SimulatedSites, profile: Path, address: str) -> list[str]:
    """The command that shows what a real one makes of `address`."""
    return [
        str(CHROME),
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        "--user-agent=Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0",
        "--ignore-certificate-errors",  # in a profile that goes, and of addresses on this machine alone
        f"--user-data-dir={profile}",
        f"--host-resolver-rules={','.join(f'MAP {host} 127.0.0.1:{sites.port}' for host in HOSTS)}",
        "--virtual-time-budget=3000",
        "--dump-dom",
        address,
    ]


@needs_chrome
async def test_a_real_chrome_clears_it_and_renders(simulated_sites: SimulatedSites, tmp_path: Path) -> None:
    """Within a strict page too, whose script asks the API itself."""
    simulated_sites.world.gate("kagane", seconds=0.5)
    simulated_sites.world.policies["kagane.to"] = STRICT
    command = chrome(simulated_sites, tmp_path, first_of(simulated_sites, "kagane").address)
    with trio.fail_after(60):
        environment = {**os.environ, "TZ": "Asia/Jakarta"}
        shown = await trio.run_process(command, capture_stdout=True, stderr=subprocess.DEVNULL, env=environment)
    assert b"<h1>Harbour of Small Gods</h1><ul><li>null</li><li>1</li><li>12.5</li></ul>" in shown.stdout
    counts = simulated_sites.counts["kagane.to"]
    assert (counts["page"], counts["api"], counts["asset"]) == (1, 1, 3)


@needs_chrome
async def test_a_real_chrome_in_utc_is_challenged_for_ever(simulated_sites: SimulatedSites, tmp_path: Path) -> None:
    """Each answer is followed by the next challenge."""
    simulated_sites.world.gate("kagane", seconds=0.1)
    command = chrome(simulated_sites, tmp_path, first_of(simulated_sites, "kagane").address)
    counts = simulated_sites.counts["kagane.to"]
    quiet = partial(trio.run_process, command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(quiet, env={**os.environ, "TZ": "UTC"}))
            await simulated_sites.wait_until(lambda: counts["machinery"] >= 6)
            nursery.cancel_scope.cancel()
    assert counts["challenge"] >= 3
    assert set(counts) == {"challenge", "machinery"}
