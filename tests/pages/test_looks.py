"""Every state of the pages at both widths and in both schemes: axe-core, sizes, shifts, and a picture to look at."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from tests.pages.appliance import Appliance, Reader
from tests.pages.browser import (
    PHONE,
    Browsing,
    answered,
    assert_accessible,
    card_of,
    in_every_look,
    keep_picture,
)
from tests.seed_library import Row, rows

SMALLEST_TARGET = 44
"""Pixels, UI.md 11."""

HOSTILE = (
    Row("asura", "endless", "A" * 10_000, "manga", 99_999.5, 100_000, favorite=True, cover=False),
    Row("comix", "turned", "\u202e\u2067right to left\u200f \u0000".replace("\0", "") + "\u202d" * 40, "manga", 1, 2),
    Row("demonic", "faces", "👩‍👩‍👧‍👦🏳️‍🌈" * 60, "manga", 1, 1, cover=False),
    Row("kagane", "stacked", "Z" + "\u0301\u0327\u0338" * 400, "manga", 1, 1, cover=False),
    Row("asura", "markup", '"><script>alert(1)</script><img src=x onerror=alert(2)>', "manga", 1, 9, finished=True),
    Row("comix", "nameless", "", "manga", 0, None, cover=False),
    Row("demonic", "words", "Wort" * 12 + " und noch ein Wort " * 30, "manga", 12.25, 3000, status="archived"),
)


@pytest.fixture
def reader(appliance: Appliance) -> Reader:
    """Who holds every kind of card of manga, and two novels."""
    found = rows(0)
    manga = [row for row in found if row.kind == "manga"]
    resting = [row for row in manga if row.status == "archived"]
    return appliance.reader([*manga[:9], *resting[:1], *[row for row in found if row.kind == "novel"][:2]])


def _panel(selector: str) -> Callable[[Page], None]:
    def opened(page: Page) -> None:
        page.locator(f".card {selector}").first.click()
        expect(page.locator(".card .panel.open")).to_be_visible()

    return opened


def _search(page: Page) -> None:
    page.locator("#search").fill("no title holds this")
    expect(page.locator("#no-match")).to_be_visible()


def _refused(page: Page) -> None:
    _panel(".pencil")(page)
    page.locator(".panel.open input").fill("nine")
    with answered(page, "/ui/bookmarks/"):
        page.locator(".panel.open .yes").click()
    expect(page.locator(".card .error-inline").first).to_be_visible()


def _scripts(page: Page) -> None:
    page.locator("#scripts summary").click()
    page.locator(".rotate").click()
    expect(page.locator("#confirm-rotate")).to_be_visible()
    page.locator("#scripts").scroll_into_view_if_needed()


def _nothing(page: Page) -> None:
    pass


def _tab(name: str) -> Callable[[Page], None]:
    def chosen(page: Page) -> None:
        with answered(page, "/ui/list"):
            page.get_by_role("link", name=name).click()

    return chosen


STATES = {
    "all": ("/", _nothing),
    "chapter": ("/", _panel(".pencil")),
    "archive": ("/", _panel(".box")),
    "remove": ("/", _panel(".actions .remove")),
    "no-match": ("/", _search),
    "refused": ("/", _refused),
    "scripts": ("/", _scripts),
    "rotated": ("/?rotated#scripts", _nothing),
    "archived": ("/", _tab("Archived")),
    "novels": ("/?library=novel", _nothing),
    "login": ("/login", _nothing),
}


@pytest.mark.parametrize("state", STATES)
def test_every_state(browsing: Browsing, appliance: Appliance, reader: Reader, state: str) -> None:
    """UI-001, UI-015: no serious or critical finding of axe-core, no scrolling sideways, nothing too small to touch."""
    path, make = STATES[state]
    if state == "refused":
        browsing.expects("400")
    page = browsing.page(appliance, reader, path, **PHONE)
    make(page)
    assert_sound(page, state)
    for look in in_every_look(page, (768,)):
        keep_picture(page, f"{state}-{look}")


def test_states_of_little(browsing: Browsing, appliance: Appliance) -> None:
    """UI-008, UI-002: nothing at all offers both scripts at once; an empty tab explains itself."""
    page = browsing.page(appliance, appliance.reader(), **PHONE)
    expect(page.locator(".welcome h2")).to_have_text("Your library is empty.")
    for link in ("manga-bookmark.user.js", "novel-bookmark.user.js"):
        expect(page.locator(f'a[href="/install/{link}"]')).to_be_visible()
    expect(page.locator("#search")).to_have_count(0)
    assert_sound(page, "empty")
    page = browsing.page(appliance, appliance.reader([Row("asura", "one", "Brass Garden", "manga", 1, 1)]), **PHONE)
    for tab, words in (("Updated", "All caught up."), ("Favourites", "No favourites"), ("Archived", "Nothing is")):
        _tab(tab)(page)
        expect(page.locator("#list .empty h2")).to_contain_text(words)
        expect(page.locator("#no-match")).to_be_hidden()
    assert_sound(page, "empty-tab")
    owner = browsing.page(appliance, appliance.owner(), **PHONE)
    expect(owner.locator('a[href="/admin"]')).to_be_visible()
    assert_sound(owner, "owner")
    owner.set_viewport_size({"width": 320, "height": 800})
    tops = owner.locator(".top > :not(.libraries)").evaluate_all("all => all.map(one => one.offsetTop)")
    assert len(set(tops)) == 1, "the top bar keeps to its line on the smallest phone"


def test_findings_are_told(browsing: Browsing, appliance: Appliance) -> None:
    """What the states above are held to does find something where there is something."""
    page = browsing.page(appliance, None, "/login", **PHONE)
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    page.evaluate("document.querySelector('main button').style.width = '40px'")
    page.evaluate("document.querySelector('h1').style.width = '400px'")
    with pytest.raises(AssertionError, match="button-name"):
        assert_accessible(page, "spoilt")
    assert page.evaluate(_SIDEWAYS)
    assert page.evaluate(_TOO_SMALL, SMALLEST_TARGET)


def test_hostile_titles(browsing: Browsing, appliance: Appliance) -> None:
    """UI-005, UI-013: whatever a title is, the page keeps its width, its order and its buttons; it is never markup."""
    reader = appliance.reader(HOSTILE)
    page = browsing.page(appliance, reader, **PHONE)
    assert page.locator("#list .card").count() == len(HOSTILE) - 1
    assert page.locator("#list script, #list img[onerror]").count() == 0
    assert card_of(page, reader, HOSTILE[5]).locator(".monogram").inner_text() == "?"
    heights = page.locator("#list .card").evaluate_all("all => all.map(one => one.offsetHeight)")
    assert max(heights) < 240, heights
    for card in page.locator("#list .card").all():
        card.locator(".box").tap()
        expect(card.locator(".panel.open")).to_be_visible()
        page.keyboard.press("Escape")
    assert_accessible(page, "hostile")  # once: endless names keep axe busy
    assert_sound(page, "hostile", with_axe=False)


def test_covers_move_nothing(browsing: Browsing, appliance: Appliance, reader: Reader) -> None:
    """UI-005: covers are small renditions in boxes of a fixed size: that they come late shifts nothing."""
    context = browsing.context(reader, **PHONE)
    held: list[Route] = []
    context.route(re.compile("/covers/"), lambda route: held.append(route))
    context.add_init_script(
        """
        window.shifts = [];
        new PerformanceObserver(list => shifts.push(...list.getEntries().map(entry =>
            [entry.value, ...entry.sources.map(({node}) => (node?.parentElement ?? node)?.outerHTML.slice(0, 80))])))
            .observe({type: "layout-shift", buffered: true});
        """
    )
    page = context.new_page()
    page.goto(appliance.address, wait_until="domcontentloaded")
    images = page.locator("img")
    expect(images.first).to_be_visible()
    assert all(
        re.fullmatch(rf"{appliance.address}/covers/[0-9a-f]{{64}}\?w=240", address) and lazy == "lazy"
        for address, lazy in images.evaluate_all("all => all.map(one => [one.src, one.loading])")
    )
    boxes = images.evaluate_all("all => all.map(one => JSON.stringify(one.getBoundingClientRect()))")
    page.evaluate("document.fonts.ready.then(() => shifts.length = 0)")
    assert held
    while held:
        route = held.pop()
        with page.expect_response(route.request.url):
            route.continue_()
    expect(images.first).to_have_js_property("complete", True)
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert images.evaluate_all("all => all.map(one => JSON.stringify(one.getBoundingClientRect()))") == boxes
    assert page.evaluate("shifts") == []
    assert images.first.evaluate("one => [one.naturalWidth, one.complete]") == [240, True]


def test_motion(browsing: Browsing, appliance: Appliance, reader: Reader) -> None:
    """UI-015: nothing moves for longer than 150 ms, and nothing at all where the system asks for that."""
    longest = """() => Math.max(...[...document.querySelectorAll('*')]
        .flatMap(one => ['', '::before', '::after'].map(part => getComputedStyle(one, part)))
        .flatMap(style => [...style.transitionDuration.split(','), ...style.animationDuration.split(',')])
        .map(parseFloat))"""
    assert browsing.page(appliance, reader, **PHONE).evaluate(longest) == 0.15
    assert browsing.page(appliance, reader, reduced_motion="reduce", **PHONE).evaluate(longest) == 0


def assert_sound(page: Page, state: str, *, with_axe: bool = True) -> None:
    """In every look: accessible, within its width, with targets that a finger meets; a picture is kept."""
    for look in in_every_look(page):
        name = f"{state}-{look}"
        if with_axe:
            assert_accessible(page, name)
        assert not (wide := page.evaluate(_SIDEWAYS)), f"{name}: {wide}"
        assert not (small := page.evaluate(_TOO_SMALL, SMALLEST_TARGET)), f"{name}: {small}"
        keep_picture(page, name)


# Not innerWidth: on a phone that grows with what is too wide.
_SIDEWAYS = """() => { const { scrollWidth, clientWidth } = document.documentElement; return scrollWidth > clientWidth
    && [...document.querySelectorAll('body *')].filter(one => one.getBoundingClientRect().right > clientWidth + 1)
        .map(one => one.outerHTML.slice(0, 90)).slice(0, 5) }"""

_TOO_SMALL = """least => [...document.querySelectorAll('a, button, input, summary, [role=button]')]
    .filter(one => one.checkVisibility() && !one.closest('.error-inline'))
    .map(one => [one.textContent.trim() || one.id || one.className, one.getBoundingClientRect()])
    .filter(([, box]) => box.width && (Math.round(box.width) < least || Math.round(box.height) < least))
    .map(([name, box]) => `${name} ${box.width}x${box.height}`)"""
