"""What the JSON API looks like from outside: credentials, shapes, headers, errors."""

import gzip
import json

import pytest

from tests.web.conftest import ORIGIN, Web

KEYS = {
    "key": str,
    "site": str,
    "series_id": str,
    "title": str,
    "series_url": str,
    "cover": str,
    "last_chapter": str,
    "last_chapter_num": float,
    "last_chapter_url": str,
    "favorite": bool,
    "latest_chapter": str,
    "latest_chapter_num": (float, type(None)),
    "updated_at": int,
    "status": str,
    "kind": str,
    "finished": bool,
}


async def test_health_is_two_letters(web: Web) -> None:
    """API-001: without a credential."""
    response = await web.nobody.ask("GET", "/healthz")
    assert response.status_code == 200
    assert response.mimetype == "text/plain"
    assert await response.get_data() == b"ok"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/bookmarks"),
        ("PUT", "/bookmarks/asura:one"),
        ("PUT", "/bookmarks/"),
        ("DELETE", "/bookmarks/asura:one"),
        ("DELETE", "/bookmarks/"),
        ("DELETE", "/bookmarks/nonsense"),
        ("GET", "/bookmarks/asura:one"),
        ("POST", "/bookmarks"),
    ],
)
async def test_a_call_without_a_good_credential_is_refused(web: Web, method: str, path: str) -> None:
    """API-002, API-003, API-022: whatever else is wrong with it."""
    unregistered = "0" * 64
    for authorization in (
        *(None, "", "Basic {}", "Bearer ", "Bearer", "Bearer wrong", "Bearer  {}", "Bearer {} x", "{}"),
        f"Bearer {unregistered}",
    ):
        headers = {} if authorization is None else {"Authorization": authorization.format(web.reader.credential)}
        for body in (b"not json", b"{}"):
            response = await web.nobody.ask(method, path, body, headers)
            assert response.status_code == 401, authorization
            assert list(json.loads(await response.get_data())) == ["error"]
    assert await web.sql("SELECT 1 FROM series") == []


async def test_the_scheme_is_read_in_any_case(web: Web) -> None:
    """API-003: bearer, BEARER."""
    for scheme in ("bearer", "BEARER", "Bearer"):
        response = await web.nobody.ask(
            "GET", "/bookmarks", headers={"Authorization": f"{scheme} {web.reader.credential}"}
        )
        assert response.status_code == 200


async def test_an_empty_list_is_brackets_and_a_newline(web: Web) -> None:
    """API-005: never null."""
    response = await web.reader.ask("GET", "/bookmarks")
    assert response.content_type == "application/json"
    assert await response.get_data() == b"[]\n"


async def test_the_sixteen_keys_have_their_types(web: Web) -> None:
    """API-007, API-008, API-010, API-012: on GET and on the reply to a PUT alike."""
    row = await web.reader.put(
        "asura:one",
        title="One",
        series_url="https://asurascans.com/series/one",
        last_chapter="Chapter 3",
        last_chapter_num=3,
        last_chapter_url="https://asurascans.com/series/one/chapter/3",
        favorite=True,
        latest_chapter_num=5,
        kind="novel",
        status="archived",
    )
    bare = await web.reader.put("demonic:two")
    for shown in (row, bare):
        assert list(shown) == list(KEYS)
        assert {name for name, value in shown.items() if not isinstance(value, KEYS[name])} == set()  # type: ignore[arg-type]
    assert row["key"] == "asura:one"
    assert row["latest_chapter"] == "Chapter 5"
    assert (bare["last_chapter_num"], bare["latest_chapter_num"], bare["title"]) == (0, None, "")
    assert sorted(await web.reader.list(), key=lambda shown: str(shown["key"])) == [row, bare]
    columns = await web.sql(
        "SELECT column_name FROM information_schema.columns WHERE table_name IN ('bookmarks', 'series')"
    )
    assert ("key",) not in columns


async def test_an_uncaptured_latest_chapter_is_null(web: Web) -> None:
    """API-009: the literal on the wire, and what it becomes."""
    response = await web.reader.ask("PUT", "/bookmarks/asura:one", {})
    assert b'"latest_chapter_num":null' in await response.get_data()
    row = await web.reader.put("asura:one", latest_chapter_num=162)
    assert (row["latest_chapter_num"], row["latest_chapter"]) == (162, "Chapter 162")
    assert await web.reader.list() == [row]


async def test_a_cover_is_shown_from_our_own_keeping(web: Web) -> None:
    """COV-026, API-024: an address under our own base, or nothing."""
    row = await web.reader.put("asura:one", cover="https://elsewhere.example/c.png")
    assert row["cover"] == ""
    await web.sql("UPDATE series SET cover_address = %s", "ab" * 32)
    assert (await web.reader.list())[0]["cover"] == "https://books.example/covers/" + "ab" * 32


