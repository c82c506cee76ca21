"""The browser host with a real Chromium: when it is there, whom it serves, and what is left of it."""

import logging
import os
import re
import signal
import socket
import struct
from contextlib import AsyncExitStack
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import pytest
import trio
from trio_websocket import ConnectionClosed

from bookmark_appliance.cdp import chrome_keeper, chrome_process
from bookmark_appliance.cdp.chrome_process import CLOSE_SECONDS, TERM_SECONDS
from bookmark_appliance.cdp.chrome_profile import chromes_on
from tests.cdp_host.hosting import ZONE, Host, chrome_options, host_of, running_host
from tests.serving_process import Place, eventually
from tests.simulated_sites import simulated_sites


def lines(caplog: pytest.LogCaptureFixture, pattern: str) -> list[str]:
    """The lines of the log in which `pattern` is found."""
    return [record.getMessage() for record in caplog.records if re.search(pattern, record.getMessage())]


def scripted(folder: Path, script: str) -> Path:
    """A program in Chrome's place."""
    program = folder / "chrome"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


async def is_closed_at_once(host: Host) -> None:
    async with await silent_connection(host) as stream:
        with trio.fail_after(20):
            assert await stream.receive_some() == b""


async def silent_connection(host: Host) -> trio.SocketStream:
    return await trio.open_tcp_stream(*host.address)


async def test_the_first_connection_starts_chrome_and_later_ones_share_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """BRO-019, BRO-017: ten at once wait for one start; Chrome gives back the address that was asked."""
    caplog.set_level(logging.INFO)
    profile = tmp_path / "profile"
    found: list[str] = []

    async def ask(host: Host) -> None:
        async with host.client() as client:
            await client.call("Browser.getVersion")
        found.append((await host.discovery())["webSocketDebuggerUrl"])

    async with running_host(chrome_options(profile)) as host:
        assert not chromes_on(profile)
        async with trio.open_nursery() as clients:
            for _ in range(10):
                clients.start_soon(ask, host)
        assert len(chromes_on(profile)) == 1
        assert len(set(found)) == 1
        assert found[0].startswith(f"ws://{host.name}/devtools/browser/")
    assert not chromes_on(profile)
    assert len(lines(caplog, "is up after")) == 1


async def test_cookies_survive_the_end_and_another_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """BRO-019: stopped when nobody was connected for the idle time; what was set a moment before is on the disk."""
    caplog.set_level(logging.INFO)
    cookie = {"name": "clearance", "value": "given", "domain": "kagane.to", "path": "/", "expires": 4_000_000_000}
    async with running_host(chrome_options(tmp_path / "profile"), idle_seconds=0.2) as host:
        async with host.client() as client:
            await client.call("Storage.setCookies", cookies=[cookie])
        await eventually(lambda: not chromes_on(tmp_path / "profile"))
        assert lines(caplog, "no connection for 0.2 s: Chrome is stopped")
        async with host.client() as client:
            kept = (await client.call("Storage.getCookies"))["cookies"]
    assert [(one["name"], one["value"], one["domain"]) for one in kept] == [("clearance", "given", "kagane.to")]
    assert len(lines(caplog, "is up after")) == 2
    assert not lines(caplog, "ended by itself")


async def test_connections_that_say_nothing_keep_it_only_while_they_are_there(tmp_path: Path) -> None:
    """BRO-019: one that ends, one that ends its half, and one that is cut; Chrome goes when the last is gone."""
    profile = tmp_path / "profile"
    async with running_host(chrome_options(profile), idle_seconds=0.2) as host, AsyncExitStack() as stack:
        ended, half, cut = [await stack.enter_async_context(await silent_connection(host)) for _ in range(3)]
        await eventually(lambda: bool(chromes_on(profile)))
        await host.discovery()
        await ended.aclose()
        await half.send_eof()
        with trio.fail_after(20):
            assert await half.receive_some() == b""
        with trio.move_on_after(1) as longer_than_idle:
            await eventually(lambda: not chromes_on(profile))
        assert longer_than_idle.cancelled_caught
        cut.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset in place of an end
        await cut.aclose()
        await eventually(lambda: not chromes_on(profile))


async def test_a_chrome_that_was_killed_ends_its_connections_and_the_next_one_starts_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """BRO-017: the client learns it at once, the log has one line, and the next discovery names another browser."""
    profile = tmp_path / "profile"
    async with running_host(chrome_options(profile)) as host:
        async with host.client() as client:
            before = await host.discovery()
            [group] = chromes_on(profile)
            os.kill(group, signal.SIGKILL)
            with trio.fail_after(10), pytest.raises(ConnectionClosed):
                await client.socket.get_message()
        await eventually(lambda: bool(caplog.records))
        after = await host.discovery()
        assert after["webSocketDebuggerUrl"] != before["webSocketDebuggerUrl"]
        assert len(chromes_on(profile)) == 1
    assert [record.getMessage() for record in caplog.records] == [
        "Chrome has ended by itself; the next connection starts another"
    ]


