"""Contained supervision: a task that crashes starts again after a growing, bounded pause, and nothing else notices."""

import logging
import math
from collections.abc import Awaitable, Callable

import trio

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 300.0
"""LANE-057: 1 s, 2 s, 4 s … at most 5 min."""

log = logging.getLogger(__name__)


def last_word(seconds: float) -> trio.CancelScope:
    """A scope in which what was learned is written though we are being cancelled; `cancelled_caught` when it was not.

    Only when we are cancelled already is there a limit to it; else it takes its time, which the timeouts of the
    statements bound.
    """
    cancelled = trio.current_effective_deadline() == -math.inf
    return trio.CancelScope(shield=True, deadline=trio.current_time() + seconds if cancelled else math.inf)


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
