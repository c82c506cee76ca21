"""Everything that a Reader does at a desk, by the keyboard alone."""

import pytest
from playwright.sync_api import Page, expect

from tests.pages.appliance import Appliance, Reader
from tests.pages.browser import DESK, Browsing, answered, card_of, focused, shows
from tests.seed_library import Row

FIRST = Row("asura", "first", "Brass Garden", "manga", 12, 13)
SECOND = Row("comix", "second", "Salt Road", "manga", 3.5, 3.5)
RESTING = Row("demonic", "resting", "Tidewatch", "manga", 2, 5, status="archived")
ROWS = (FIRST, SECOND, RESTING)


@pytest.fixture
def reader(appliance: Appliance) -> Reader:
    """Who holds two Series and a third one archived."""
    return appliance.reader(ROWS)


@pytest.fixture
def page(appliance: Appliance, browsing: Browsing, reader: Reader) -> Page:
    """Their Library at a desk."""
    return browsing.page(appliance, reader, **DESK)


def tab_to(page: Page, words: str, most: int = 60) -> None:
    """Press Tab until what says `words` has the focus, and can be seen to have it."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if focused(page).startswith(words):
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline == "solid", f"{words} does not show its focus"
            return
    raise AssertionError(f"{words} is not reached")


def open_by_key(page: Page, owner: str, key: str = "Enter") -> None:
    tab_to(page, owner)
    page.keyboard.press(key)


def test_the_order_of_the_page(page: Page) -> None:
    """UI-006: Tab goes through the page as it is read, once for each thing that can be done; covers are passed by."""
    order = []
    for _ in range(22):
        page.keyboard.press("Tab")
        order.append(focused(page).splitlines()[0] if focused(page) else page.evaluate("document.activeElement.id"))
    assert order == [
        *("BookmarkManager", "Manga", "Novels", "Log out", "Brass GardenNew 13", "Salt Road"),
        *("All 2", "Updated 1", "Favourites 0", "Archived 1", "search"),
        *("Continue", "Favourite", "Chapter", "Archive", "Remove"),
        *("Continue", "Favourite", "Chapter", "Archive", "Remove", "Userscripts"),
    ]


def test_tabs_and_the_way_on(page: Page, reader: Reader) -> None:
    """UI-002, UI-003, UI-017: Enter on a tab, on the other Library, and on Continue."""
    tab_to(page, "Archived")
    with answered(page, "/ui/list"):
        page.keyboard.press("Enter")
    shows(page, "Tidewatch")
    assert focused(page).startswith("Archived")
    tab_to(page, "Continue")
    with page.context.expect_page() as opened:
        page.keyboard.press("Enter")
    opened.value.wait_for_url(reader.address(RESTING))
    opened.value.close()
    page.bring_to_front()
    page.locator(".brand").focus()
    tab_to(page, "Novels")
    page.keyboard.press("Enter")
    page.wait_for_url("**library=novel")
    shows(page)


def test_focus_of_panels(page: Page, reader: Reader) -> None:
    """UI-010, UI-009: archive opens on its affirmative, remove on Cancel, the chapter in its field; Escape closes and
    gives the focus back to the button that opened; a second press of that button closes as well."""
    card = card_of(page, reader, FIRST)
    for owner, key, lands in (
        ("Chapter", "Enter", "chapter"),
        ("Archive", " ", "Archive"),
        ("Remove", "Enter", "Cancel"),
        ("Remove", " ", "Cancel"),
    ):
        page.locator("#search").focus()
        open_by_key(page, owner, key)
        expect(card.locator(".panel.open")).to_have_count(1)
        assert focused(page) == lands
        assert page.evaluate("document.activeElement.closest('.panel') !== null")
        page.keyboard.press("Escape")
        expect(card.locator(".panel.open")).to_have_count(0)
        assert focused(page) == owner
        assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "false"
    page.keyboard.press("Enter")
    page.locator("#search").focus()
    open_by_key(page, "Chapter")
    assert card.locator("[aria-expanded=true]").all_inner_texts() == ["Chapter"]
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Escape")
    expect(card.locator(".panel.open")).to_have_count(0)


def test_a_chapter(page: Page, reader: Reader) -> None:
    """UI-012, UI-010: the number stands selected, Enter saves it, the focus is back where it came from; Escape saves
    nothing; the words of a refusal leave the hand in the field."""
    page.locator("#search").focus()
    open_by_key(page, "Chapter")
    page.keyboard.type("13")
    with answered(page, "/ui/bookmarks/"):
        page.keyboard.press("Enter")
    expect(card_of(page, reader, FIRST).locator(".progress")).to_have_text("Chapter 13")
    assert focused(page) == "Chapter"
    page.keyboard.press("Enter")
    page.keyboard.type("77")
    page.keyboard.press("Escape")
    expect(card_of(page, reader, FIRST).locator(".progress")).to_have_text("Chapter 13")
    stored = reader.stored(FIRST)
    assert stored is not None
    assert stored["last_chapter_num"] == 13


def test_focus_after_an_action(page: Page, reader: Reader) -> None:
    """UI-009, UI-010, UI-012: it stays on a favourite, goes on to the neighbour of what has left the list, and from
    an emptied list to its tab."""
    page.locator("#search").focus()
    tab_to(page, "Favourite")
    with answered(page, "/ui/bookmarks/"):
        page.keyboard.press("Enter")
    assert focused(page) == "Favourite"
    assert page.evaluate("document.activeElement.closest('.card').id") == f"card-{reader.key(FIRST)}"
    tab_to(page, "Archive")
    page.keyboard.press("Enter")
    with answered(page, "/ui/bookmarks/"):
        page.keyboard.press("Enter")
    shows(page, "Salt Road")
    assert page.evaluate("document.activeElement.closest('.card').id") == f"card-{reader.key(SECOND)}"
    tab_to(page, "Remove")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    shows(page, "Salt Road")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    with answered(page, "/ui/bookmarks/"):
        page.keyboard.press("Enter")
    expect(page.locator("#list .empty h2")).to_have_text("Nothing to read here yet.")
    assert focused(page).startswith("All")


def test_scripts_and_log_out(page: Page, reader: Reader, appliance: Appliance) -> None:
    """TOK-010, UI-010: the panel opens by key; its warning has Cancel under the hand; log out by Enter."""
    page.locator(".card .remove").last.focus()
    open_by_key(page, "Userscripts")
    tab_to(page, "Install")
    open_by_key(page, "Replace the credential")
    assert focused(page) == "Cancel"
    page.keyboard.press("Escape")
    assert focused(page) == "Replace the credential"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert focused(page) == "Replace"
    page.keyboard.press("Enter")
    page.wait_for_url("**/?rotated#scripts")
    assert appliance.ask("SELECT token_epoch FROM readers WHERE id = %s", reader.id) == [{"token_epoch": 1}]
    page.locator(".brand").focus()
    open_by_key(page, "Log out")
    expect(page.locator(".sign-in")).to_be_visible()
