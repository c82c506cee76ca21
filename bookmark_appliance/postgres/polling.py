"""Waiting for what no event announces: another process's lock, file or end."""

from collections.abc import Callable
from typing import Final

import trio

POLL_SECONDS: Final = 0.01


async def until(condition: Callable[[], bool], every_seconds: float = POLL_SECONDS) -> None:
    """Return once `condition()` is true; the caller brings the deadline."""
    while not condition():  # noqa: ASYNC110 - nothing to wait for but time
        await trio.sleep(every_seconds)
