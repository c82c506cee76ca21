"""The tab at the edge, by touch: a tap, a swipe, a hold, a grip on its sliver."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.panel.stage import HERE, PHONE, Stage, mount, row, state

Setting = Callable[..., Stage]

MIDDLE = 740 * 0.6
"""Where it stands at first."""


def on_a_phone(stage: Setting) -> Stage:
    shown = stage(**PHONE)
    shown.render(state([row("Brass Garden", 1, 2)]))
    return shown


def stands(stage: Stage) -> tuple[float, float]:
    """The left edge and the middle of the sliver."""
    box = stage.find("#fab").bounding_box()
    assert box is not None
    return box["x"], box["y"] + box["height"] / 2


def comes_to_stand(stage: Stage, middle: float) -> None:
    """Wait for its place: a frame may take its time on a busy machine."""
    for _ in range(100):
        if stands(stage)[1] == pytest.approx(middle, abs=1):
            return
        stage.page.wait_for_timeout(50)
    assert stands(stage)[1] == pytest.approx(middle, abs=1)


def scrolled(stage: Stage) -> float:
    found: float = stage.page.evaluate("scrollY")
    return found


def test_its_measures(stage: Setting) -> None:
    """USR-022: a sliver of 7 x 44 px that a thumb finds in 28 x 72, at the edge and in the way of nothing."""
    shown = on_a_phone(stage)
    boxes = [shown.find(name).bounding_box() for name in ("#fab", "#hit")]
    assert boxes == [
        {"x": 353, "y": MIDDLE - 22, "width": 7, "height": 44},
        {"x": 332, "y": MIDDLE - 36, "width": 28, "height": 72},
    ]
    assert shown.page.evaluate("document.documentElement.scrollWidth") == 360
    assert shown.find("#fab").evaluate("one => getComputedStyle(one).touchAction") == "none"


def test_a_tap_opens_and_a_tap_closes(stage: Setting) -> None:
    """USR-022: beside the sliver is near enough; it goes with the panel."""
    shown = on_a_phone(stage)
    shown.page.touchscreen.tap(336, MIDDLE + 30)
    expect(shown.find("#panel")).to_be_visible()
    x, y = stands(shown)
    assert (x, y) == (33, MIDDLE)
    shown.page.touchscreen.tap(x + 3, y)
    expect(shown.find("#panel")).to_be_hidden()


def test_a_swipe_that_begins_beside_it_scrolls_the_page(stage: Setting) -> None:
    """USR-022: as far as the finger goes, and on for a while when it was let go in motion; nothing opens or moves."""
    shown = on_a_phone(stage)
    shown.touch("touchStart", (340, 500))
    for y in range(490, 290, -20):
        shown.touch("touchMove", (340, y))
    shown.page.wait_for_function("scrollY >= 170")
    assert scrolled(shown) <= 190
    shown.touch("touchEnd")
    assert stands(shown) == (353, MIDDLE)
    expect(shown.find("#panel")).to_be_hidden()
    before = -1.0
    while before != (before := scrolled(shown)):  # a tap while it coasts would only stop it
        shown.page.wait_for_timeout(200)
    shown.page.touchscreen.tap(340, MIDDLE)
    expect(shown.find("#panel")).to_be_visible()


def test_what_scrolls_below_the_finger_is_scrolled(stage: Setting) -> None:
    """USR-022: a reader of its own inside the page, too."""
    shown = stage(
        "<!doctype html><meta name=viewport content='width=device-width'><body style='margin:0;height:3000px'>"
        "<main style='height:700px;overflow:auto'><p style='height:4000px'>Text",
        **PHONE,
    )
    shown.render(state())
    shown.touch("touchStart", (340, 470))
    for y in (460, 440, 400, 370):
        shown.touch("touchMove", (340, y))
    shown.page.wait_for_function("document.querySelector('main').scrollTop >= 85")
    assert scrolled(shown) == 0


def test_a_hold_then_moves_it_and_its_place_is_remembered(stage: Setting) -> None:
    """USR-022: after ARM_MS, to any height on either edge, for this Site; the page stays where it is."""
    shown = on_a_phone(stage)
    shown.touch("touchStart", (340, MIDDLE))
    expect(shown.find("#fab.armed")).to_be_attached()
    for point in ((300, 400), (100, 300), (20, 148)):
        shown.touch("touchMove", point)
    shown.touch("touchEnd")
    assert stands(shown) == pytest.approx((0, 148), abs=1)
    assert scrolled(shown) == 0
    expect(shown.find("#fab.armed")).to_have_count(0)
    shown.page.goto(HERE)
    again = Stage(shown.page, mount(shown.page), [])
    again.render(state())
    assert stands(again) == pytest.approx((0, 148), abs=1)
    again.page.touchscreen.tap(20, 160)
    expect(again.find("#panel")).to_be_visible()
    assert stands(again)[0] == 320
    box = again.find("#panel").bounding_box()
    assert box is not None
    assert box["x"] == 0


def test_the_sliver_itself_moves_at_once(stage: Setting) -> None:
    """USR-022: no hold; at the ends of the screen it stays within it."""
    shown = on_a_phone(stage)
    shown.touch("touchStart", (357, MIDDLE))
    shown.touch("touchMove", (357, 300))
    comes_to_stand(shown, 300)
    for finger, middle in ((2, 38), (738, 702)):
        shown.touch("touchMove", (357, finger))
        comes_to_stand(shown, middle)
    shown.touch("touchEnd")
    expect(shown.find("#panel")).to_be_hidden()


def test_a_place_that_is_none_is_the_first_one(stage: Setting) -> None:
    """USR-022: the page can write to it."""
    shown = stage(**PHONE)
    for kept in ("null", "7", '"x"', "[]", '{"edge":"up","y":9}', '{"y":"<b>"}'):
        shown.page.evaluate("kept => { localStorage.place = kept; }", kept)
        shown.page.goto(HERE)
        again = Stage(shown.page, mount(shown.page), [])
        again.render(state())
        assert stands(again) == (353, MIDDLE), kept
