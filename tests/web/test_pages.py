"""Templates and static files."""

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import jinja2
import pytest
from quart_trio import QuartTrio

from bookmark_appliance.web.errors import register_error_handlers
from bookmark_appliance.web.exchange import Exchange
from bookmark_appliance.web.pages import TEMPLATES, Pages
from bookmark_appliance.web.static_files import StaticFiles
from tests.web.browsing import Browser, browsing
from tests.web.conftest import Web


def pages(web: Web, folder: Path) -> Pages:
    """The templates of `folder`."""
    return Pages(web.context, StaticFiles(folder), folder)


@pytest.mark.parametrize(
    "broken",
    [
        "{% if %}",
        "{% block main %}",
        "{{ title | no_such_filter }}",
        "{% extends 'none.html' %}",
        "{% if later %}{% include 'none.html' %}{% endif %}",
        "{{ '",
    ],
)
async def test_a_broken_template_stops_the_start(web: Web, tmp_path: Path, broken: str) -> None:
    """OPS-003: every template is parsed, used or not, and so is what it refers to."""
    (tmp_path / "good.html").write_text("{{ title }}")
    pages(web, tmp_path)
    (tmp_path / "rarely").mkdir()
    (tmp_path / "rarely" / "used.html").write_text(broken)
    with pytest.raises(jinja2.TemplateError):
        pages(web, tmp_path)


async def test_what_is_printed_is_escaped_and_nothing_is_missing(web: Web, tmp_path: Path) -> None:
    """OPS-003: no string is markup; a value that the template lacks is an error and no blank."""
    (tmp_path / "page.html").write_text('<p title="{{ title }}">{{ title }}</p>')
    response = pages(web, tmp_path).render("page.html", 201, title="\"><script>'\u202e")
    assert response.status_code == 201
    assert response.content_type == "text/html; charset=utf-8"
    escaped = "&#34;&gt;&lt;script&gt;&#39;\u202e"
    assert await response.get_data(as_text=True) == f'<p title="{escaped}">{escaped}</p>'
    with pytest.raises(jinja2.UndefinedError):
        pages(web, tmp_path).render("page.html")


def test_no_template_trusts_a_string_or_holds_a_script_or_a_style() -> None:
    """SES-024, OPS-003: nothing is marked as safe, and nothing needs an exception from the policy."""
    for path in TEMPLATES.rglob("*"):
        text = path.read_text() if path.is_file() else ""
        assert "| safe" not in text, path
        assert "|safe" not in text, path
        assert "autoescape" not in text, path
        assert "<style" not in text, path
        assert " style=" not in text, path
        assert " onclick=" not in text, path


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    """Of an application with a few static files."""
    (tmp_path / "style.css").write_text("body { margin: 0 }" * 50)
    (tmp_path / "fonts").mkdir()
    (tmp_path / "fonts" / "serif.woff2").write_bytes(b"wOF2" + b"0" * 500)
    (tmp_path / "fonts" / "LICENCE.txt").write_text("of the font")
    app = QuartTrio(__name__, static_folder=None)
    app.asgi_http_class = Exchange
    app.url_map.merge_slashes = False
    register_error_handlers(app)
    StaticFiles(tmp_path).register(app)
    async with browsing(app) as client:
        yield Browser(client)


async def test_a_static_file_is_kept_for_an_hour(browser: Browser) -> None:
    """UI.md 0: cached 3600 s, and asked for again by its tag."""
    response = await browser.get("/static/style.css", accept_encoding="identity")
    assert response.status_code == 200
    assert response.headers["Cache-Control"] == "public, max-age=3600"
    assert response.headers["Content-Type"] == "text/css; charset=utf-8"
    again = await browser.get("/static/style.css", if_none_match=response.headers["ETag"])
    assert (again.status_code, again.content) == (304, b"")
    head = await browser.ask("HEAD", "/static/style.css")
    assert (head.status_code, head.content) == (200, b"")


async def test_texts_are_compressed_and_fonts_are_not(browser: Browser) -> None:
    """API-042: once at the start, and with the type that a browser insists on."""
    style = await browser.get("/static/style.css", accept_encoding="gzip")
    assert style.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in style.headers["Vary"]
    assert style.text == "body { margin: 0 }" * 50
    font = await browser.get("/static/fonts/serif.woff2", accept_encoding="gzip")
    assert font.headers["Content-Type"] == "font/woff2"
    assert "Content-Encoding" not in font.headers
    assert gzip.compress(font.content)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "fonts",
        "fonts/",
        "fonts/LICENCE.txt",
        "../pages.py",
        "..%2fpages.py",
        "%2e%2e/pages.py",
        "/etc/passwd",
        "x%00",
    ],
)
async def test_nothing_else_can_be_asked_for(browser: Browser, name: str) -> None:
    """UI.md 1: no folder, no file of another kind, no way out."""
    response = await browser.get(f"/static/{name}")
    assert response.status_code == 404


def test_an_address_changes_with_the_files(tmp_path: Path) -> None:
    """UI.md 0: after an upgrade no page is seen with the style of the version before."""
    (tmp_path / "style.css").write_text("a")
    first = StaticFiles(tmp_path).address("style.css")
    assert StaticFiles(tmp_path).address("style.css") == first
    (tmp_path / "style.css").write_text("b")
    assert StaticFiles(tmp_path).address("style.css") != first
    assert first.startswith("/static/style.css?v=")
