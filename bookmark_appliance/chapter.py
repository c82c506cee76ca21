"""Chapter numbers and labels: the one rule for what counts as a number and how it is spelled (SITE-005, SITES.md)."""

import re
from dataclasses import dataclass

HIGHEST_CHAPTER = 100_000
"""Above this it is not a chapter number: dates get into slugs (SITES.md)."""

NUMBER_PATTERN = r"[0-9]+(?:\.[0-9]+)?"
"""ASCII digits only: `\\d` and `float` also take non-ASCII digits, and `float` takes `1e9`, `nan` and `inf`."""

_WHOLE_NUMBER = re.compile(NUMBER_PATTERN, re.ASCII)


@dataclass(frozen=True, slots=True)
class Chapter:
    """One chapter as a Site published it: `number` ranks it, `label` shows it (`Chapter 12.50`)."""

    number: float
    label: str


def parse_chapter(digits: str) -> Chapter | None:
    """The chapter that `digits` names (`007` is 7, `12.50` is 12.5, `12.` is 12), or None when it is no number of ours.

    The label keeps the digits as published, without a trailing dot.
    """
    digits = digits.rstrip(".")
    # 20 digits are far beyond HIGHEST_CHAPTER even with leading zeros and decimals; longer ones cost time to parse.
    if len(digits) > 20 or not _WHOLE_NUMBER.fullmatch(digits):
        return None
    number = float(digits)
    if number > HIGHEST_CHAPTER:
        return None
    return Chapter(number, f"Chapter {digits}")


def chapter_label(number: float) -> str:
    """The label of a number that came without one (API-044): `Chapter 12`, `Chapter 12.5`, never `Chapter 12.0`."""
    return f"Chapter {number:.0f}" if number == int(number) else f"Chapter {number!r}"
