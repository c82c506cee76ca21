"""Time, injected: every rule that reads a clock takes it from one of these."""

import time
from typing import Protocol

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


class Clock(Protocol):
    """What a rule may ask of time."""

    def now_ms(self) -> int:
        """Wall time in unix milliseconds."""
        ...


class SystemClock:
    """The machine's own wall clock."""

    def now_ms(self) -> int:
        """Wall time in unix milliseconds; jumps when the machine's clock is set (LANE-058)."""
        return time.time_ns() // 1_000_000
