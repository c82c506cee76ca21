"""A Reader's copies of the scripts, and a new credential for them."""

import logging
import os
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bookmark_appliance.build_info import BuildInfo
from bookmark_appliance.config import load_settings
from bookmark_appliance.credentials import derive_credential
from bookmark_appliance.script_assembly import MANGA, NOVEL, SCRIPTS
from bookmark_appliance.web import userscript_pages
from bookmark_appliance.web.app import create_app
from tests.web.conftest import Client, Web
from tests.web.reading import HTMX, Desk, two_desks

SOURCE = (
    '// @updateURL __API_BASE__/u/__API_TOKEN__/x\nconst A = "__API_TOKEN__", W = "__WEB_BASE__"; // é __API_TOKEN__\n'
)


BUILT_AT = 1_785_256_979_000
"""2026-07-28 16:42:59 UTC."""


@pytest.fixture
def built_in(web: Web, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Somebody without a session, at a build that has no file of the operator's."""
    monkeypatch.setattr(userscript_pages, "build_info", lambda: BuildInfo("1.0", BUILT_AT, "commit"))
    return Client(create_app(replace(web.context, userscripts={})))


def address(web: Web, name: str) -> str:
    return f"/u/{web.reader.credential}/{name}"


@pytest.mark.parametrize("name", SCRIPTS)
async def test_an_engine_gets_a_readers_copy_at_an_address_alone(web: Web, built_in: Client, name: str) -> None:
    """USR-001, USR-002, USR-004, USR-007, TOK-012: built in, filled in, stamped with the build; no header is asked for,
    and no way to sign in is set up. The same credential lets in at the API."""
    response = await built_in.ask("GET", address(web, name))
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert response.headers["Cache-Control"] == "no-cache"
    script = await response.get_data(as_text=True)
    assert not re.search(r"__[A-Z_]+__", script)
    assert re.findall(r"^// @version.*$", script, re.MULTILINE) == ["// @version      2026.07.28.1642"]
    update = f"https://books.example/u/{web.reader.credential}/{name}"
    assert re.findall(r"^// @(?:download|update)URL +(.*)$", script, re.MULTILINE) == [update, update]
    for line in (
        f'const API_TOKEN = "{web.reader.credential}";',
        'const API_BASE = "https://books.example";',
        'const WEB_BASE = "https://read.example";',
    ):
        assert f"\n{line}\n" in script
    head = await built_in.ask("HEAD", address(web, name))
    assert (head.status_code, head.headers["Content-Type"]) == (200, response.headers["Content-Type"])
    assert (await web.reader.ask("GET", "/bookmarks")).status_code == 200


@pytest.mark.parametrize("credential", ["0" * 64, "x", "", "%00", "{upper}", "{own}x", "{own}/{own}", "__API_TOKEN__"])
async def test_a_wrong_credential_finds_nothing(web: Web, built_in: Client, credential: str) -> None:
    """USR-001: 404 and never 401, which a script's engine would show as a broken server."""
    own = web.reader.credential
    for name in (*SCRIPTS, "other.user.js"):
        path = f"/u/{credential.format(own=own, upper=own.upper())}/{name}"
        assert (await built_in.ask("GET", path)).status_code == 404
    assert (await built_in.ask("GET", f"/u/{own}/other.user.js")).status_code == 404
    assert (await built_in.ask("GET", f"/u/{own}")).status_code == 404


async def test_a_retired_credential_finds_nothing(web: Web, built_in: Client, desks: tuple[Desk, Desk]) -> None:
    """TOK-012: one secret, one blast radius: the API and the updates end together."""
    await desks[0].browser.ask("POST", "/rotate-token")
    assert (await built_in.ask("GET", address(web, MANGA))).status_code == 404
    assert (await web.reader.ask("GET", "/bookmarks")).status_code == 401


async def test_an_operators_file_is_read_anew_each_time(web: Web) -> None:
    """USR-004, USR-005, CFG-005: an edit needs no restart and outranks what is installed; a missing file is 404, and so
    is one that is no text."""
    file = web.context.userscripts[MANGA]
    path = address(web, MANGA)
    assert (await web.nobody.ask("GET", path)).status_code == 404
    for seconds, text, served in (
        (1_785_256_979, "// @version 1\n  // @version\t2 x\r\nA __API_TOKEN__", "{v}1642\n{v}1642\r\nA {own}"),
        (1_785_257_040, "// @version 1\n__API_TOKEN____API_TOKEN__", "{v}1644\n{own}{own}"),
        (1_785_257_100, "// @versions are not here é __API_TOKEN__", "// @versions are not here é {own}"),
    ):
        file.write_bytes(text.encode())
        os.utime(file, (seconds, seconds))
        response = await web.nobody.ask("GET", path)
        wanted = served.format(v="// @version      2026.07.28.", own=web.reader.credential)
        assert await response.get_data(as_text=True) == wanted
    file.write_bytes(b"\xff\xfe")
    assert (await web.nobody.ask("GET", path)).status_code == 404


async def test_a_file_without_the_placeholder_is_served_and_told_of(web: Web, caplog: pytest.LogCaptureFixture) -> None:
    """USR-003."""
    web.context.userscripts[NOVEL].write_text("const A = 1;\n")
    response = await web.nobody.ask("GET", address(web, NOVEL))
    assert await response.get_data() == b"const A = 1;\n"
    assert caplog.messages == [f"{NOVEL} has no place for a credential and is served as it is"]


async def test_both_ways_lead_to_the_same_bytes(web: Web, desks: tuple[Desk, Desk]) -> None:
    """USR-006."""
    web.context.userscripts[MANGA].write_text(SOURCE, encoding="utf-8")
    update = await web.nobody.ask("GET", address(web, MANGA))
    assert (await desks[0].browser.get(f"/install/{MANGA}")).text == await update.get_data(as_text=True)


async def test_no_log_holds_a_credential(web: Web, built_in: Client, caplog: pytest.LogCaptureFixture) -> None:
    """USR-001: it stands in the address, whatever happens to the request."""
    caplog.set_level(logging.DEBUG)
    for client in (built_in, web.nobody):  # there, and a file that is missing
        await client.ask("GET", address(web, MANGA))
        await client.ask("POST", address(web, MANGA))
        await client.ask("GET", address(web, "other.user.js"))
    await web.sql("ALTER TABLE readers RENAME TO elsewhere")
    assert (await built_in.ask("GET", address(web, MANGA))).status_code == 503
    assert caplog.messages
    assert web.reader.credential not in caplog.text


def test_the_settings_name_the_operators_files() -> None:
    """CFG-005: each script by itself; what has none is the one in the zipapp."""
    assert userscript_pages.userscript_files(load_settings({})) == {}
    one = load_settings({"NOVEL_USERSCRIPT_PATH": "/scripts/own.user.js"})
    assert userscript_pages.userscript_files(one) == {NOVEL: Path("/scripts/own.user.js")}


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
