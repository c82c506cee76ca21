"""When an action fails: the card stays, and says why."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.pages.appliance import Appliance, Reader
from tests.pages.browser import PHONE, Browsing, answered, card_of, shows
from tests.seed_library import Row

FIRST = Row("asura", "first", "Brass Garden", "manga", 12, 13)
SECOND = Row("comix", "second", "Salt Road", "manga", 3.5, 3.5)
ENDED = "Your session has ended, and nothing was saved. Sign in again."
RETRY = "That could not be saved. Try again."
OFFLINE = "There is no connection. Try again."


@pytest.fixture
def reader(appliance: Appliance) -> Reader:
    """Who holds two Series."""
    return appliance.reader([FIRST, SECOND])


@pytest.fixture
def page(appliance: Appliance, browsing: Browsing, reader: Reader) -> Page:
    """Their Library on a phone."""
    return browsing.page(appliance, reader, **PHONE)


@contextmanager
def offline(page: Page) -> Iterator[None]:
    page.context.set_offline(True)
    try:
        yield
    finally:
        page.context.set_offline(False)


def open_archive(card: Locator) -> None:
    card.locator(".box").click()
    expect(card.locator(".panel.open")).to_be_visible()


def test_a_session_that_has_ended(browsing: Browsing, page: Page, reader: Reader) -> None:
    """UI-011: of 401 the card says that nothing was saved, and leads to where one signs in."""
    browsing.expects("401")
    reader.loses_sessions()
    card = card_of(page, reader, FIRST)
    with answered(page, "/ui/bookmarks/"):
        card.locator(".favourite").tap()
    expect(card.locator(".error-inline")).to_have_text(ENDED)
    expect(page.locator("#announce")).to_have_text(ENDED)
    expect(card.locator(".favourite")).to_have_attribute("aria-pressed", "false")
    with answered(page, "/ui/list"):
        page.get_by_role("link", name="Archived").tap()
    expect(page.locator("#list-error")).to_have_text(ENDED)
    assert page.locator(".tabs .active").inner_text().startswith("All")
    shows(page, "Brass Garden", "Salt Road")
    card.get_by_role("link", name="Sign in again.").tap()
    page.wait_for_url("**/login")
    expect(page.locator(".sign-in")).to_be_visible()


def test_a_server_that_fails_and_no_connection(
    appliance: Appliance, browsing: Browsing, page: Page, reader: Reader
) -> None:
    """UI-011: the note stays for as long as the Reader does nothing on that card; its next request clears it, and
    requests of other cards do not."""
    browsing.expects("500")
    browsing.expects("ERR_INTERNET_DISCONNECTED")
    browsing.expects("htmx:sendError")
    browsing.expects("htmx:afterRequest")
    first, second = (card_of(page, reader, row) for row in (FIRST, SECOND))
    open_archive(first)
    with appliance.broken(), answered(page, "/ui/bookmarks/"):
        first.locator(".panel.open .yes").tap()
    expect(first.locator(".error-inline")).to_have_text(RETRY)
    expect(first.locator(".error-inline")).to_be_in_viewport()
    with offline(page):
        second.locator(".favourite").tap()
        expect(second.locator(".error-inline")).to_have_text(OFFLINE)
    expect(first.locator(".error-inline")).to_have_text(RETRY)
    shows(page, "Brass Garden", "Salt Road")
    with answered(page, "/ui/bookmarks/"):
        second.locator(".favourite").tap()
    expect(second.locator(".error-inline")).to_be_empty()
    expect(second.locator(".favourite")).to_have_attribute("aria-pressed", "true")
    expect(first.locator(".error-inline")).to_have_text(RETRY)
    with answered(page, "/ui/bookmarks/"):
        first.locator(".panel.open .yes").tap()
    shows(page, "Salt Road")


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("this is not yet possible", "This is not yet possible."),
        ("really?\n", "Really?"),
        ("x" * 121, "This value was not accepted."),
        ("<p>a proxy's own page</p>", "This value was not accepted."),
        ("", "This value was not accepted."),
    ],
    ids=["short", "asked", "long", "markup", "nothing"],
)
def test_reasons(browsing: Browsing, page: Page, reader: Reader, answer: str, shown: str) -> None:
    """UI-011: of 400 the card says the server's short reason as a sentence, and nothing that looks like a page."""
    browsing.expects("400")
    page.route(re.compile("/ui/bookmarks/"), lambda route: route.fulfill(status=400, body=answer))
    card = card_of(page, reader, FIRST)
    with answered(page, "/ui/bookmarks/"):
        card.locator(".favourite").tap()
    expect(card.locator(".error-inline")).to_have_text(shown)


def test_a_card_that_is_gone(appliance: Appliance, browsing: Browsing, page: Page, reader: Reader) -> None:
    """UI-011: removed in another tab meanwhile, a card stays with a word, and takes no other one along."""
    browsing.expects("404")
    appliance.ask("DELETE FROM bookmarks WHERE reader_id = %s AND series_id = %s", reader.id, reader.slug(FIRST))
    card = card_of(page, reader, FIRST)
    with answered(page, "/ui/bookmarks/"):
        card.locator(".favourite").tap()
    expect(card.locator(".error-inline")).to_have_text(RETRY)
    card.locator(".actions .remove").tap()
    with answered(page, "/ui/bookmarks/"):
        card.locator(".panel.open .yes").tap()
    shows(page, "Salt Road")


def test_the_bar_of_a_busy_card(browsing: Browsing, page: Page, reader: Reader) -> None:
    """UI-015: while a request is under way its card says so in the colour of asides."""
    answers: list[Callable[[], None]] = []
    page.route(re.compile("/ui/bookmarks/"), lambda route: answers.append(route.continue_))
    card = card_of(page, reader, FIRST)
    card.locator(".favourite").tap()
    expect(page.locator(".htmx-request")).to_have_count(1)
    bar = "getComputedStyle(document.querySelector('.card'), '::after')"
    assert page.evaluate(f"{bar}.backgroundColor") == "rgb(163, 154, 145)"
    with answered(page, "/ui/bookmarks/"):
        answers[0]()
    expect(card.locator(".favourite")).to_have_attribute("aria-pressed", "true")