async def test_an_unknown_status_reads_as_reading(web: Web) -> None:
    """API-031: a row that a hand has edited is in the list still."""
    await web.reader.put("asura:one")
    await web.sql("UPDATE bookmarks SET status = 'finished'")
    assert (await web.reader.list())[0]["status"] == "reading"


async def test_a_finished_series_says_so_to_every_holder(web: Web) -> None:
    """API-029, API-028: and no PUT changes it."""
    await web.reader.put("asura:one")
    await web.other.put("asura:one")
    await web.sql("UPDATE series SET finished_at = 1000")
    for client in (web.reader, web.other):
        assert (await client.list())[0]["finished"] is True
        assert (await client.put("asura:one", finished=False, last_chapter_num=2))["finished"] is True
    await web.sql("UPDATE series SET finished_at = 0")
    assert (await web.reader.put("asura:one", finished=True))["finished"] is False


async def test_an_allowed_origin_is_told_so(web: Web) -> None:
    """API-039: on answers and on errors."""
    for client, status in ((web.reader, 200), (web.nobody, 401)):
        response = await client.ask("GET", "/bookmarks", headers={"Origin": ORIGIN})
        assert response.status_code == status
        assert response.headers["Access-Control-Allow-Origin"] == ORIGIN
        assert "Origin" in response.headers["Vary"]
        assert response.headers["Access-Control-Allow-Methods"] == "GET,PUT,DELETE,OPTIONS"
        assert response.headers["Access-Control-Allow-Headers"] == "Authorization,Content-Type"
        assert response.headers["Access-Control-Max-Age"] == "86400"


async def test_another_origin_is_served_without_a_word(web: Web) -> None:
    """API-040: the browser then keeps the answer from the page."""
    response = await web.reader.ask("GET", "/bookmarks", headers={"Origin": "https://evil.example"})
    assert response.status_code == 200
    assert "Access-Control-Allow-Origin" not in response.headers


@pytest.mark.parametrize("path", ["/bookmarks", "/bookmarks/asura:one", "/nowhere", "/healthz"])
@pytest.mark.parametrize("origin", [ORIGIN, "https://evil.example"])
async def test_a_preflight_is_answered_before_authentication(web: Web, path: str, origin: str) -> None:
    """API-041: on any path, for any origin."""
    response = await web.nobody.ask("OPTIONS", path, headers={"Origin": origin})
    assert response.status_code == 204
    assert await response.get_data() == b""
    assert ("Access-Control-Allow-Origin" in response.headers) == (origin == ORIGIN)


async def test_texts_are_compressed_for_those_who_take_it(web: Web) -> None:
    """API-042: lists, replies, errors and plain text; not for others, and not where gzip is weighed zero."""
    row = await web.reader.put("asura:one")
    for client, path, plain in (
        (web.reader, "/bookmarks", json.dumps([row], separators=(",", ":")).encode() + b"\n"),
        (web.nobody, "/healthz", b"ok"),
        (web.nobody, "/bookmarks", b'{"error":"missing or unknown credential"}\n'),
    ):
        for accepted in ("gzip", "br, gzip;q=0.8", "GZIP"):
            response = await client.ask("GET", path, headers={"Accept-Encoding": accepted})
            assert response.headers["Content-Encoding"] == "gzip"
            assert "Accept-Encoding" in response.headers["Vary"]
            assert gzip.decompress(bytes(await response.get_data(as_text=False))) == plain
        for refused in ("", "br", "gzip;q=0", "identity"):
            response = await client.ask("GET", path, headers={"Accept-Encoding": refused})
            assert "Content-Encoding" not in response.headers
            assert "Accept-Encoding" in response.headers["Vary"]
            assert await response.get_data() == plain


async def test_every_answer_forbids_guessing_its_type(web: Web) -> None:
    """API-042: `nosniff`, on errors too; an image isn't compressed."""

    @web.app.get("/picture")
    async def picture() -> tuple[bytes, dict[str, str]]:
        return b"\x89PNG", {"Content-Type": "image/png"}

    for path in ("/healthz", "/bookmarks", "/nowhere", "/picture"):
        response = await web.nobody.ask("GET", path, headers={"Accept-Encoding": "gzip"})
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert ("Content-Encoding" in response.headers) == (path != "/picture")


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/healthz/nowhere", 404), ("POST", "/healthz", 405)])
async def test_what_there_is_not_is_an_error_of_the_one_shape(web: Web, method: str, path: str, status: int) -> None:
    """API-022: the framework's own errors are no exception."""
    response = await web.nobody.ask(method, path)
    assert response.status_code == status
    assert response.content_type == "application/json"
    assert list(json.loads(await response.get_data())) == ["error"]
    assert response.headers["X-Request-Id"]
    assert ("Allow" in response.headers) == (status == 405)


async def test_a_wrong_method_under_bookmarks_is_told_to_a_reader(web: Web) -> None:
    """API-022: 405 with the methods there are."""
    response = await web.reader.ask("GET", "/bookmarks/asura:one")
    assert response.status_code == 405
    assert {"PUT", "DELETE"} <= set(response.headers["Allow"].split(", "))
