"""Contained supervision: a task that crashes starts again after a growing, bounded pause, and nothing else notices."""

import logging
from collections.abc import Awaitable, Callable

import trio

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 300.0
"""LANE-057: 1 s, 2 s, 4 s … at most 5 min."""

log = logging.getLogger(__name__)


async def contain(name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run `run` until cancelled, again and again. A run that outlived the longest pause starts the pauses anew."""
    pause = FIRST_PAUSE_SECONDS
    while True:
        started = trio.current_time()
        try:
            await run()
            return
        except Exception:
            log.exception("%s crashed; it starts again", name)
        if trio.current_time() - started > LONGEST_PAUSE_SECONDS:
            pause = FIRST_PAUSE_SECONDS
        await trio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
