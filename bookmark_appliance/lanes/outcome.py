"""The outcome of one read of one Series: the words that are counted, stored and shown (LANE-022 to LANE-027)."""

from dataclasses import dataclass
from enum import StrEnum

from bookmark_appliance.lanes.site import NOTHING_READ, Reading


class Outcome(StrEnum):
    """One word a read; the values are the ones in the pass log, the failure rows and `probe`."""

    SUCCESS = "success"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    NO_CHAPTER = "no_chapter"
    UNFETCHABLE = "unfetchable"
    NOT_FOUND = "not_found"
    ERRORS = "errors"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a read came to. `reading` holds facts only where the page may be believed (success and no_chapter).

    `retry_after_ms` is what a refusing Site asked for, counted from now (LANE-022). `reason` is one short phrase for
    the log.
    """

    outcome: Outcome
    reading: Reading = NOTHING_READ
    retry_after_ms: int = 0
    reason: str = ""
