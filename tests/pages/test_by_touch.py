"""Everything that a Reader does on a phone, by touch."""

from playwright.sync_api import Page, expect

from tests.pages.appliance import Appliance, Reader
from tests.pages.browser import PHONE, Browsing, answered, card_of, focused, shows
from tests.seed_library import Row

READ = Row("asura", "read", "Brass Garden", "manga", 12, 12)
NEW = Row("comix", "new", "Salt Road", "manga", 3.5, 9, favorite=True)
NOVEL = Row("novelfull", "novel", "Moth Year", "novel", 7, None)
RESTING = Row("demonic", "resting", "Tidewatch", "manga", 2, 5, status="archived")
ENDED = Row("kagane", "ended", "Last Bell", "manga", 40, 40, finished=True)
ROWS = (READ, NEW, NOVEL, RESTING, ENDED)


def strip(page: Page) -> list[str]:
    """The names in it, as far as it is to be seen."""
    return page.locator(".recent:not([hidden]) .name").all_inner_texts()


def counts(page: Page) -> list[str]:
    return page.locator(".tabs .count").all_inner_texts()


def open_library(appliance: Appliance, browsing: Browsing) -> tuple[Reader, Page]:
    reader = appliance.reader(ROWS)
    return reader, browsing.page(appliance, reader, **PHONE)


def test_libraries_tabs_and_strip(appliance: Appliance, browsing: Browsing) -> None:
    """UI-001, UI-002, UI-003, UI-004, UI-013, UI-016: one Library at a time, four tabs that move in place and have
    addresses of their own, a strip on All alone, a label for what is finished."""
    reader, page = open_library(appliance, browsing)
    shows(page, "Brass Garden", "Salt Road", "Last Bell")
    assert strip(page) == ["Salt Road", "Brass Garden", "Last Bell"]
    assert counts(page) == ["3", "1", "1", "1"]
    assert page.locator(".tabs a").evaluate_all("all => all.map(one => one.firstChild.data.trim())") == [
        *("All", "Updated", "Favourites", "Archived")
    ]
    assert page.locator(".finished").all_inner_texts() == ["Finished"]
    expect(card_of(page, reader, ENDED).locator(".finished")).to_be_visible()
    assert page.locator(".recent-card.is-new.is-favourite .new").all_inner_texts() == ["New 9"]
    for tab, shown in (("Updated", ["Salt Road"]), ("Favourites", ["Salt Road"]), ("Archived", ["Tidewatch"])):
        with answered(page, "/ui/list"):
            page.get_by_role("link", name=tab).tap()
        shows(page, *shown)
        assert strip(page) == []
        assert page.locator("[aria-current=page].active").inner_text().startswith(tab)
        assert page.url.endswith(f"tab={tab.lower()}")
    page.go_back()
    page.wait_for_url("**tab=favourites")
    shows(page, "Salt Road")
    page.reload()
    shows(page, "Salt Road")
    page.get_by_role("link", name="Novels").tap()
    page.wait_for_url("**library=novel")
    shows(page, "Moth Year")
    assert page.locator(".libraries [aria-current]").inner_text() == "Novels"
    assert counts(page) == ["1", "0", "0", "0"]


def test_reading_on(appliance: Appliance, browsing: Browsing) -> None:
    """UI-006, UI-017: cover, strip and Continue open the Site in a tab of its own, which learns nothing of us."""
    reader, page = open_library(appliance, browsing)
    card = card_of(page, reader, NEW)
    for link in (card.locator("a.cover"), card.get_by_role("link", name="Continue"), page.locator(".recent a").first):
        assert link.get_attribute("href") == reader.address(NEW)
        assert link.get_attribute("target") == "_blank"
        assert link.get_attribute("rel") == "noopener noreferrer"
        with page.context.expect_page() as opened:
            link.tap()
        site = opened.value
        site.wait_for_url(reader.address(NEW))
        assert site.evaluate("[window.opener, document.referrer]") == [None, ""]
        site.close()


def test_a_favourite(appliance: Appliance, browsing: Browsing) -> None:
    """UI-012: marked and unmarked where it stands; nothing changes its place."""
    reader, page = open_library(appliance, browsing)
    before = reader.stored(ENDED)
    assert before is not None
    star = card_of(page, reader, ENDED).get_by_role("button", name="Favourite")
    for marked, number in ((True, "2"), (False, "1")):
        with answered(page, "/ui/bookmarks/"):
            star.tap()
        expect(star).to_have_attribute("aria-pressed", str(marked).lower())
        assert reader.stored(ENDED) == {**before, "favorite": marked}
        assert counts(page)[2] == number
    shows(page, "Brass Garden", "Salt Road", "Last Bell")


