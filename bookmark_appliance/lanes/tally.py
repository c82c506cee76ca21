"""What a running pass has come to so far; it becomes the pass row."""

from collections import Counter
from dataclasses import dataclass, field

from bookmark_appliance.lanes.outcome import Outcome
from bookmark_appliance.lanes.pace import Gap
from bookmark_appliance.lanes.poll import PollResult
from bookmark_appliance.lanes.site import Site
from bookmark_appliance.store.lane_passes import LanePass


@dataclass(slots=True)
class Tally:
    """The figures of one pass; `gap` is None until it has chosen one, `cut` tells that it did not end by itself."""

    ran_at: int
    gap: Gap | None = None
    skip: str = ""
    due: int = 0
    checked: int = 0
    cut: bool = False
    browser_reads: int = 0
    outcomes: Counter[Outcome] = field(default_factory=Counter)

    def count(self, result: PollResult) -> None:
        """Add one check. A lost browser ends the pass before the check counts (LANE-028, LANE-033)."""
        self.outcomes[result.outcome] += 1
        self.browser_reads += result.browser_answered
        if result.outcome is not Outcome.UNREACHABLE:
            self.checked += 1

    def stopped_by(self, skip: str) -> None:
        """A gate closed during the pass. One that had checked nothing declined for that reason and is no stall."""
        if not self.checked:
            self.skip = skip

    def in_words(self) -> str:
        """What the log tells of this pass; nothing of one that had nothing to do or waits for a browser."""
        if self.skip in ("paused", "refusing", "sidecar-down"):
            return f"no Polls, {self.skip}"
        if not self.checked:
            return ""
        counts = [f"{number} {outcome.replace('_', ' ')}" for outcome, number in sorted(self.outcomes.items())]
        return f"{self.checked} of {self.due} due checked: {', '.join(counts)}"

    def row(self, site: Site, previous: LanePass | None) -> LanePass:
        """The row of this pass; one that never chose a gap copies the figures of the row before (LANE-038)."""
        carried = previous if self.gap is None else None
        gap = self.gap or Gap(0, clamped=False)
        return LanePass(
            site=site.name,
            ran_at=self.ran_at,
            skip=self.skip,
            due=carried.due if carried else self.due,
            checked=carried.checked if carried else self.checked,
            gap_ms=carried.gap_ms if carried else gap.ms,
            clamped=carried.clamped if carried else gap.clamped,
            refused=self.outcomes[Outcome.REFUSED],
            unreachable=self.outcomes[Outcome.UNREACHABLE],
            no_chapter=self.outcomes[Outcome.NO_CHAPTER],
            unfetchable=self.outcomes[Outcome.UNFETCHABLE],
            not_found=self.outcomes[Outcome.NOT_FOUND],
            errors=self.outcomes[Outcome.ERRORS],
            cut=self.cut,
            browser_reads=self.browser_reads,
        )
