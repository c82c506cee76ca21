"""The browser as the Lanes have it: one page at a time, each in a tab of its own that is closed whatever happens."""

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final
from uuid import uuid4

import msgspec
import trio

from bookmark_appliance.cdp.connection import Connection, connect
from bookmark_appliance.cdp.discovery import debugger_path, parse_endpoint
from bookmark_appliance.cdp.errors import CdpError, CommandFailed, PageFailed, TornDown
from bookmark_appliance.cdp.tab import Rejected, Tab, TabRead
from bookmark_appliance.page import Page

TELL_SECONDS: Final = 2.0
"""A hold ends so long before the deadline of whoever waits for it (BRO-009)."""

HOLD_SECONDS: Final = 45.0
LOOK_SECONDS: Final = 2.0
"""BRO-009."""

CLOSE_SECONDS: Final = 5.0
"""How long closing a tab may take, also while everything is being cancelled."""

CLOSE_AGAIN_SECONDS: Final = 1.5
"""A tab that is about to navigate may miss that it shall close. A page that is stuck is given half a second by Chrome,
from the last time it was told on: telling it more often keeps it (measured 2026-11-30, Chromium 156)."""

GONE_SECONDS: Final = 0.02

log = logging.getLogger(__name__)


class _Target(msgspec.Struct):
    id: str = msgspec.field(name="targetId")
    url: str = ""
    opener: str = msgspec.field(name="openerId", default="")


class Browser:
    """Reads pages through the browser at an endpoint; nothing is open between two reads."""

    def __init__(
        self, endpoint: str, *, hold_seconds: float = HOLD_SECONDS, look_seconds: float = LOOK_SECONDS
    ) -> None:
        """`endpoint` is `ws://IP:PORT`; raises ValueError for anything else (BRO-017)."""
        self._endpoint = parse_endpoint(endpoint)
        self._hold_seconds = hold_seconds
        self._look_seconds = look_seconds
        self._turn = trio.Lock()
        self._ours: set[str] = set()
        """Ids of our open tabs, or the first address of one whose id we don't know: also those that a lost connection
        left behind, until the next one closes them."""

    async def read(
        self, read: TabRead, arrived: Callable[[Page], bool], before_request: Callable[[], Awaitable[object]]
    ) -> Page:
        """Open a tab and look until an answer has `arrived` or was cut off, or the time is over: then the last one.

        `before_request` is awaited once, when it is our turn and the tab stands ready; what it raises passes through.
        Raises BrowserGone and PageFailed; that its caller gave up is `trio.Cancelled` (BRO-012).
        """
        async with self._turn:
            path = await debugger_path(self._endpoint)
            async with connect(self._endpoint, path) as connection, self._tab(connection, read) as tab:
                await before_request()
                return await self._hold(connection, tab, arrived)

    async def _hold(self, connection: Connection, tab: Tab, arrived: Callable[[Page], bool]) -> Page:
        answer: Page | None = None
        reason, rejected_by = "no answer in time", ""
        # What there is must be told before our caller gives up: a challenge that was held is an answer.
        left = trio.current_effective_deadline() - trio.current_time() - TELL_SECONDS
        with trio.move_on_after(max(0, min(self._hold_seconds, left))):
            if whole := await tab.navigate():
                return whole
            while True:
                try:
                    answer = await tab.look()
                    if answer.truncated or arrived(answer):
                        return answer
                    rejected_by = ""
                except TornDown as torn:
                    reason = str(torn)
                except Rejected as rejected:
                    reason = str(rejected)
                    if rejected.shown == rejected_by:
                        break
                    rejected_by = rejected.shown
                await trio.sleep(self._look_seconds)
        await connection.check_alive()
        if answer is None:
            raise PageFailed(reason)
        return answer

    @asynccontextmanager
    async def _tab(self, connection: Connection, read: TabRead) -> AsyncIterator[Tab]:
        """A tab in the browser's own context, whose cookies the profile keeps."""
        await self._close_ours(connection)
        try:
            yield await self._open(connection, read)
        except CommandFailed as failed:
            raise PageFailed(str(failed)) from failed
        finally:
            with trio.CancelScope(shield=True):
                await self._close_ours(connection)
            if self._ours:
                log.warning("a tab could not be closed: the next read does it")

    async def _open(self, connection: Connection, read: TabRead) -> Tab:
        await connection.tell("Browser.setDownloadBehavior", {"behavior": "deny"})
        blank = f"about:blank#{uuid4().hex}"
        self._ours.add(blank)
        with trio.CancelScope(shield=True):  # cancelled here, we would not learn of the tab that is being made
            target = await connection.command("Target.createTarget", {"url": blank}, str, at=["targetId"])
        self._ours = self._ours - {blank} | {target}
        to_target = {"targetId": target, "flatten": True}
        session = await connection.command("Target.attachToTarget", to_target, str, at=["sessionId"])
        tab = Tab(connection, session, target, read)
        await tab.prepare()
        return tab

    async def _close_ours(self, connection: Connection) -> None:
        """Close our tabs and whatever they opened; return when they are gone, or can't be closed now."""
        asked: dict[str, float] = {}
        with trio.move_on_after(CLOSE_SECONDS), suppress(CdpError):
            while self._ours and (open_now := await self._open_now(connection)):
                for target in open_now:
                    if trio.current_time() - asked.get(target, -math.inf) > CLOSE_AGAIN_SECONDS:
                        asked[target] = trio.current_time()
                        await connection.tell("Target.closeTarget", {"targetId": target})
                await trio.sleep(GONE_SECONDS)
            self._ours = set()

    async def _open_now(self, connection: Connection) -> set[str]:
        """The ids of those that are open still."""
        targets = await connection.command("Target.getTargets", answer=list[_Target], at=["targetInfos"])
        self._ours |= {target.id for target in targets if target.url in self._ours}
        while opened := {target.id for target in targets if target.opener in self._ours} - self._ours:
            self._ours |= opened
        return {target.id for target in targets} & self._ours
