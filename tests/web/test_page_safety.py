"""What every page carries, and whose requests may change something."""

from collections.abc import AsyncIterator

import httpx
import pytest

from bookmark_appliance.web.page_safety import content_policy, is_own_request, read_form
from tests.web.browsing import Browser, browsing, cookies_of
from tests.web.conftest import Web

OWN = frozenset(("https://books.example", "https://read.example"))


@pytest.fixture
async def client(web: Web) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application."""
    async with browsing(web.app) as opened:
        yield opened


@pytest.mark.parametrize(
    ("origin", "fetch_site", "own"),
    [
        (None, None, True),
        ("https://read.example", None, True),
        ("https://books.example", "same-site", True),
        ("https://read.example", "same-origin", True),
        ("http://box.lan:8080", None, True),
        ("http://BOX.lan:8080", "same-origin", True),
        (None, "same-origin", True),
        (None, "same-site", False),
        (None, "cross-site", False),
        (None, "none", False),
        ("https://read.example", "cross-site", False),
        ("http://box.lan:8080", "same-site", False),
        ("https://evil.example", None, False),
        ("https://evil.example", "same-origin", False),
        ("https://asurascans.com", None, False),
        ("http://read.example", None, False),
        ("https://read.example.evil.example", None, False),
        ("https://read.example:444", None, False),
        ("http://box.lan", None, False),
        ("file://box.lan:8080", None, False),
        ("null", None, False),
        ("", None, False),
    ],
)
def test_whose_request_may_change_something(origin: str | None, fetch_site: str | None, own: bool) -> None:
    """CFG-011: both origins of the deployment may, and the host that was asked."""
    origins = [] if origin is None else [origin]
    sites = [] if fetch_site is None else [fetch_site]
    assert is_own_request(origins, sites, "box.lan:8080", OWN) is own


def test_two_lines_of_one_kind_are_nobodys() -> None:
    """CFG-011: what a browser never sends isn't chosen from."""
    assert not is_own_request(["https://read.example"] * 2, [], "read.example", OWN)
    assert not is_own_request([], ["same-origin"] * 2, "read.example", OWN)
    assert not is_own_request(["http://"], [], "", OWN)


async def test_a_foreign_page_can_end_no_session(web: Web, client: httpx.AsyncClient) -> None:
    """CFG-011: POST /logout from another origin is 403 and does nothing; the bearer API asks for no origin."""
    browser = Browser(client)
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
        response = await browser.ask("POST", "/logout", headers)
        assert response.status_code == 403
        assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert not cookies_of(response)
    assert (await browser.ask("POST", "/logout", {"Origin": "https://read.example"})).status_code == 303
    assert (await browser.ask("POST", "/logout")).status_code == 303
    put = await web.reader.ask("PUT", "/bookmarks/asura:one", {}, {"Origin": "https://evil.example"})
    assert put.status_code == 200


async def test_every_answer_of_the_pages_carries_the_policy(client: httpx.AsyncClient) -> None:
    """CFG-011, SES-026: pages, redirects and errors; covers are named by the origin that they have."""
    browser = Browser(client)
    for method, target, status in (
        ("GET", "/", 200),
        ("GET", "/login", 200),
        ("HEAD", "/login", 200),
        ("POST", "/logout", 303),
        ("GET", "/nowhere", 404),
        ("GET", "/../etc/passwd", 404),
        ("GET", "/logout", 405),
        ("GET", "/sign-in/none", 400),
    ):
        response = await browser.ask(method, target)
        assert response.status_code == status, target
        headers = response.headers
        policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
        assert policy == {
            "default-src": "'none'",
            "style-src": "'self'",
            "script-src": "'self'",
            "img-src": "'self' https://books.example",
            "font-src": "'self'",
            "connect-src": "'self'",
            "manifest-src": "'self'",
            "worker-src": "'self'",
            "form-action": "'self'",
            "frame-ancestors": "'none'",
            "base-uri": "'none'",
        }
        assert headers["Referrer-Policy"] == "same-origin"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "camera=()" in headers["Permissions-Policy"]
        assert headers["Cache-Control"] == "private, no-store"
        assert "Cookie" in headers["Vary"].split(", ")
        assert (response.content == b"") == (method == "HEAD" or status == 303)


async def test_the_api_keeps_its_own_headers(web: Web) -> None:
    """API-049, API-022: what is for scripts has no policy of pages, and its errors stay JSON."""
    response = await web.reader.ask("GET", "/bookmarks")
    assert response.headers["Cache-Control"] == "private, no-cache"
    assert "Content-Security-Policy" not in response.headers
    assert (await web.nobody.ask("GET", "/bookmarks")).content_type == "application/json"


async def test_an_unknown_path_is_a_plain_404(client: httpx.AsyncClient) -> None:
    """UI.md 12: the text is what a page would show, and nothing of the request is in it."""
    response = await Browser(client).get("/<script>alert(1)</script>")
    assert (response.status_code, response.text) == (404, "not found")
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"


async def test_a_form_is_read_or_refused(web: Web) -> None:
    """API-014: fields as text, 400 for what is no form, 413 for one that is too large."""

    @web.app.post("/form")
    async def form() -> dict[str, str]:
        return await read_form()

    async def post(body: bytes, content_type: str = "application/x-www-form-urlencoded") -> tuple[int, str]:
        response = await web.nobody.ask("POST", "/form", body, {"Content-Type": content_type})
        return response.status_code, str(await response.get_data(as_text=True))

    assert (await post(b"a=1&b=&a=%E2%80%AE2+3"))[0] == 200
    assert await post(b"") == (200, "{}\n") or (await post(b""))[1] == "{}"
    for body in (b"a=%FF", b"a=\xff", b"&".join(b"a=1" for _ in range(101))):
        assert (await post(body))[0] == 400, body[:10]
    assert (await post(b"--x\r\n", "multipart/form-data; boundary=x"))[0] == 400
    assert (await post(b"{}", "application/json"))[0] == 400
    assert (await post(b"a=" + b"x" * 65_536))[0] == 413


def test_the_policy_lets_in_nothing_inline() -> None:
    """COV-026: one line, no wildcard, no inline script or style, no scheme alone."""
    policy = content_policy("https://books.example")
    assert not any(word in policy for word in ("unsafe", "*", "data:", "http:", "\n", "https: "))
