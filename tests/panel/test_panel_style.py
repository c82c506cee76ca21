"""The panel's style sheet: the law and the colours of the library page, inside a page of somebody else's."""

import re

from bookmark_appliance.lanes.sites import SITES
from tests.panel.stage import PARTS
from tests.web.test_style import DARK as LIBRARY_DARK
from tests.web.test_style import LIGHT as LIBRARY_LIGHT

STYLE = re.sub(r"/\*.*?\*/", "", (PARTS / "panel.css").read_text(), flags=re.DOTALL)
ROOTS = re.findall(r"\.panel-root \{(.*?)\}", STYLE, re.DOTALL)
DARK, LIGHT = (dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", root)) for root in ROOTS)


def test_the_colours_are_those_of_the_library_page() -> None:
    """UI-015: whose contrasts are held there; both schemes have the same roles, dark is the first."""
    assert DARK.keys() == LIGHT.keys()
    assert DARK.items() <= LIBRARY_DARK.items()
    assert LIGHT.items() <= LIBRARY_LIGHT.items()
    assert set(SITES) <= DARK.keys()
    assert STYLE.index(ROOTS[0]) < STYLE.index("@media (prefers-color-scheme: light)") < STYLE.index(ROOTS[1])


def test_the_law_holds() -> None:
    """UI-015: roles alone, ember for what is new alone, no shadow, no corner, nothing that moves for long."""
    rest = STYLE
    for root in ROOTS:
        rest = rest.replace(root, "")
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b(?![^{]*\{)|\b(?:rgb|hsl|oklch|color-mix)a?\(", rest)
    assert set(re.findall(r"var\(--([a-z0-9-]+)\)", STYLE)) == {*DARK, "width", "edge", "display", "y"}
    for selector in re.findall(r"([^{}]+)\{[^{}]*var\(--ember\)[^{}]*\}", rest):
        assert re.search(r"\.(?:new|heat)\b", selector), selector
    assert "shadow" not in rest
    assert set(re.findall(r"border-radius: ([^;]+);", STYLE)) <= {"0"}
    assert {int(duration) for duration in re.findall(r"\b(\d+)ms\b", STYLE)} == {150}
    assert "@media (prefers-reduced-motion: reduce)" in STYLE
    assert "@keyframes" not in STYLE