async def test_a_chrome_that_is_stuck_is_ended_though_clients_come_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BRO-019: one that neither answers, nor closes when asked, nor ends when told; the log has one line."""
    monkeypatch.setattr(chrome_keeper, "CHECK_SECONDS", 0.1)
    for name, seconds in (("ANSWER_SECONDS", 3.0), ("CLOSE_SECONDS", 0.5), ("TERM_SECONDS", 0.5)):
        monkeypatch.setattr(chrome_process, name, seconds)
    async with running_host(chrome_options(tmp_path)) as host, host.client() as client:
        [group] = chromes_on(tmp_path)
        os.killpg(group, signal.SIGSTOP)
        with trio.fail_after(20), pytest.raises(ConnectionClosed):
            await client.socket.get_message()
        monkeypatch.setattr(chrome_process, "ANSWER_SECONDS", 30.0)
        await host.discovery()
        assert chromes_on(tmp_path) not in ([], [group])
    assert [record.getMessage() for record in caplog.records] == [
        "Chrome does not answer and is ended; the next connection starts another"
    ]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 3", "--version ended with status 3: "),
        ("echo 1.2", "its version can't be read from '1.2'"),
        ("exec sleep 600", "it did not come up within 2 s"),
        ('[ "$1" = --version ] && { echo Chromium 156.0.1.2; exit; }; echo no display >&2; exit 1',
         "it ended with status 1; its last words: no display"),
        ('[ "$1" = --version ] && { echo Chromium 156.0.1.2; exit; }; echo wait >&2; sleep 600; exit',
         "it did not come up within 2 s; its last words: wait"),
    ],
)  # fmt: skip
async def test_a_chrome_that_does_not_start_is_one_line_and_closed_connections(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, script: str, reason: str
) -> None:
    """Ends, hangs, or is no Chrome: those who come in the pause after it are closed without another try."""
    options = chrome_options(tmp_path / "profile", scripted(tmp_path, script))
    async with running_host(options, start_seconds=2 if "sleep" in script else 30) as host:
        for _ in range(3):
            await is_closed_at_once(host)
    [record] = caplog.records
    assert reason in record.getMessage()
    assert not chromes_on(tmp_path / "profile")


async def test_after_a_pause_chrome_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chrome_keeper, "PAUSE_SECONDS", 0.1)
    options = chrome_options(tmp_path / "profile", scripted(tmp_path, "exit 3"))
    async with running_host(options) as host:
        with trio.fail_after(20):
            while len(caplog.records) < 2:
                await is_closed_at_once(host)


async def test_a_program_that_is_not_there_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running_host(chrome_options(tmp_path / "profile", tmp_path / "missing")) as host:
        await is_closed_at_once(host)
    [record] = caplog.records
    assert "No such file" in record.getMessage()
    assert str(tmp_path / "missing") in record.getMessage()


async def test_peers_that_are_not_allowed_are_closed_and_do_not_fill_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """BRO-020: and Chrome is not started for them."""
    options = chrome_options(tmp_path / "profile", tmp_path / "missing")
    async with running_host(options, allow=[ip_network("100.64.0.0/10")]) as host:
        for _ in range(5):
            await is_closed_at_once(host)
    [record] = caplog.records
    assert "127.0.0.1 is not among those of --allow" in record.getMessage()


async def test_what_a_site_sees_is_a_chrome_with_a_window(tmp_path: Path) -> None:
    """BRO-019: agent, client hints, webdriver flag and zone, over TLS, through SITE_CONNECT_TO and SITE_CA_FILE."""
    place = Place(tmp_path)
    async with simulated_sites() as sites:
        place.reads(sites)
        async with place.start("browser", "--listen", "127.0.0.1:0", "--timezone", ZONE) as command:
            host = await host_of(command)
            async with host.client() as client:
                tab = await client.tab()
                loaded = await client.call("Page.navigate", tab, url="https://kagane.to/")
                assert "errorText" not in loaded
                elsewhere = await client.call(
                    "Page.navigate", await client.tab(), url=f"https://127.0.0.1:{sites.port}/"
                )
                assert "errorText" not in elsewhere, "the name is in the certificate"
                product = (await client.call("Browser.getVersion"))["product"]
                seen = await client.evaluate(
                    tab,
                    "[Intl.DateTimeFormat().resolvedOptions().timeZone, navigator.webdriver, navigator.userAgent]"
                    ".concat(navigator.userAgentData.brands.map(brand => brand.brand + brand.version)).join('|')",
                )
        headers = sites.requests_to("https://kagane.to/")[0].headers
    major = product.partition("/")[2].partition(".")[0]
    assert headers["user-agent"] == (
        f"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{major}.0.0.0 Safari/537.36"
    )
    assert f'"Chromium";v="{major}"' in headers["sec-ch-ua"]
    assert seen.startswith(f"{ZONE}|false|{headers['user-agent']}|")
    assert f"|Chromium{major}" in seen
    assert "Headless" not in str(headers) + seen


async def test_an_authority_that_is_not_named_is_not_trusted(tmp_path: Path) -> None:
    """A profile that once trusted SITE_CA_FILE trusts it no longer when the setting is gone."""
    profile = tmp_path / "profile"
    async with simulated_sites() as sites:
        target = f"https://127.0.0.1:{sites.port}/"
        for ca_file, outcome in ((sites.ca_file, None), (None, "net::ERR_CERT_AUTHORITY_INVALID")):
            async with running_host(replace(chrome_options(profile), ca_file=ca_file)) as host, host.client() as client:
                context = (await client.call("Target.createBrowserContext"))["browserContextId"]
                for where in ({}, {"browserContextId": context}):
                    tab = await client.tab(**where)
                    assert (await client.call("Page.navigate", tab, url=target)).get("errorText") == outcome


async def test_it_ends_in_good_order_when_told_to(tmp_path: Path) -> None:
    """BRO-019: exit 0, Chrome ended, though a client is connected; the folder of the profile is closed to others."""
    place = Place(tmp_path)
    profile = place.data / "chrome-profile"
    async with place.start("browser", "--listen", "127.0.0.1:0", "--timezone", ZONE) as command:
        host = await host_of(command)
        second = await place.run("browser", "--listen", "127.0.0.1:0", "--timezone", ZONE)
        assert (second.returncode, b"another browser host runs on" in second.stderr) == (2, True)
        async with await silent_connection(host):
            await host.discovery()
            assert len(chromes_on(profile)) == 1
            command.signal(signal.SIGTERM)
            assert await command.ended() == 0
    assert not chromes_on(profile)
    assert [folder.stat().st_mode & 0o777 for folder in (place.data, profile)] == [0o700, 0o700]
    assert "Traceback" not in command.said


async def test_told_twice_it_does_not_wait_for_its_chrome(tmp_path: Path) -> None:
    """OPS-007, BRO-019: it goes on catching signals while it ends, so that no Chrome outlives it."""
    place = Place(tmp_path)
    profile = place.data / "chrome-profile"
    async with place.start("browser", "--listen", "127.0.0.1:0", "--timezone", ZONE) as command:
        await (await host_of(command)).discovery()
        [stuck] = chromes_on(profile)
        os.killpg(stuck, signal.SIGSTOP)
        command.signal(signal.SIGTERM)
        await eventually(lambda: "shutting down" in command.said)
        command.signal(signal.SIGTERM)
        with trio.fail_after(CLOSE_SECONDS + TERM_SECONDS - 1):
            assert await command.ended() == 0
    assert not chromes_on(profile)
    assert "the end is cut short" in command.said


async def test_a_host_that_was_killed_leaves_nothing_that_keeps_the_next_one_from_starting(tmp_path: Path) -> None:
    """BRO-019: its Chrome is told to end with it; one that can't is ended by the next host, and its lock removed."""
    place = Place(tmp_path)
    profile = place.data / "chrome-profile"
    arguments = ("browser", "--listen", "127.0.0.1:0", "--timezone", ZONE)
    async with place.start(*arguments) as command:
        await (await host_of(command)).discovery()
        command.signal(signal.SIGKILL)
        assert await command.ended() == -signal.SIGKILL
    await eventually(lambda: not chromes_on(profile))
    async with place.start(*arguments) as command:
        await (await host_of(command)).discovery()
        [stuck] = chromes_on(profile)
        os.kill(stuck, signal.SIGSTOP)
        command.signal(signal.SIGKILL)
        await command.ended()
    assert chromes_on(profile) == [stuck]
    async with place.start(*arguments) as command:
        host = await host_of(command)
        os.kill(stuck, signal.SIGCONT)
        await host.discovery()
        assert len(chromes_on(profile)) == 1
        assert chromes_on(profile) != [stuck]
