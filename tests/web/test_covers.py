"""GET /covers/{address}: what is served, to whom, and what never is."""

import os
from hashlib import sha256
from pathlib import Path

import pytest
import trio
from PIL import Image
from quart.wrappers import Response

from bookmark_appliance.covers import cover_keeper
from bookmark_appliance.covers.cover_files import OpenFile, relative_path
from bookmark_appliance.web.cover_pages import PIECE_BYTES, asked_range
from tests.covers.pictures import encoded, gif_of_size
from tests.serving_process import eventually
from tests.web.conftest import ORIGIN, Web
from tests.web.serving import serving

IMMUTABLE = "public, max-age=604800, immutable"


async def store(web: Web, body: bytes, content_type: str = "image/jpeg") -> str:
    """A cover of these bytes, which no Series points at; its address."""
    address = sha256(body).hexdigest()
    web.context.covers.files.install(address, body)
    await web.sql("INSERT INTO covers VALUES (%s, %s, %s)", address, relative_path(address), content_type)
    return address


async def get(web: Web, path: str, method: str = "GET", **headers: str) -> tuple[Response, bytes]:
    """An answer and its body."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = await web.nobody.ask(method, path, headers=named)
    return response, await response.get_data(as_text=False)


async def assert_not_served(web: Web, path: str) -> None:
    response, body = await get(web, path)
    assert response.status_code == 404, path
    assert response.content_type == "application/json"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert b"not found" in body


@pytest.mark.parametrize("size", [1, 60_000, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES, 300_001])
async def test_anyone_gets_the_bytes_as_they_were_stored(web: Web, size: int) -> None:
    """COV-020, COV-027, COV-033, COV-034: the type of the row, cached for good, embeddable anywhere, no cookie."""
    body = os.urandom(size)
    address = await store(web, body, "image/webp")
    for headers in ({}, {"Origin": ORIGIN}, {"Cookie": "session=x"}, {"Accept_Encoding": "gzip"}):
        response, received = await get(web, f"/covers/{address}", **headers)
        assert (response.status_code, received) == (200, body)
        sent = response.headers
        assert sent["Content-Type"] == "image/webp"
        assert sent["Content-Length"] == str(size)
        assert sent["Cache-Control"] == IMMUTABLE
        assert sent["ETag"] == f'"{address}"'
        assert sent["X-Content-Type-Options"] == "nosniff"
        assert sent["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert sent["Cross-Origin-Resource-Policy"] == "cross-origin"
        assert "Set-Cookie" not in sent
        assert "Cookie" not in sent["Vary"]
        assert "Content-Encoding" not in sent


async def test_a_polyglot_is_an_image_and_nothing_else(web: Web) -> None:
    """COV-020, COV-027: GIF and HTML in one; the type of the row, and neither guessed nor run as another."""
    body = gif_of_size(1, 1) + b"<html><script>alert(1)</script>"
    response, received = await get(web, f"/covers/{await store(web, body, 'image/gif')}")
    assert (response.content_type, received) == ("image/gif", body)
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in response.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "form",
    [
        "",
        "none",
        "{upper}",
        "{address}0",
        "{short}",
        "{address}/",
        "/{address}",
        "../covers/{address}",
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e/{path}",
        "{path}",
        "{encoded}",
        "{address}%00",
        "%00",
        "{address}%0a",
        "{address}.w240.webp",
        "\u0661" * 64,
        "%ff",
        "0" * 8_000,
        "{zeros}",
    ],
)
async def test_what_is_not_an_address_of_ours_is_not_served(web: Web, form: str) -> None:
    """COV-028: 404 whatever else it is, and not one that lasts."""
    address = await store(web, b"body")
    (web.context.covers.files.path(f"{address}.w240.webp")).write_bytes(b"small")
    words = {
        "address": address,
        "upper": address.upper(),
        "short": address[:-1],
        "path": relative_path(address),
        "encoded": f"%{ord(address[0]):02x}{address[1:]}",
        "zeros": "0" * 64,
    }
    await assert_not_served(web, f"/covers/{form.format(**words)}")


async def test_a_row_that_lies_is_not_served_and_said_once(web: Web, caplog: pytest.LogCaptureFixture) -> None:
    """COV-029, COV-030: a type that is none of ours, a path that is another's; one log line, never a 500."""
    address = await store(web, b"body")
    for column, lie in (
        ("content_type", "text/html"),
        ("content_type", "image/svg+xml"),
        ("content_type", "image/jpg"),
        ("content_type", "image/jpeg; charset=utf-8"),
        ("content_type", "image/jpeg\r\nSet-Cookie: a=b"),
        ("content_type", ""),
        ("path", relative_path("ab" * 32)),
        ("path", "../../etc/passwd"),
        ("path", f"/{relative_path(address)}"),
        ("path", ""),
    ):
        await web.sql(f"UPDATE covers SET {column} = %s", lie)
        caplog.clear()
        await assert_not_served(web, f"/covers/{address}")
        assert [record.levelname for record in caplog.records] == ["WARNING"], lie
        await web.sql("UPDATE covers SET path = %s, content_type = 'image/png'", relative_path(address))
    assert (await get(web, f"/covers/{address}"))[0].status_code == 200


