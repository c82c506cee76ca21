"""The essentials in a browser that runs no script: every action is a form, and every answer a page."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.pages.appliance import Appliance, Reader
from tests.pages.browser import DESK, PHONE, Browsing, card_of, shows
from tests.seed_library import Row

FIRST = Row("asura", "first", "Brass Garden", "manga", 12, 13)
SECOND = Row("comix", "second", "Salt Road", "manga", 3.5, 3.5)
RESTING = Row("demonic", "resting", "Tidewatch", "manga", 2, 5, status="archived")
NOVEL = Row("novelfull", "novel", "Moth Year", "novel", 7, None)


@pytest.fixture
def reader(appliance: Appliance) -> Reader:
    """Who holds a few Series."""
    return appliance.reader([FIRST, SECOND, RESTING, NOVEL])


@pytest.mark.parametrize("device", [PHONE, DESK], ids=["phone", "desk"])
def test_every_action(appliance: Appliance, browsing: Browsing, reader: Reader, device: dict[str, Any]) -> None:
    """UI-016, UI-009, UI-012, UI-017: tabs, the other Library, continue, favourite, chapter, archive, restore, remove,
    each with the way back to the list that it was done in."""
    page = browsing.page(appliance, reader, java_script_enabled=False, **device)
    card = card_of(page, reader, FIRST)
    assert card.get_by_role("link", name="Continue").get_attribute("href") == reader.address(FIRST)

    card.get_by_role("button", name="Favourite").click()
    assert page.url.endswith(f"/?library=manga&tab=all#card-{reader.key(FIRST).replace(':', '%3A')}")
    expect(card.get_by_role("button", name="Favourite")).to_have_attribute("aria-pressed", "true")

    panels = card.locator(".panel:visible")
    card.get_by_role("button", name="Chapter").click()
    expect(panels).to_have_count(1)
    card.get_by_label("Last chapter read").fill("13")
    card.get_by_role("button", name="Save").click()
    expect(card.locator(".progress")).to_have_text("Chapter 13")
    expect(panels).to_have_count(0)

    card.locator(".box").click()
    expect(panels).to_have_count(1)
    panels.get_by_role("button", name="Cancel").click()
    expect(panels).to_have_count(0)
    card.locator(".box").click()
    panels.get_by_role("button", name="Archive").click()
    shows(page, "Salt Road")

    page.get_by_role("link", name="Archived").click()
    shows(page, "Brass Garden", "Tidewatch")
    card.get_by_role("button", name="Restore").click()
    assert page.url.endswith("tab=archived")
    shows(page, "Tidewatch")
    resting = card_of(page, reader, RESTING)
    resting.locator(".actions .remove").click()
    resting.locator(".panel:visible").get_by_role("button", name="Remove").click()
    expect(page.locator("#list .empty h2")).to_have_text("Nothing is archived.")
    assert reader.stored(RESTING) is None

    page.get_by_role("link", name="Novels").click()
    shows(page, "Moth Year")


def test_what_is_refused(appliance: Appliance, browsing: Browsing, reader: Reader) -> None:
    """UI-011: a chapter that is none, and a session that has ended, are told on a page of their own."""
    browsing.expects("status of 400")
    browsing.expects("status of 401")
    page = browsing.page(appliance, reader, java_script_enabled=False, **PHONE)
    card = card_of(page, reader, FIRST)
    card.get_by_role("button", name="Chapter").click()
    card.get_by_label("Last chapter read").fill("nine")
    card.get_by_role("button", name="Save").click()
    expect(page.locator("body")).to_contain_text("a chapter is a number from 0 to 100000")
    page.go_back()
    reader.loses_sessions()
    card.get_by_role("button", name="Favourite").click()
    expect(page.locator(".sign-in-message")).to_have_text("Your session has ended. Nothing was saved.")


def test_a_long_list_goes_on(appliance: Appliance, browsing: Browsing) -> None:
    """UI-016: behind the last card a link leads to the next ones, to the end."""
    rows = [Row("asura", f"many-{number}", f"Series {number}", "manga", 1, 1, cover=False) for number in range(200)]
    page = browsing.page(appliance, appliance.reader(rows), java_script_enabled=False, **PHONE)
    cards = page.locator(".card h2")
    seen = cards.all_text_contents()
    while page.locator(".more a").count():
        with page.expect_navigation():
            page.locator(".more a").click()
        seen += cards.all_text_contents()
    assert seen == [row.title for row in rows]


def test_credential_and_log_out(appliance: Appliance, browsing: Browsing, reader: Reader) -> None:
    """TOK-010, SES-007: the warning, the rotation, the notice, the way out."""
    page = browsing.page(appliance, reader, java_script_enabled=False, **PHONE)
    page.locator("#scripts summary").click()
    page.get_by_role("button", name="Replace the credential").click()
    expect(page.locator("#confirm-rotate")).to_contain_text("each device needs a fresh install")
    page.locator("#confirm-rotate").get_by_role("button", name="Replace", exact=True).click()
    expect(page.locator(".notice")).to_be_visible()
    assert appliance.ask("SELECT token_epoch FROM readers WHERE id = %s", reader.id) == [{"token_epoch": 1}]
    page.get_by_role("button", name="Log out").click()
    expect(page.locator(".sign-in")).to_be_visible()
