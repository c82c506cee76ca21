"""`python3 build.py demo`: six Sites, a Discord, the appliance and two Readers on this machine, offline, until Ctrl-C.

The Sites grow by a chapter every twenty seconds, and `demo_story` makes one refuse and another pause, so that there is
something to see. Where a Chrome is installed, the browser host runs too, and three Sites stand behind a challenge.
"""

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import trio

from bookmark_appliance.cdp.chrome_command import find_chrome
from bookmark_appliance.postgres.polling import until
from tests.demo_story import tell_story
from tests.simulated_sites.world import Series, sample_world

GROW_EVERY_SECONDS = "20"
START_SECONDS = 60
STOP_SECONDS = 20
READERS = ("1001", "1002")
"""Discord ids; the first is the owner."""
PLAIN_SITES = ("asura", "demonic", "lightnovelworld")
WITH_CHROME = "kagane, comix and novelfull stand behind a challenge; they are read through a browser.\n"
WITHOUT_CHROME = "No Chrome or Chromium on this machine: novelfull is read plainly, kagane and comix wait unread.\n"


async def demo(folder: Path) -> None:
    """Start everything in `folder`, say what to try, and wait. Every process ends with the nursery."""
    settings = folder / "settings.env"
    async with trio.open_nursery() as nursery:
        with trio.fail_after(START_SECONDS):
            sites = ("tests.simulated_sites", "--env-file", settings, "--grow-every", GROW_EVERY_SECONDS)
            nursery.start_soon(partial(running, *sites, stdout=subprocess.DEVNULL))
            await until(settings.exists)
            discord = folder / "discord.env"
            own = f"http://127.0.0.1:{free_port()}"
            stand_in = ("tests.discord_stand_in", "--redirect-uri", f"{own}/auth/discord/callback")
            nursery.start_soon(partial(running, *stand_in, "--env-file", discord, stdout=subprocess.DEVNULL))
            await until(discord.exists)
            with settings.open("a") as file:
                file.write(f"DATA_DIR={folder / 'data'}\nPUBLIC_BASE_URL={own}\nPORT={own.rpartition(':')[2]}\n")
                file.write(f"OWNER_DISCORD_ID={READERS[0]}\nTOKEN_KEY={secrets.token_hex(32)}\nLOG_FORMAT=text\n")
                file.write(discord.read_text())
            chrome = find_chrome()
            if chrome:
                host = ("browser", "--listen", "127.0.0.1:0", "--timezone", "Asia/Jakarta")
                listens = await nursery.start(shown, settings, *host)
                with settings.open("a") as file:
                    file.write(f"BROWSER_WS_URL=ws://{listens}\n")
            address = f"http://{await nursery.start(shown, settings, 'serve')}"
            credentials = {reader: await credential(settings, reader) for reader in READERS}
        print(what_to_try(address, credentials, settings.read_text()), flush=True)
        print(WITH_CHROME if chrome else WITHOUT_CHROME, flush=True)
        sites_at = sites_address(settings.read_text())
        await tell_story(settings, address, credentials[READERS[0]], sites_at, challenges=chrome is not None)


def free_port() -> int:
    """One that nobody listens on: where Discord sends a browser back to is settled before the appliance starts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def running(*arguments: object, **options: Any) -> None:
    """Run `python -m` with `arguments` until cancelled; then it gets the time to end well."""
    await trio.run_process(
        [sys.executable, "-m", *map(str, arguments)],
        # A group of its own: Ctrl-C reaches us alone, and we stop the others in order.
        start_new_session=True,
        deliver_cancel=end_well,
        **options,
    )


async def end_well(process: trio.Process) -> None:
    """Ask the process to stop, and make it when it does not."""
    process.terminate()
    with trio.move_on_after(STOP_SECONDS):
        await process.wait()
        return
    process.kill()


async def shown(settings: Path, *command: object, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
    """`serve` or `browser`, its log shown; started once it says where it listens."""
    async with trio.open_nursery() as nursery:
        arguments = ("bookmark_appliance", *command, "--env-file", settings)
        process = await nursery.start(partial(running, *arguments, stderr=subprocess.PIPE))
        said, listens = "", False
        async for chunk in process.stderr:
            text = chunk.decode(errors="replace")
            print(text, end="", file=sys.stderr, flush=True)
            if not listens:
                said += text
                if listening := re.search(r"listening on (?:\w+://)?(\S+:\d+)\s", said):
                    listens = True
                    task_status.started(listening[1])


async def credential(settings: Path, reader: str) -> str:
    """Register the Reader, and return the credential that a script of theirs would carry."""
    command = [sys.executable, "-m", "bookmark_appliance", "readers"]
    option = ["--env-file", str(settings), reader]
    await trio.run_process([*command, "add", *option], capture_stdout=True)
    printed = await trio.run_process([*command, "credential", *option], capture_stdout=True)
    return printed.stdout.decode().strip()


def what_to_try(address: str, credentials: dict[str, str], settings: str) -> str:
    """The text that a person reads once everything runs."""
    sites = sites_address(settings)
    owner = credentials[READERS[0]]
    shown = [next(series for series in sample_world().series if series.site == site) for site in PLAIN_SITES]
    first = shown[0]
    lines = [
        "",
        "Open the library, and sign in as one of two Readers; 1666 is a stranger, who is refused:",
        f"    {address}/",
        "",
        "What their userscripts would carry:",
        *(f"    {reader:>6}  {secret}" for reader, secret in credentials.items()),
        "",
        "Bookmark a Series of each plain Site. No Latest Chapter is given, the appliance finds it:",
        *(put(address, owner, series) for series in shown),
        "",
        "See the list, at once and a few seconds later. Each Series is checked again within the hour:",
        f"    curl -s -H 'Authorization: Bearer {owner}' {address}/bookmarks",
        "",
        "Publish a chapter, make a Site misbehave, behave again; the last shows the Sites' state:",
        f"    curl -sk {sites}/-/publish/{first.site}/{first.slug}/900",
        f"    curl -sk {sites}/-/misbehave/{first.shape.host}/challenge",
        f"    curl -sk {sites}/-/behave",
        f"    curl -sk {sites}/-/",
        "",
        "Ctrl-C ends it all and removes the data.",
        "",
    ]
    return "\n".join(lines)


def sites_address(settings: str) -> str:
    """Where the simulated Sites listen, their controls included."""
    port = re.findall(r"127\.0\.0\.1:(\d+)", settings)[0]
    return f"https://127.0.0.1:{port}"


def put(address: str, credential: str, series: Series) -> str:
    """The command that bookmarks `series` at its second chapter."""
    body = {"title": series.title, "series_url": series.address, "last_chapter_num": 2}
    if series.site == "lightnovelworld":
        body["kind"] = "novel"
    quoted = json.dumps(body).replace("'", r"\u0027")
    target = f"{address}/bookmarks/{series.site}:{quote(series.slug, safe='')}"
    return f"    curl -s -X PUT -H 'Authorization: Bearer {credential}' -d '{quoted}' {target}"


def main() -> None:
    """Run the demo in a folder that goes with it."""
    with tempfile.TemporaryDirectory(prefix="bookmark-appliance-demo-") as folder:
        os.chmod(folder, 0o711)  # as root, PostgreSQL runs under a user of its own and must pass through
        try:
            trio.run(demo, Path(folder))
        except* KeyboardInterrupt:
            print("ended", file=sys.stderr)


if __name__ == "__main__":
    main()