async def test_a_file_that_is_missing_is_cleared(web: Web, caplog: pytest.LogCaptureFixture) -> None:
    """COV-011, COV-026, COV-028: 404, and the list no longer names it, so that the next Poll heals it."""
    address = await store(web, b"body")
    await web.reader.put("asura:one", title="One")
    await web.sql("UPDATE series SET cover_address = %s", address)
    assert (await web.reader.list())[0]["cover"] == f"https://books.example/covers/{address}"
    assert (await get(web, f"/covers/{address}"))[0].status_code == 200
    web.context.covers.files.remove(address)
    await assert_not_served(web, f"/covers/{address}")
    assert (await web.reader.list())[0]["cover"] == ""
    assert "asura:one" in caplog.text
    await assert_not_served(web, f"/covers/{address}")


async def test_a_file_that_cannot_be_read_is_not_served_and_stays(
    web: Web, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """COV-028, COV-030: a link, or a folder in its place; nothing is cleared for what may pass."""
    address = await store(web, b"body")
    path = web.context.covers.files.path(address)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    await assert_not_served(web, f"/covers/{address}")
    assert len(caplog.records) == 1
    assert await web.sql("SELECT address FROM covers") == [(address,)]


async def test_a_hot_cover_asks_the_database_once(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """COV-027: its row is asked for again only after a while, and its bytes never lie there."""
    monkeypatch.setattr(cover_keeper, "_HOT_SECONDS", 600.0)
    address = await store(web, b"body")
    assert (await get(web, f"/covers/{address}"))[1] == b"body"
    await web.sql("ALTER TABLE covers RENAME TO nowhere")
    for _ in range(3):
        assert (await get(web, f"/covers/{address}"))[1] == b"body"


async def test_what_a_client_has_is_not_sent_again(web: Web) -> None:
    """COV-027: a strong validator; 304 carries no body."""
    address = await store(web, b"body")
    for known in (f'"{address}"', f'W/"{address}"', f'"x", "{address}"', "*"):
        response, body = await get(web, f"/covers/{address}", If_None_Match=known)
        assert (response.status_code, body) == (304, b""), known
        assert response.headers["ETag"] == f'"{address}"'
        assert response.headers["Cache-Control"] == IMMUTABLE
    assert (await get(web, f"/covers/{address}", If_None_Match='"x"'))[0].status_code == 200
    await assert_not_served(web, f"/covers/{'0' * 64}")


async def test_a_part_is_sent_where_one_is_asked_for(web: Web) -> None:
    """COV-027: one range of bytes; a validator of another file is answered with the whole."""
    body = bytes(range(256)) * 1_000
    address = await store(web, body)
    size = len(body)
    for asked, start, stop in (
        ("bytes=0-0", 0, 1),
        ("bytes=10-99", 10, 100),
        ("bytes=255000-", 255_000, size),
        ("bytes=-500", size - 500, size),
        ("bytes=-9999999", 0, size),
        ("bytes=5-999999999", 5, size),
        ("bytes=1000-200000", 1_000, 200_001),
    ):
        response, received = await get(web, f"/covers/{address}", Range=asked)
        assert received == body[start:stop], asked
        if stop - start == size:
            assert response.status_code == 200
        else:
            assert response.status_code == 206
            assert response.headers["Content-Range"] == f"bytes {start}-{stop - 1}/{size}"
        assert response.headers["Content-Length"] == str(stop - start)
    for asked in ("bytes=256000-", "bytes=999999-9999999", "bytes=-0"):
        response, _ = await get(web, f"/covers/{address}", Range=asked)
        assert response.status_code == 416
        assert response.headers["Content-Range"] == f"bytes */{size}"
        assert response.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    known, unknown = f'"{address}"', f'W/"{address}"'
    assert (await get(web, f"/covers/{address}", Range="bytes=0-0", If_Range=known))[0].status_code == 206
    assert (await get(web, f"/covers/{address}", Range="bytes=0-0", If_Range=unknown))[0].status_code == 200


@pytest.mark.parametrize("header", ["", "bytes=", "bytes=-", "bytes=5-4", "bytes=0-1,3-4", "lines=0-1", "bytes=a-b"])
def test_a_range_that_says_nothing_to_us_is_ignored(header: str) -> None:
    """COV-027: RFC 9110 14.2."""
    assert asked_range(header, 10) == range(10)


async def test_head_is_get_without_the_body(web: Web) -> None:
    """COV-027: over a connection that goes on."""
    address = await store(web, os.urandom(200_000))
    async with serving(web.app) as server:
        talk = await server.connect()
        for _ in range(2):
            ask = f"HEAD /covers/{address} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
            status, headers, body = await talk.ask(ask, "HEAD")
            assert (status, headers["content-length"], body) == (200, "200000", b"")
            assert (headers["content-type"], headers["etag"]) == ("image/jpeg", f'"{address}"')


async def test_bytes_that_are_not_in_memory_are_waited_for(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """COV-027: none of a piece, or only its beginning."""
    body = os.urandom(200_000)
    address = await store(web, body)
    cached = OpenFile.read_cached
    monkeypatch.setattr(OpenFile, "read_cached", lambda file, offset, length: cached(file, offset, offset % 7_000))
    assert (await get(web, f"/covers/{address}"))[1] == body


async def test_a_client_that_goes_away_leaves_nothing_open(web: Web) -> None:
    """COV-027: of ten that stop reading in the middle of 8 MB no descriptor is left, and the next one is served."""
    body = os.urandom(8_000_000)
    address = await store(web, body)
    ask = f"GET /covers/{address} HTTP/1.1\r\nHost: x\r\n\r\n".encode()

    def still_open() -> int:
        return sum(address in os.path.realpath(link) for link in Path("/proc/self/fd").iterdir())

    async with serving(web.app) as server:
        for _ in range(10):
            talk = await server.connect()
            await talk.send(ask)
            await talk.stream.receive_some(1_000)
        assert still_open() == 10
        for talk in server.talks:
            await trio.aclose_forcefully(talk.stream)
        await eventually(lambda: still_open() == 0)
        status, _, received = await (await server.connect()).ask(ask)
        assert (status, received) == (200, body)


async def test_a_small_one_is_served_where_it_is_asked_for(web: Web) -> None:
    """COV-035: a WebP with a validator of its own; ranges and 304 as of any cover; the original stays as it is."""
    body = encoded(Image.new("RGB", (960, 1440), "teal"), "JPEG")
    address = await store(web, body)
    for width in (240, 480):
        response, small = await get(web, f"/covers/{address}?w={width}")
        assert response.status_code == 200
        assert small[8:12] == b"WEBP"
        assert response.content_type == "image/webp"
        assert response.headers["Cache-Control"] == IMMUTABLE
        assert response.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
        etag = response.headers["ETag"]
        assert etag == f'"{address}-w{width}"'
        response, part = await get(web, f"/covers/{address}?w={width}", Range="bytes=8-11", If_Range=etag)
        assert (response.status_code, part) == (206, b"WEBP")
        assert (await get(web, f"/covers/{address}?w={width}", If_None_Match=etag))[0].status_code == 304
    assert (await get(web, f"/covers/{address}"))[1] == body


@pytest.mark.parametrize("query", ["w=120", "w=0240", "w=240.0", "w=", "w=-240", "w", "v=240", "w=240&w=480", "%00"])
async def test_any_other_width_is_the_original(web: Web, query: str) -> None:
    """COV-035: two widths, spelled one way, so that nobody can have others made."""
    body = encoded(Image.new("RGB", (960, 1440), "teal"), "JPEG")
    address = await store(web, body)
    response, received = await get(web, f"/covers/{address}?{query}")
    assert (response.status_code, received) == (200, body)
    assert len(os.listdir(web.context.covers.files.path(address).parent)) == 1


async def test_what_cannot_be_made_small_is_the_original(web: Web, caplog: pytest.LogCaptureFixture) -> None:
    """COV-035: and tried only once in a while."""
    caplog.set_level("INFO")
    body = gif_of_size(65_535, 65_535)
    address = await store(web, body, "image/gif")
    for _ in range(3):
        response, received = await get(web, f"/covers/{address}?w=240")
        assert (response.status_code, response.content_type, received) == (200, "image/gif", body)
        assert response.headers["ETag"] == f'"{address}"'
        assert response.headers["Cache-Control"] == "public, max-age=3600", "another time it may succeed"
    assert len(caplog.records) == 1


async def test_a_small_one_of_a_cover_that_has_gone_is_gone(web: Web) -> None:
    """COV-028, COV-031: nothing is served without its row, and a reclaim takes it along."""
    address = await store(web, encoded(Image.new("RGB", (480, 720)), "PNG"), "image/png")
    assert (await get(web, f"/covers/{address}?w=240"))[0].status_code == 200
    await web.context.covers.reclaim(address)
    await assert_not_served(web, f"/covers/{address}?w=240")
    assert web.context.covers.files.names_under(address[:2]) == set()
