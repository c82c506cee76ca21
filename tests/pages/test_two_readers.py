"""Two Readers at once, each in a browser of their own."""

from playwright.sync_api import expect

from tests.pages.appliance import Appliance
from tests.pages.browser import DESK, Browsing, answered, shows
from tests.seed_library import Row

FIRST = Row("asura", "first", "Brass Garden", "manga", 12, 13)
SECOND = Row("comix", "second", "Salt Road", "manga", 3.5, 3.5)


def test_two_readers_at_once(appliance: Appliance, browsing: Browsing) -> None:
    """UI-001, UI-012: what each sees and changes is theirs alone, also where both read one Series."""
    ann, ben = appliance.reader([FIRST]), appliance.reader([SECOND])
    shared = Row("kagane", "shared", "Read by both", "manga", 5, 6)
    ann.holds([shared])
    appliance.ask(
        "INSERT INTO bookmarks (reader_id, site, series_id, last_chapter_num, updated_at) VALUES (%s, %s, %s, 1, 1)",
        *(ben.id, shared.site, ann.slug(shared)),
    )
    sees = {ann: ("Read by both", "Brass Garden"), ben: ("Salt Road", "Read by both")}
    pages = {reader: browsing.page(appliance, reader, **DESK) for reader in (ann, ben)}
    for reader, page in pages.items():
        shows(page, *sees[reader])
        assert page.locator("#count-all").inner_text() == "2"
        other = ben if reader is ann else ann
        assert f"{other.id}-{'second' if other is ben else 'first'}" not in page.content()
    both = f'[id="card-kagane:{ann.slug(shared)}"]'
    for reader, page in pages.items():
        card = page.locator(both)
        with answered(page, "/ui/bookmarks/"):
            card.locator(".favourite").click()
        card.locator(".pencil").click()
        card.get_by_label("Last chapter read").fill("3" if reader is ann else "4")
        with answered(page, "/ui/bookmarks/"):
            card.locator(".chapter-form .yes").click()
    for reader, page in pages.items():
        page.reload()
        expect(page.locator(both).locator(".progress")).to_have_text("Chapter 3" if reader is ann else "Chapter 4")
    card = pages[ann].locator(both)
    card.locator(".actions .remove").click()
    with answered(pages[ann], "/ui/bookmarks/"):
        card.locator(".panel.open .yes").click()
    shows(pages[ann], "Brass Garden")
    pages[ben].reload()
    shows(pages[ben], "Read by both", "Salt Road")
    # By hand at what only the other one holds.
    for reader, row, other in ((ann, SECOND, ben), (ben, FIRST, ann)):
        before = other.stored(row)
        for act, form in (("favorite", "favorite=true"), ("chapter", "chapter=1"), ("status", "status=archived")):
            answer = pages[reader].request.post(
                f"{appliance.address}/ui/bookmarks/{other.key(row)}/{act}",
                data=form,
                headers={"Content-Type": "application/x-www-form-urlencoded", "HX-Request": "true"},
            )
            assert answer.status == 404
        pages[reader].request.delete(f"{appliance.address}/ui/bookmarks/{other.key(row)}")
        assert before is not None
        assert other.stored(row) == before