def test_a_chapter(appliance: Appliance, browsing: Browsing) -> None:
    """UI-012, UI-016: the form takes a number, says why it does not take a word, and the new chapter is read."""
    reader, page = open_library(appliance, browsing)
    browsing.expects("400")
    card = card_of(page, reader, NEW)
    expect(card.locator(".new")).to_be_visible()
    card.get_by_role("button", name="Chapter").tap()
    field = card.get_by_label("Last chapter read")
    expect(field).to_be_focused()
    field.fill("nine")
    with answered(page, "/ui/bookmarks/"):
        card.get_by_role("button", name="Save").tap()
    expect(card.locator(".error-inline")).to_have_text("A chapter is a number from 0 to 100000, such as 12 or 12.5.")
    assert field.input_value() == "nine"
    field.fill("9,5")
    with answered(page, "/ui/bookmarks/"):
        card.get_by_role("button", name="Save").tap()
    expect(card.locator(".progress")).to_have_text("Chapter 9.5")
    expect(card.locator(".new")).to_have_count(0)
    expect(card.locator(".error-inline")).to_be_empty()
    expect(card.locator(".panel.open")).to_have_count(0)
    assert strip(page)[0] == "Salt Road"
    assert counts(page)[1] == "0"
    stored = reader.stored(NEW)
    assert stored is not None
    assert (stored["last_chapter_num"], stored["last_chapter"]) == (9.5, "Chapter 9.5")
    page.reload()
    shows(page, "Salt Road", "Brass Garden", "Last Bell")


def test_archive_restore_and_remove(appliance: Appliance, browsing: Browsing) -> None:
    """UI-009, UI-002: what leaves the list asks first and once at a time; coming back does not ask."""
    reader, page = open_library(appliance, browsing)
    card = card_of(page, reader, READ)
    archive, remove = (card.get_by_role("button", name=name, exact=True) for name in ("Archive", "Remove"))
    rows = card.locator(".panel.open")
    for opener in (card.get_by_role("button", name="Chapter"), archive.first, remove.first, archive.first):
        opener.tap()
        expect(rows).to_have_count(1)
        assert card.locator("[aria-expanded=true]").count() == 1
    archive.first.tap()
    expect(rows).to_have_count(0)
    archive.first.tap()
    rows.get_by_role("button", name="Cancel").tap()
    expect(rows).to_have_count(0)
    archive.first.tap()
    with answered(page, "/ui/bookmarks/"):
        rows.get_by_role("button", name="Archive").tap()
    shows(page, "Salt Road", "Last Bell")
    assert strip(page) == ["Salt Road", "Last Bell"]
    assert counts(page) == ["2", "1", "1", "2"]
    expect(page.locator("#announce")).to_have_text("Archived: Brass Garden")
    with answered(page, "/ui/list"):
        page.get_by_role("link", name="Archived").tap()
    shows(page, "Brass Garden", "Tidewatch")
    with answered(page, "/ui/bookmarks/"):
        card.get_by_role("button", name="Restore").tap()
    shows(page, "Tidewatch")
    resting = card_of(page, reader, RESTING)
    resting.get_by_role("button", name="Remove").tap()
    with answered(page, "/ui/bookmarks/"):
        resting.locator(".panel.open").get_by_role("button", name="Remove").tap()
    assert reader.stored(RESTING) is None
    expect(page.locator("#list .empty h2")).to_have_text("Nothing is archived.")
    assert counts(page) == ["3", "1", "1", "0"]
    with answered(page, "/ui/list"):
        page.get_by_role("link", name="All").tap()
    shows(page, "Brass Garden", "Salt Road", "Last Bell")


def test_another_credential(appliance: Appliance, browsing: Browsing) -> None:
    """USR-006, TOK-010: the panel leads to both scripts, and a rotation says before and after what it costs."""
    reader, page = open_library(appliance, browsing)
    panel = page.locator("#scripts")
    expect(panel.locator(".installs")).not_to_be_visible()
    panel.locator("summary").tap()
    assert panel.locator(".installs a").evaluate_all("all => all.map(one => one.getAttribute('href'))") == [
        *("/install/manga-bookmark.user.js", "/install/manga-bookmark.user.js?download=1"),
        *("/install/novel-bookmark.user.js", "/install/novel-bookmark.user.js?download=1"),
    ]
    panel.get_by_role("button", name="Replace the credential").tap()
    row = panel.locator(".panel.open")
    expect(row.get_by_role("button", name="Cancel")).to_be_focused()
    expect(row).to_contain_text("each device needs a fresh install")
    row.get_by_role("button", name="Cancel").tap()
    expect(row).to_have_count(0)
    assert focused(page) == "Replace the credential"
    epoch = "SELECT token_epoch FROM readers WHERE id = %s"
    assert appliance.ask(epoch, reader.id) == [{"token_epoch": 0}]
    panel.get_by_role("button", name="Replace the credential").tap()
    row.get_by_role("button", name="Replace", exact=True).tap()
    page.wait_for_url("**/?rotated#scripts")
    expect(panel.locator(".notice")).to_contain_text("Install both scripts again on every device.")
    assert appliance.ask(epoch, reader.id) == [{"token_epoch": 1}]


def test_leaving(appliance: Appliance, browsing: Browsing) -> None:
    """SES-007, UI-014: one touch ends the session; the button that goes back shows nothing of a Library any more."""
    reader, page = open_library(appliance, browsing)
    expect(page.locator(".owner")).to_have_count(0)
    page.get_by_role("button", name="Log out").tap()
    expect(page.locator(".sign-in")).to_be_visible()
    assert not any(cookie["name"] == "bmgr_session" for cookie in page.context.cookies())
    assert appliance.ask("SELECT FROM sessions WHERE id = %s", reader.session) == []
    page.go_back()
    expect(page.locator(".sign-in")).to_be_visible()
    owner = browsing.page(appliance, appliance.owner(), **PHONE)
    assert owner.locator(".owner").get_attribute("href") == "/admin"
