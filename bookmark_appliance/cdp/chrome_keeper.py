"""When there is a Chrome: from the first connection on, until none was there for a while."""

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import trio

from bookmark_appliance.cdp.abandoned_pages import close_abandoned_pages
from bookmark_appliance.cdp.chrome_command import ChromeOptions
from bookmark_appliance.cdp.chrome_process import START_SECONDS, ChromeFailed, ChromeProcess
from bookmark_appliance.cdp.chrome_profile import chromes_on
from bookmark_appliance.cdp.discovery import Endpoint

PAUSE_SECONDS: Final = 5.0
"""After a start that failed: clients come again at once, Chrome would not do better."""
CHECK_SECONDS: Final = 30.0
"""Between two looks at whether Chrome still answers."""

log = logging.getLogger(__name__)


class ChromeKeeper:
    """Keeps at most one Chrome. `run` owns it; connections say that they use it, and wait for it."""

    def __init__(self, options: ChromeOptions, *, idle_seconds: float, start_seconds: float = START_SECONDS) -> None:
        self._options = options
        self._idle_seconds = idle_seconds
        self._start_seconds = start_seconds
        self._users = 0
        self._chrome: ChromeProcess | None = None
        self._failed = False
        self._changed = trio.lowlevel.ParkingLot()

    @contextmanager
    def used(self) -> Iterator[None]:
        """While the block runs, a Chrome is wanted."""
        self._users += 1
        self._changed.unpark_all()
        try:
            yield
        finally:
            self._users -= 1
            self._changed.unpark_all()

    async def chrome(self) -> ChromeProcess | None:
        """The Chrome that runs, waiting while it starts; None where it does not start."""
        while self._chrome is None or self._chrome.ended.is_set():
            if self._failed:
                return None
            await self._changed.park()
        return self._chrome

    async def run(self) -> None:
        """Start and end Chromes, until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                await self._until_used(True)
                try:
                    await self._run_one(nursery)
                except ChromeFailed as error:
                    log.error("Chrome does not start: %s", error)
                    self._failed = True
                    self._changed.unpark_all()
                    await trio.sleep(PAUSE_SECONDS)
                    self._failed = False

    def kill(self) -> None:
        """End what runs at once, without its last cookies: `run`, which is ending it, need not wait any more."""
        for group in chromes_on(self._options.profile):
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)

    async def _until_used(self, used: bool) -> None:
        while bool(self._users) is not used:
            await self._changed.park()

    async def _run_one(self, nursery: trio.Nursery) -> None:
        started = trio.current_time()
        chrome = await ChromeProcess.start(self._options, nursery, self._start_seconds)
        try:
            took = trio.current_time() - started
            log.info("%s is up after %.1f s, in zone %s", chrome.version.strip(), took, self._options.zone)
            self._chrome = chrome
            self._changed.unpark_all()
            await self._until_not_wanted(chrome)
        finally:
            self._chrome = None
            await chrome.end()

    async def _until_not_wanted(self, chrome: ChromeProcess) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._idle, nursery.cancel_scope)
            nursery.start_soon(self._tidy, chrome.endpoint)
            nursery.start_soon(self._stuck, chrome, nursery.cancel_scope)
            await chrome.ended.wait()
            log.warning("Chrome has ended by itself; the next connection starts another")
            nursery.cancel_scope.cancel()

    async def _tidy(self, endpoint: Endpoint) -> None:
        """Whenever the last client has gone, see that it left no tab behind."""
        while True:
            await self._until_used(False)
            await close_abandoned_pages(endpoint, lambda: not self._users)
            await self._until_used(True)

    async def _idle(self, scope: trio.CancelScope) -> None:
        """Cancel `scope` once nobody has used Chrome for the whole idle time."""
        while True:
            await self._until_used(False)
            with trio.move_on_after(self._idle_seconds) as waiting:
                await self._until_used(True)
            if waiting.cancelled_caught:
                log.info("no connection for %g s: Chrome is stopped", self._idle_seconds)
                self._chrome = None  # whoever comes from here on waits for another
                scope.cancel()
                return

    async def _stuck(self, chrome: ChromeProcess, scope: trio.CancelScope) -> None:
        """Cancel `scope` once Chrome has stopped to answer: with clients that come again, it would never be idle."""
        while True:
            await trio.sleep(CHECK_SECONDS)
            if not await chrome.answers() and not chrome.ended.is_set():
                log.warning("Chrome does not answer and is ended; the next connection starts another")
                self._chrome = None
                scope.cancel()
                return
