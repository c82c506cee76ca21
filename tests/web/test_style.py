"""The design system: what it promises about colours."""

import re

import pytest

from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.web.static_files import STATIC

STYLE = re.sub(r"/\*.*?\*/", "", (STATIC / "style.css").read_text(), flags=re.DOTALL)
ROOTS = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
DARK, LIGHT = (dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", root)) for root in ROOTS)

TEXTS = ("paper", "paper-dim", "mute", "mute-2", "ember", "danger-soft", "patina", "brass", *SITES)
LEAST = 4.6
"""UI.md 10; the common rule asks for 4.5."""


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, contrast ratio."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", [DARK, LIGHT], ids=["dark", "light"])
@pytest.mark.parametrize("role", TEXTS)
def test_every_text_can_be_read_on_the_page_and_on_what_is_recessed(scheme: dict[str, str], role: str) -> None:
    """UI-015: in both schemes."""
    for ground in ("ink", "ash"):
        assert contrast(scheme[role], scheme[ground]) >= LEAST, f"{role} on {ground}"


@pytest.mark.parametrize("scheme", [DARK, LIGHT], ids=["dark", "light"])
def test_words_of_destruction_can_be_read_on_their_wash(scheme: dict[str, str]) -> None:
    """UI-015: and so can the way out of it."""
    for role in ("danger-soft", "mute"):
        assert contrast(scheme[role], scheme["danger-wash"]) >= LEAST, role
    assert contrast(scheme["danger"], scheme["ink"]) >= LEAST


def test_both_schemes_have_the_same_roles() -> None:
    """UI-015: dark by default, light where the system asks for it."""
    assert DARK.keys() == LIGHT.keys()
    assert len(ROOTS) == 2
    before_light, _ = STYLE.split("@media (prefers-color-scheme: light)")
    assert "--ink: #100f0e" in before_light


def test_a_colour_is_named_in_the_roots_alone() -> None:
    """UI-015: everything else speaks of roles, and only of those that exist."""
    rest = STYLE
    for root in ROOTS:
        rest = rest.replace(root, "")
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b(?![^{]*\{)|\b(?:rgb|hsl|oklch|color-mix)a?\(", rest)
    named = set(re.findall(r"--([a-z0-9-]+):", STYLE))
    assert set(re.findall(r"var\(--([a-z0-9-]+)\)", STYLE)) <= named


def test_ember_says_new_chapter_and_nothing_else() -> None:
    """UI-015: it is used by rules of what is new, destruction by none of them."""
    selectors = re.findall(r"([^{}]+)\{[^{}]*var\(--ember\)[^{}]*\}", STYLE)
    assert selectors
    for selector in selectors:
        assert re.search(r"\.(?:is-)?new\b", selector), selector.strip()


def test_nothing_casts_a_shadow_or_has_corners_and_nothing_moves_for_long() -> None:
    """UI-015: the law of the design, where a machine can hold it."""
    assert "shadow" not in STYLE
    assert set(re.findall(r"border-radius: ([^;]+);", STYLE)) <= {"0"}
    assert all(int(duration) <= 150 for duration in re.findall(r"\b(\d+)ms\b", STYLE))
    assert not re.search(r"(?<![\w.])\d*\.?\d+s\b", STYLE)
    assert "@media (prefers-reduced-motion: reduce)" in STYLE
    assert "@keyframes" not in STYLE
