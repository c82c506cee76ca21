"""Closes the tabs of clients that are gone: a client that was killed can't, and a page goes on asking its Site."""

import logging
from collections.abc import Callable
from typing import Final

import msgspec
import trio

from bookmark_appliance.cdp.connection import connect
from bookmark_appliance.cdp.discovery import Endpoint, debugger_path
from bookmark_appliance.cdp.errors import CdpError

FIRST_PAGE: Final = "about:blank"
"""What Chrome is started with; it stays, since a Chrome without a tab may end."""

_AGAIN_SECONDS: Final = 0.5
"""A page that navigates without end misses a call."""

log = logging.getLogger(__name__)


class _Target(msgspec.Struct):
    id: str = msgspec.field(name="targetId")
    type: str = ""
    url: str = ""


class _Targets(msgspec.Struct):
    targets: list[_Target] = msgspec.field(name="targetInfos")


async def close_abandoned_pages(endpoint: Endpoint, unused: Callable[[], bool]) -> None:
    """Close every tab of the Chrome at `endpoint` but its first, for as long as it is `unused`. Raises nothing.

    A new client's tab is never among them: it stands in no list that was complete before that client came.
    """
    try:
        async with connect(endpoint, await debugger_path(endpoint)) as connection:
            while True:
                targets = (await connection.command("Target.getTargets", answer=_Targets)).targets
                left = [target for target in targets if target.type == "page" and target.url != FIRST_PAGE]
                if not left or not unused():
                    return
                for target in left:
                    await connection.command("Target.closeTarget", {"targetId": target.id})
                log.info("closed %d tabs that clients left behind", len(left))
                await trio.sleep(_AGAIN_SECONDS)
    except CdpError as error:
        log.debug("what clients left behind could not be closed: %s", error)
