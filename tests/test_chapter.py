"""What counts as a chapter number, and how it is spelled."""

import pytest

from bookmark_appliance.chapter import Chapter, chapter_digits, chapter_label, highest_chapter, parse_chapter


@pytest.mark.parametrize(
    ("digits", "number", "label"),
    [
        ("0", 0, "Chapter 0"),
        ("007", 7, "Chapter 007"),
        ("12.50", 12.5, "Chapter 12.50"),
        ("12.", 12, "Chapter 12"),
        ("12..", 12, "Chapter 12"),
        ("100000", 100_000, "Chapter 100000"),
    ],
)
def test_a_number_and_its_label(digits: str, number: float, label: str) -> None:
    """SITE-005."""
    assert parse_chapter(digits) == Chapter(number, label)


@pytest.mark.parametrize(
    "digits",
    ["", ".", ".5", "-1", "+1", "1e9", "nan", "inf", "0x1", "1_0", "1,5", " 1", "٩", "１", "100001", "9" * 5000],  # noqa: RUF001
)
def test_what_is_no_number(digits: str) -> None:
    """SITE-005."""
    assert parse_chapter(digits) is None


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("10-11", "10"),
        ("12.5 (end)", "12.5"),
        ("12.", "12"),
        ("1.5e3", None),
        ("12a", None),
        ("12٣", None),
        ("x", None),
    ],
)
def test_the_number_at_the_start_of_a_field(text: str, digits: str | None) -> None:
    """SITE-005: a range gives its first number."""
    assert chapter_digits(text) == digits


def test_the_highest_wins_never_the_first_or_the_last() -> None:
    """SITE-005: and what is too high for a chapter does not take part."""
    assert highest_chapter(["1", "179", "181", "20240801", "181.0", "180"]) == Chapter(181, "Chapter 181")
    assert highest_chapter(["20240801"]) is None
    assert highest_chapter([]) is None


@pytest.mark.parametrize(("number", "label"), [(12.0, "Chapter 12"), (12.5, "Chapter 12.5"), (0.0, "Chapter 0")])
def test_the_label_of_a_bare_number(number: float, label: str) -> None:
    """API-044."""
    assert chapter_label(number) == label
