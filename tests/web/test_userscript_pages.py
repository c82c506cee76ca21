"""A Reader's copies of the scripts, and a new credential for them."""

from collections.abc import AsyncIterator

import pytest

from bookmark_appliance.credentials import derive_credential
from bookmark_appliance.script_assembly import MANGA, NOVEL, SCRIPTS
from tests.web.conftest import Web
from tests.web.reading import HTMX, Desk, two_desks

SOURCE = (
    '// @updateURL __API_BASE__/u/__API_TOKEN__/x\nconst A = "__API_TOKEN__", W = "__WEB_BASE__"; // é __API_TOKEN__\n'
)


@pytest.fixture
async def desks(web: Web) -> AsyncIterator[tuple[Desk, Desk]]:
    """Two Readers' browsers."""
    async with two_desks(web) as opened:
        yield opened


@pytest.mark.parametrize("name", SCRIPTS)
async def test_each_reader_gets_the_script_with_their_own_credential(
    web: Web, desks: tuple[Desk, Desk], name: str
) -> None:
    """USR-006: filled in everywhere, and nothing of it in the address; `download=1` saves it as a file."""
    web.context.userscripts[name].write_text(SOURCE, encoding="utf-8")
    for desk, client in zip(desks, (web.reader, web.other), strict=True):
        response = await desk.browser.get(f"/install/{name}")
        assert response.status_code == 200
        assert response.headers["Content-Type"] == "text/javascript; charset=utf-8"
        assert response.headers["Cache-Control"] == "private, no-cache"
        assert "Content-Disposition" not in response.headers
        filled = SOURCE.replace("__API_TOKEN__", client.credential).replace("__API_BASE__", "https://books.example")
        assert response.text == filled.replace("__WEB_BASE__", "https://read.example")
        saved = await desk.browser.get(f"/install/{name}?download=1")
        assert saved.headers["Content-Disposition"] == f'attachment; filename="{name}"'
        assert saved.text == response.text


async def test_no_page_holds_a_credential(web: Web, desks: tuple[Desk, Desk]) -> None:
    """USR-006: neither the library nor an answer to a form, only the script itself."""
    await web.reader.put("asura:one")
    for response in (
        await desks[0].browser.get("/"),
        await desks[0].act("favorite", "asura:one", {"favorite": "true"}),
        await desks[0].browser.ask("POST", "/rotate-token"),
    ):
        assert web.reader.credential not in response.text + str(response.headers)


async def test_a_script_is_for_who_is_signed_in_and_may_be_missing(web: Web, desks: tuple[Desk, Desk]) -> None:
    """USR-006: without a session the sign-in page; a script that is not there is 404 in plain words."""
    response = await desks[0].browser.get(f"/install/{MANGA}")
    assert (response.status_code, response.headers["Content-Type"]) == (404, "text/plain; charset=utf-8")
    assert (await desks[0].browser.get("/install/other.user.js")).status_code == 404
    web.context.userscripts[NOVEL].write_text(SOURCE)
    desks[0].browser.cookies.clear()
    response = await desks[0].browser.get(f"/install/{NOVEL}")
    assert "const A" not in response.text
    assert "Sign in" in response.text


async def test_a_new_credential_ends_every_copy_of_the_old_one(web: Web, desks: tuple[Desk, Desk]) -> None:
    """TOK-010, SES-009: of the acting Reader alone, who stays signed in and is told to install again."""
    web.context.userscripts[MANGA].write_text("__API_TOKEN__")
    response = await desks[0].browser.ask("POST", "/rotate-token")
    assert (response.status_code, response.headers["Location"]) == (303, "/?rotated#scripts")
    assert (await web.reader.ask("GET", "/bookmarks")).status_code == 401
    assert (await web.other.ask("GET", "/bookmarks")).status_code == 200
    page = await desks[0].see("/?rotated")
    assert "open" in page.one("#scripts").attributes
    assert "every device" in page.one(".notice").text
    assert "each device needs a fresh install" in (await desks[0].see("/")).one("#confirm-rotate").text
    script = await desks[0].browser.get(f"/install/{MANGA}")
    assert script.text == derive_credential(web.context.token_key, "201", 1).reveal()
    web.reader.credential = script.text
    assert (await web.reader.ask("GET", "/bookmarks")).status_code == 200


async def test_nobody_else_rotates_a_credential(web: Web, desks: tuple[Desk, Desk]) -> None:
    """TOK-010: not another site's page, and nobody without a session."""
    foreign = await desks[0].browser.ask("POST", "/rotate-token", {"Origin": "https://asurascans.com"})
    assert foreign.status_code == 403
    desks[0].browser.cookies.clear()
    assert (await desks[0].browser.ask("POST", "/rotate-token", HTMX)).status_code == 401
    assert (await desks[0].browser.ask("POST", "/rotate-token")).status_code == 401
    assert (await web.reader.ask("GET", "/bookmarks")).status_code == 200
