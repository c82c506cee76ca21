"""Finding a title, and lists that are longer than a screen."""

from playwright.sync_api import Page, expect

from tests.pages.appliance import Appliance, Reader
from tests.pages.browser import DESK, PHONE, Browsing, answered, focused, shows
from tests.seed_library import Row

MANY = 260
"""More than the first page of cards and one more hold."""
ROWS = [
    Row("asura", "brass", "Brass Garden", "manga", 12, 13),
    Row("comix", "salt", "Salt Road", "manga", 3, 3),
    Row("demonic", "moth", "MOTH ÉTÉ", "manga", 2, 5),
    Row("kagane", "untitled", "", "manga", 2, 2),
]


def many(reader: Reader) -> list[str]:
    """Let the Reader hold a long list; the titles."""
    rows = [Row("asura", f"many-{number}", f"Series {number}", "manga", 1, 1) for number in range(MANY)]
    reader.holds(rows)
    return [row.title for row in rows]


def search_for(page: Page, words: str) -> None:
    page.locator("#search").fill(words)


def test_search(appliance: Appliance, browsing: Browsing) -> None:
    """UI-007, UI-004: a part of a title in any case, trimmed; the strip goes while there is a query; a note with the
    query as text when nothing is left, and a button that ends it; no request is made."""
    page = browsing.page(appliance, appliance.reader(ROWS), **DESK)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.resource_type))
    strip, note = page.locator("#recent"), page.locator("#no-match")
    for words, found in (
        ("sal", ["Salt Road"]),
        ("  ROAD ", ["Salt Road"]),
        ("été", ["MOTH ÉTÉ"]),
        ("r", ["Brass Garden", "Salt Road"]),
    ):
        search_for(page, words)
        shows(page, *found)
        expect(strip).to_be_hidden()
        expect(note).to_be_hidden()
    query = '<img src=x onerror="alert(1)">\u202e'
    search_for(page, query)
    shows(page)
    expect(note).to_be_visible()
    assert page.locator(".no-match-q").text_content() == query
    assert page.locator(".no-match-q *").count() == 0
    page.get_by_role("button", name="Clear the search").click()
    expect(page.locator("#search")).to_be_focused()
    expect(page.locator("#search")).to_have_value("")
    expect(note).to_be_hidden()
    expect(strip).to_be_visible()
    expect(page.locator("#list .card")).to_have_count(4)
    search_for(page, "   ")
    expect(page.locator("#list .card:not([hidden])")).to_have_count(4)
    expect(strip).to_be_visible()
    assert not {"document", "fetch", "xhr"} & set(requests)


def test_a_search_outlives_a_tab_and_a_change(appliance: Appliance, browsing: Browsing) -> None:
    """UI-007, UI-004: it is applied to what another tab brings and after a change; an empty list has its own words."""
    page = browsing.page(appliance, appliance.reader(ROWS), **PHONE)
    search_for(page, "brass")
    with answered(page, "/ui/list"):
        page.get_by_role("link", name="Updated").tap()
    shows(page, "Brass Garden")
    with answered(page, "/ui/list"):
        page.get_by_role("link", name="All").tap()
    shows(page, "Brass Garden")
    expect(page.locator("#recent")).to_be_hidden()
    with answered(page, "/ui/bookmarks/"):
        page.locator(".card:not([hidden]) .favourite").tap()
    shows(page, "Brass Garden")
    expect(page.locator("#recent")).to_be_hidden()
    with answered(page, "/ui/list"):
        page.get_by_role("link", name="Archived").tap()
    expect(page.locator("#no-match")).to_be_hidden()
    expect(page.locator("#list .empty")).to_be_visible()


def test_the_rest_comes_as_the_reader_scrolls(appliance: Appliance, browsing: Browsing) -> None:
    """UI-016: the first cards at once and the counts of all; further ones near the end, each once and in order."""
    reader = appliance.reader()
    expected = many(reader)
    page = browsing.page(appliance, reader, **PHONE)
    cards = page.locator("#list .card")
    expect(cards).to_have_count(60)
    assert page.locator("#count-all").inner_text() == str(MANY)
    while cards.count() < MANY:
        with answered(page, "/ui/list"):
            page.locator("#list .more").scroll_into_view_if_needed()
    expect(page.locator("#list .more")).to_have_count(0)
    assert page.locator("#list .card h2").all_text_contents() == expected


def test_search_covers_what_was_not_there_yet(appliance: Appliance, browsing: Browsing) -> None:
    """UI-007: a hand in the search box brings the rest, and the query holds for every card of it."""
    reader = appliance.reader()
    expected = many(reader)
    page = browsing.page(appliance, reader, **PHONE)
    expect(page.locator("#list .card")).to_have_count(60)
    page.locator("#search").tap()
    expect(page.locator("#list .card")).to_have_count(MANY)
    assert focused(page) == ""
    search_for(page, "series 25")
    shows(page, *(title for title in expected if title.lower().startswith("series 25")))
    search_for(page, "")
    with answered(page, "/ui/list"):
        page.get_by_role("link", name="All").tap()
    search_for(page, f"series {MANY - 1}")
    shows(page, expected[-1])
    search_for(page, "nowhere")
    expect(page.locator("#no-match")).to_be_visible()
