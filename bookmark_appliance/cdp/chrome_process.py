"""One Chrome: brought up on the host's profile, watched, and ended with everything that it started."""

import os
import signal
import sqlite3
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

import trio

from bookmark_appliance.cdp import chrome_profile
from bookmark_appliance.cdp.chrome_command import ChromeOptions, command, environment
from bookmark_appliance.cdp.connection import connect
from bookmark_appliance.cdp.discovery import Endpoint, debugger_path
from bookmark_appliance.cdp.errors import CdpError
from bookmark_appliance.child import start_child
from bookmark_appliance.postgres.polling import until

START_SECONDS: Final = 30.0
"""For Chrome to come up (docs/OPERATIONS.md)."""
ANSWER_SECONDS: Final = 30.0
"""For an answer of one that is up; on a machine that swaps it takes its time."""
CLOSE_SECONDS: Final = 5.0
"""For Chrome to end as its own protocol asks it to."""
TERM_SECONDS: Final = 10.0
"""For what is left of it; then it is killed (docs/OPERATIONS.md)."""
KILL_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.05
_LAST_WORDS_BYTES: Final = 2_000


class ChromeFailed(Exception):
    """Chrome did not come up. The text is one line."""


class ChromeProcess:
    """A Chrome that lives until `ended` is set."""

    def __init__(self, process: "subprocess.Popen[bytes]", version: str) -> None:
        self.version = version
        self.port = 0
        """On 127.0.0.1; 0 until it has come up."""
        self.ended = trio.Event()
        self._process = process
        self._last_words = b""

    @property
    def endpoint(self) -> Endpoint:
        """Where it is asked; not before it has come up."""
        return Endpoint("127.0.0.1", self.port, f"127.0.0.1:{self.port}")

    @classmethod
    async def start(cls, options: ChromeOptions, nursery: trio.Nursery, start_seconds: float) -> "ChromeProcess":
        """Bring one up, on the main thread; `nursery` runs what watches it until it has ended.

        Whoever ran on the profile before is ended first. Raises ChromeFailed, with nothing left running.
        """
        chrome: ChromeProcess | None = None
        try:
            with trio.fail_after(start_seconds):
                version = await _version(options)
                for stray in chrome_profile.chromes_on(options.profile):
                    await end_group(stray)
                chrome_profile.clear_leftovers(options.profile)
                chrome_profile.trust(options.profile, options.ca_file)
                chrome = cls(_launch(options, version), version)
                nursery.start_soon(chrome._listen)
                nursery.start_soon(chrome._watch)
                await chrome._come_up(options.profile / chrome_profile.DEBUGGING_PORT)
        except BaseException as error:
            if chrome is not None:
                await chrome.end()
            match error:
                case trio.TooSlowError():
                    reason = f"it did not come up within {start_seconds:g} s"
                case ChromeFailed() | CdpError() | OSError() | ValueError() | sqlite3.Error():
                    reason = str(error)
                case _:
                    raise
            raise ChromeFailed(f"{reason}{chrome._words() if chrome else ''}") from None
        return chrome

    async def end(self) -> None:
        """End it with everything that it started. Shielded, bounded.

        It is asked first: told by TERM alone, Chromium 156 lost the cookies of the last half minute
        (docs/decisions/0013-the-browser-host.md).
        """
        if self.port and not self.ended.is_set():
            with trio.move_on_after(CLOSE_SECONDS, shield=True):
                with suppress(CdpError):
                    async with connect(self.endpoint, await debugger_path(self.endpoint)) as connection:
                        await connection.command("Browser.close")
                await until(lambda: not chrome_profile.group_lives(self._process.pid), _LOOK_SECONDS)
        await end_group(self._process.pid)
        self._process.wait()

    async def _come_up(self, noted: Path) -> None:
        """Wait until it has noted where it listens, and answers there."""

        def is_there() -> bool:
            if self.ended.is_set():
                raise ChromeFailed(f"it ended with status {self._process.wait()}")
            lines = noted.read_text().split() if noted.exists() else []
            if len(lines) == 2:
                self.port = int(lines[0])
            return len(lines) == 2

        await until(is_there)
        await debugger_path(self.endpoint)

    async def answers(self) -> bool:
        """Whether it still does, within 30 s."""
        with trio.move_on_after(ANSWER_SECONDS), suppress(CdpError):
            await debugger_path(self.endpoint)
            return True
        return False

    async def _watch(self) -> None:
        handle = os.pidfd_open(self._process.pid)
        try:
            await trio.lowlevel.wait_readable(handle)
        finally:
            os.close(handle)
        self.ended.set()

    async def _listen(self) -> None:
        """Read what it says, so that it is never kept waiting, and keep the end."""
        assert self._process.stderr is not None
        async with trio.lowlevel.FdStream(os.dup(self._process.stderr.fileno())) as said:
            self._process.stderr.close()
            async for chunk in said:
                self._last_words = (self._last_words + bytes(chunk))[-_LAST_WORDS_BYTES:]

    def _words(self) -> str:
        lines = self._last_words.decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"; its last words: {last:.300}" if last else ""


def _launch(options: ChromeOptions, version: str) -> "subprocess.Popen[bytes]":
    return start_child(
        command(options, version, root=os.geteuid() == 0),
        uid=os.geteuid(),
        gid=os.getegid(),
        environ=environment(options),
        ends_with_us=signal.SIGTERM,
        stderr=subprocess.PIPE,
    )


async def _version(options: ChromeOptions) -> str:
    """What `chrome --version` prints; raises OSError where there is no such program."""

    async def kill_group(process: trio.Process) -> None:
        os.killpg(process.pid, signal.SIGKILL)

    asked = await trio.run_process(
        [options.program, "--version"],
        env=environment(options),
        capture_stdout=True,
        capture_stderr=True,
        check=False,
        start_new_session=True,
        deliver_cancel=kill_group,
    )
    if asked.returncode != 0:
        words = asked.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise ChromeFailed(f"{options.program} --version ended with status {asked.returncode}: {words:.300}")
    return asked.stdout.decode(errors="replace")


async def end_group(group: int) -> None:
    """End every process of a group: TERM, then KILL after 10 s. Shielded, bounded."""
    for number, seconds in ((signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
        with suppress(ProcessLookupError):
            os.killpg(group, number)
        with trio.move_on_after(seconds, shield=True):
            await until(lambda: not chrome_profile.group_lives(group), _LOOK_SECONDS)
            break
