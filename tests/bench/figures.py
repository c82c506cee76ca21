"""One line of `build.py bench`: what was measured, and what it was promised to be."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """`least` and `most` are the promise, None where nothing was promised; `note` stands behind the value."""

    name: str
    value: float
    unit: str = ""
    least: float | None = None
    most: float | None = None
    note: str = ""

    @property
    def missed(self) -> bool:
        """Whether the promise is broken."""
        too_little = self.least is not None and self.value < self.least
        return too_little or (self.most is not None and self.value > self.most)

    def __str__(self) -> str:
        promise = "" if self.least is None else f"at least {self.least:g}"
        promise = promise if self.most is None else f"at most {self.most:g}"
        verdict = "MISSED" if self.missed else "" if not promise else "holds"
        return f"{self.name:42} {self.value:10.2f} {self.unit:6} {promise:14} {verdict:7} {self.note}".rstrip()
