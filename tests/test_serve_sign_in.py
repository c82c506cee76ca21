"""Signing in to the running product: by the printed link, with Discord, and what the log says of either."""

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import trio

from tests.discord_stand_in import CLIENT_SECRET, Person, answering, discord_stand_in
from tests.open_folder import open_folder
from tests.serving_process import ROOT, Place, Serve
from tests.web.browsing import Browser

MEMBER = "3000000000000000001"
STRANGER = "3000000000000000002"
REDIRECT_URI = "http://127.0.0.1:9/auth/discord/callback"
"""Nothing listens there: the test is the browser, and asks where the appliance really is."""
LINK = r"(http://127\.0\.0\.1:\d+/sign-in/([0-9a-f]{64}))$"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where nothing was ever started."""
    with open_folder() as empty:
        yield empty


async def browser_of(serve: Serve) -> AsyncIterator[Browser]:
    """A browser that is pointed at the running appliance."""
    async with httpx.AsyncClient(base_url=serve.address, trust_env=False, timeout=20) as client:
        yield Browser(client, host="127.0.0.1:9")


async def test_a_newcomer_follows_the_printed_link(folder: Path) -> None:
    """SES-027: `serve` without settings prints a link once it listens, at every start; the log never has it."""
    place = Place(folder)
    async with place.serve() as serve:
        address = await serve.listening()
        link, token = (await serve.prints(LINK)).groups()
        assert link.startswith(f"{address}/sign-in/")
        async with httpx.AsyncClient(trust_env=False, timeout=20) as client:
            assert "sign-in-link" in (await client.get(f"{address}/")).text
            assert (await client.get(link)).status_code == 303
            assert "sign-in-link" not in (await client.get(f"{address}/")).text
            assert (await client.get(link)).status_code == 400
            session = client.cookies["bmgr_session"]
        asked = await place.run("sign-in-link")
        assert asked.returncode == 0, asked.stderr
        other = asked.stdout.decode().strip().rpartition("/")[2]
        assert len(bytes.fromhex(other)) == 32
        async with httpx.AsyncClient(trust_env=False, timeout=20) as client:
            assert (await client.get(f"{address}/sign-in/{other}")).status_code == 303
        unknown = await place.run("sign-in-link", "4711")
        assert (unknown.returncode, unknown.stdout) == (1, b"")
        assert unknown.stderr.decode().splitlines()[-1] == "no Reader has the Discord id 4711"
        assert (await place.run("sign-in-link", "no number")).returncode == 2
        serve.signal(signal.SIGTERM)
        assert await serve.ended() == 0
        assert not any(secret in serve.said for secret in (token, other, session, "/sign-in/"))
        assert not any(secret in asked.stderr.decode() for secret in (other, "/sign-in/"))
    async with place.serve() as serve:
        await serve.listening()
        assert (await serve.prints(LINK))[2] != token
        async with httpx.AsyncClient(trust_env=False, timeout=20) as client:
            page = await client.get(f"{serve.address}/", headers={"Cookie": f"bmgr_session={session}"})
        assert "sign-in-link" not in page.text


async def test_no_word_of_a_sign_in_is_in_the_log(folder: Path) -> None:
    """SES-024, SES-022, SES-027: at the level debug, of a member, a stranger, a bad day and a replay: no state, code,
    token, cookie, secret or id; and with Discord configured no link is printed."""
    async with discord_stand_in() as discord:
        discord.people |= {MEMBER: Person(), STRANGER: Person(member=False)}
        place = Place(
            folder,
            {
                "PORT": "0",
                "LOG_LEVEL": "debug",
                "TOKEN_KEY": "a token key for the running product, long enough",
                "OWNER_DISCORD_ID": "100000000000000009",
                "PUBLIC_BASE_URL": "http://127.0.0.1:9",
                "LATEST_CHAPTER_POLL_ENABLED": "0",
                **discord.settings(REDIRECT_URI),
            },
        )
        secrets = [CLIENT_SECRET, MEMBER, STRANGER]
        async with place.serve() as serve:
            await serve.listening()
            async for browser in browser_of(serve):
                for discord_id, fault, status in (
                    (MEMBER, None, 303),
                    (STRANGER, None, 403),
                    (MEMBER, answering(500, {"message": "a word of Discord's"}), 502),
                ):
                    discord.faults = {} if fault is None else {"identity": fault}
                    start = await browser.get("/auth/discord")
                    secrets += parse_qs(urlsplit(start.headers["Location"]).query)["state"]
                    target = discord.approve(start.headers["Location"], discord_id).removeprefix("http://127.0.0.1:9")
                    secrets += browser.cookies.values()
                    assert (await browser.get(target)).status_code == status
                    secrets += browser.cookies.values()
                    assert (await browser.get(target)).status_code == 400
            serve.signal(signal.SIGTERM)
            assert await serve.ended() == 0
        secrets += [*discord.handed_out, "a word of Discord's", "/auth/discord", "callback?"]
        assert len(secrets) > 15
        assert [secret for secret in secrets if secret in serve.said] == []
        assert "a sign-in failed at Discord: identity: status 500" in serve.said
        assert serve.printed == ""


async def test_the_stand_in_runs_by_itself(tmp_path: Path) -> None:
    """SES-014: it writes the settings that lead to it, and shows a page on which a person chooses who they are."""
    settings = tmp_path / "settings.env"
    module = (sys.executable, "-m", "tests.discord_stand_in")
    command = [*module, "--redirect-uri", REDIRECT_URI, "--env-file", str(settings)]
    async with trio.open_nursery() as nursery:
        process = await nursery.start(partial(trio.run_process, command, stdout=subprocess.PIPE, cwd=ROOT))
        said = (await process.stdout.receive_some()).decode()
        assert settings.read_text() == said
        base = dict(line.split("=", 1) for line in said.splitlines())["DISCORD_API_BASE"]
        query = f"client_id=424242424242424242&redirect_uri={REDIRECT_URI}&state=s"
        async with httpx.AsyncClient(trust_env=False, timeout=20) as client:
            page = await client.get(f"{base}/oauth2/authorize?{query}")
            assert "Continue as 1001" in page.text
            back = await client.get(f"{base}/oauth2/authorize?{query}&as=1001")
            assert back.headers["Location"].startswith(f"{REDIRECT_URI}?code=")
            cancelled = await client.get(f"{base}/oauth2/authorize?{query}&as=")
            assert cancelled.headers["Location"] == f"{REDIRECT_URI}?error=access_denied&state=s"
        process.terminate()
