"""Chapter numbers and labels: the one rule for what counts as a number and how it is spelled (SITE-005, SITES.md)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

HIGHEST_CHAPTER = 100_000
"""Above this it is not a chapter number: dates get into slugs (SITES.md)."""

NUMBER_PATTERN = r"[0-9]{1,18}+(?:\.[0-9]{1,18}+)?+(?![^\W_])"
"""ASCII digits only: `\\d` and `float` also take non-ASCII digits, and `float` takes `1e9`, `nan` and `inf`.
A letter or digit of any script right behind it (`1e9`, a 30-digit id) means that this is no chapter number at all."""

_NUMBER = re.compile(NUMBER_PATTERN)


@dataclass(frozen=True, slots=True)
class Chapter:
    """One chapter as a Site published it: `number` ranks it, `label` shows it (`Chapter 12.50`)."""

    number: float
    label: str


def chapter_digits(text: str) -> str | None:
    """The number at the start of a field (`12.` is 12, `10-11` is 10), as published; None when there is none."""
    match = _NUMBER.match(text)
    return match[0] if match else None


def parse_chapter(digits: str) -> Chapter | None:
    """The chapter that `digits` names (`007` is 7, `12.50` is 12.5, `12.` is 12), or None when it is no number of ours.

    The label keeps the digits as published, without a trailing dot.
    """
    digits = digits.rstrip(".")
    return highest_chapter([digits]) if _NUMBER.fullmatch(digits) else None


def highest_chapter(published: Iterable[str]) -> Chapter | None:
    """The highest of `published`, each of which NUMBER_PATTERN matched; of equal ones the first."""
    number, digits = max(
        ((number, digits) for digits in published if (number := float(digits)) <= HIGHEST_CHAPTER),
        key=lambda chapter: chapter[0],
        default=(0.0, ""),
    )
    return Chapter(number, f"Chapter {digits}") if digits else None


def chapter_label(number: float) -> str:
    """The label of a number that came without one (API-044): `Chapter 12`, `Chapter 12.5`, never `Chapter 12.0`."""
    return f"Chapter {number:.0f}" if number == int(number) else f"Chapter {number!r}"
