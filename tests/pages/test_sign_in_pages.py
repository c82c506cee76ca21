"""The ways in, in a real browser: a link in local mode, Discord otherwise."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.open_folder import open_folder
from tests.pages.appliance import Appliance, new_database, running
from tests.pages.browser import PHONE, Browsing
from tests.pages.test_looks import assert_sound
from tests.serving_process import ROOT, START_SECONDS


@pytest.fixture(scope="package")
def appliance_of_guild(postgres_conninfo: str) -> Iterator[Appliance]:
    """Another `serve`, whose Readers sign in with the stand-in for Discord."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    redirect = f"http://127.0.0.1:{port}/auth/discord/callback"
    with open_folder() as folder, new_database(postgres_conninfo) as database:
        file = folder / "settings.env"
        command = [sys.executable, "-m", "tests.discord_stand_in", "--redirect-uri", redirect, "--env-file", str(file)]
        stand_in = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        try:
            settings = _read(file)
            with running(
                folder, database, PORT=str(port), PUBLIC_BASE_URL=f"http://127.0.0.1:{port}", **settings
            ) as found:
                yield found
        finally:
            stand_in.terminate()
            stand_in.wait(START_SECONDS)


def _read(file: Path) -> dict[str, str]:
    """The settings, once they are there."""
    give_up = time.monotonic() + START_SECONDS
    while not file.exists():
        assert time.monotonic() < give_up
        time.sleep(0.02)
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


def test_the_link_of_local_mode(appliance: Appliance, browsing: Browsing) -> None:
    """SES-027, UI-001: without a session there is the sign-in page; a printed link leads in, once."""
    browsing.expects("400")
    page = browsing.page(appliance, None, **PHONE)
    expect(page.locator(".sign-in")).to_contain_text("sign-in-link")
    expect(page.locator(".sign-in a")).to_have_count(0)
    printed = appliance.run("sign-in-link").strip()
    link = appliance.address + printed[printed.index("/sign-in/") :]
    page.goto(link)
    assert page.url == f"{appliance.address}/"
    expect(page.locator(".welcome")).to_be_visible()
    (cookie,) = page.context.cookies()
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == ("bmgr_session", True, "Lax")
    page.goto(link)
    expect(page.locator(".sign-in-message")).to_contain_text("invalid or was already used")
    assert_sound(page, "link-used")


def test_discord(appliance_of_guild: Appliance, browsing: Browsing) -> None:
    """SES-012, SES-021, UI-001: one button leads a member in; a stranger gets the one refusal, and who changed their
    mind may start again."""
    browsing.expects("403")
    browsing.expects("400")
    page = browsing.page(appliance_of_guild, None, **PHONE)
    button = page.get_by_role("link", name="Sign in with Discord")
    assert_sound(page, "sign-in-discord")
    page.set_viewport_size({"width": 360, "height": 800})
    button.tap()
    page.get_by_role("link", name="Continue as 1666").click()
    message = page.locator(".sign-in-message")
    expect(message).to_be_visible()
    refusal = message.inner_text()
    assert "1666" not in refusal
    assert page.context.cookies() == [] or all(cookie["name"] != "bmgr_session" for cookie in page.context.cookies())
    assert_sound(page, "sign-in-refused")
    button.click()
    page.get_by_role("link", name="Cancel").click()
    expect(message).to_contain_text("cancelled")
    button.click()
    page.get_by_role("link", name="Continue as 1001").click()
    page.wait_for_url(f"{appliance_of_guild.address}/")
    expect(page.locator(".welcome")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expect(button).to_be_visible()
