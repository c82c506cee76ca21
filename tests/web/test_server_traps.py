"""The server over real sockets: what once ended, wedged or starved it."""

import gzip
import json
import resource
from collections.abc import AsyncIterator
from contextlib import suppress

import h11
import pytest
import trio
import trio.testing
from quart import Quart, Response, request
from quart_trio import QuartTrio

from bookmark_appliance.web.app import create_app
from bookmark_appliance.web.crowd import Crowd
from bookmark_appliance.web.exchange import MAX_HEAD_BYTES, Exchange
from bookmark_appliance.web.server import Limits, serve_web
from tests.web.conftest import Web
from tests.web.serving import serving

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class App(QuartTrio):
    asgi_http_class = Exchange


@pytest.fixture
def app() -> Quart:
    """Routes that answer at once, read a body, ignore one, or never come back."""
    app = App(__name__, static_folder=None)
    app.config.update(MAX_CONTENT_LENGTH=1_000, BODY_TIMEOUT=0.2)

    @app.get("/")
    async def hello() -> str:
        return "ok"

    @app.post("/read")
    async def read() -> str:
        return str(len(await request.get_data()))

    @app.post("/ignore")
    async def ignore() -> str:
        return "not read"

    return app


async def test_an_upgrade_is_ignored_and_ends_nothing(app: Quart) -> None:
    """API-038: one unauthenticated WebSocket upgrade with a header that isn't ASCII used to end the server."""
    async with serving(app) as server:
        for extra in (
            b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \xff\r\n",
            b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: \xff\r\n",
            b"X: \xff\r\n",
        ):
            talk = await server.connect()
            for _ in range(2):
                status, _, body = await talk.ask(b"GET / HTTP/1.1\r\nHost: x\r\n" + extra + b"\r\n")
                assert (status, body) == (200, b"ok")


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET * HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http:// HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
async def test_garbage_ends_its_own_connection_at_most(app: Quart, garbage: bytes) -> None:
    """API-038: nobody else notices, and it is told so in HTTP."""
    async with serving(app, Limits(head=0.2, idle=0.2, linger=0.1)) as server:
        talk = await server.connect()
        await talk.send(garbage)
        answer = await talk.closed_by_server()
        assert answer.startswith(b"HTTP/1.1 ")
        assert (await (await server.connect()).ask(GET))[0] == 200


@pytest.mark.parametrize("target", ["http://[/x", "http://a]b/x", "?", "x", "http://", "http://%5B@x/"])
async def test_a_target_that_names_no_path_is_refused(web: Web, target: str, caplog: pytest.LogCaptureFixture) -> None:
    """API-022, API-038: these were a 500 without a body, and a traceback each."""
    async with serving(web.app) as server:
        talk = await server.connect()
        status, headers, body = await talk.ask(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert (status, json.loads(body), headers["connection"]) == (400, {"error": "bad request"}, "close")
        assert await talk.closed_by_server() == b""
    assert not caplog.records


@pytest.mark.parametrize("method", ["POST", "HEAD"])
async def test_a_body_of_two_lengths_is_refused(app: Quart, method: str, caplog: pytest.LogCaptureFixture) -> None:
    """API-014, API-038: what a proxy in front takes for one request, we might take for two (RFC 9112 6.1)."""
    async with serving(app) as server:
        talk = await server.connect()
        head = b"/read HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
        await talk.send(method.encode() + b" " + head + b"0\r\n\r\n" + GET)
        status, headers, _ = await talk.answer(method)
        assert (status, headers["connection"]) == (400, "close")
        assert await talk.closed_by_server() == b""
    assert not caplog.records


@pytest.mark.parametrize("first", [b"POST /nope", b"GET /healthz", b"PUT /bookmarks/asura:one"])
async def test_an_early_answer_comes_whole_before_a_pipelined_request(
    web: Web, first: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """API-022: it was cut or lost, with a traceback, where a request followed a body that nobody had read."""
    async with serving(web.app) as server:
        for _ in range(20):
            talk = await server.connect()
            await talk.send(first + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\naaaaa" + GET)
            _, headers, body = await talk.answer(first.split()[0].decode())
            assert len(body) == int(headers["content-length"]) > 0
            await talk.stream.aclose()
    assert not caplog.records


async def test_a_connection_that_fails_is_logged_and_ends_alone(
    app: Quart, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """API-038: whatever the connection handling may yet raise."""

    async def fail(*_: object) -> None:
        raise ValueError("of the protocol")

    async with serving(app) as server:
        with monkeypatch.context() as patch:
            patch.setattr("bookmark_appliance.web.server.Http11.handle", fail)
            talk = await server.connect()
            await talk.send(GET)
            with suppress(trio.BrokenResourceError):
                assert await talk.closed_by_server() == b""
        assert "ValueError: of the protocol" in caplog.text
        assert (await (await server.connect()).ask(GET))[0] == 200


async def test_a_used_connection_is_closed_when_it_stays_idle(app: Quart) -> None:
    """OPS-006: quart-trio cut the clean-up in which the idle time begins; a used connection stayed for ever."""
    async with serving(app, Limits(idle=0.2)) as server:
        talk = await server.connect()
        for _ in range(3):
            assert (await talk.ask(GET))[0] == 200
        assert await talk.closed_by_server() == b""


async def test_idle_connections_do_not_hold_up_a_shutdown(app: Quart) -> None:
    """OPS-007: used, unused, in the middle of a head, or not reading; the drain is for requests in flight."""
    async with serving(app, Limits(drain=30)) as server:
        used, fresh, halfway = [await server.connect() for _ in range(3)]
        assert (await used.ask(GET))[0] == 200
        await halfway.send(GET[:20])
        assert (await (await server.connect()).ask(GET))[0] == 200
        server.shutdown.set()
        with trio.fail_after(20):
            await server.stopped.wait()
        for talk in (used, fresh):
            assert await talk.closed_by_server() == b""
        with pytest.raises(OSError, match="connect"):
            await server.connect()


async def test_a_request_in_flight_is_finished_at_shutdown(app: Quart) -> None:
    """OPS-007: it is answered, and the server goes right after."""
    entered, leave = trio.Event(), trio.Event()

    @app.get("/slow")
    async def slow() -> str:
        entered.set()
        await leave.wait()
        return "finished"

    async with serving(app, Limits(drain=30)) as server:
        talk = await server.connect()
        await talk.send(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        await entered.wait()
        server.shutdown.set()
        await trio.testing.wait_all_tasks_blocked()
        leave.set()
        assert (await talk.answer())[2] == b"finished"
        assert await talk.closed_by_server() == b""
        with trio.fail_after(20):
            await server.stopped.wait()


async def test_a_request_behind_the_last_answer_does_not_hold_up_a_shutdown(app: Quart) -> None:
    """OPS-007: it was never read, and its connection stood for the whole drain; the answer says that it ends."""
    head = b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"
    app.config["BODY_TIMEOUT"] = 10
    async with serving(app, Limits(drain=30)) as server:
        talks = {await server.connect(): behind for behind in (b"", head + b"0123456789")}
        for talk in talks:
            assert (await talk.ask(head + b"0123456789", "POST"))[0] == 200
            await talk.send(head + b"01234")
        await trio.testing.wait_all_tasks_blocked(0.05)
        server.shutdown.set()
        await trio.testing.wait_all_tasks_blocked()
        for talk, behind in talks.items():
            await talk.send(b"56789" + behind)
            status, headers, _ = await talk.answer("POST")
            assert (status, headers["connection"]) == (200, "close")
            with suppress(trio.BrokenResourceError):
                await talk.send(head + b"0123456789")
            assert await talk.closed_by_server() == b""
            await talk.stream.aclose()
        with trio.fail_after(5):
            await server.stopped.wait()


async def test_the_drain_has_an_end(app: Quart) -> None:
    """OPS-007: a handler that hangs and a client that reads nothing are cut after it."""
    entered = trio.Event()

    @app.get("/never")
    async def never() -> str:
        entered.set()
        await trio.Event().wait()
        return ""

    @app.get("/large")
    async def large() -> bytes:
        return bytes(50_000_000)

    async with serving(app, Limits(drain=0.2)) as server:
        hanging, stalled = await server.connect(), await server.connect()
        await stalled.send(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        await hanging.send(b"GET /never HTTP/1.1\r\nHost: x\r\n\r\n")
        await entered.wait()
        assert await stalled.stream.receive_some(10)
        server.shutdown.set()
        with trio.fail_after(20):
            await server.stopped.wait()


async def test_a_client_that_reads_nothing_is_dropped(app: Quart) -> None:
    """OPS-006: each piece of an answer has its time; a slow reader is not cut."""

    @app.get("/large")
    async def large() -> bytes:
        return bytes(50_000_000)

    async with serving(app, Limits(write=0.2, drain=30)) as server:
        stalled = await server.connect()
        await stalled.send(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await stalled.stream.receive_some(10)
        server.shutdown.set()
        with trio.fail_after(20):
            await server.stopped.wait()


@pytest.mark.parametrize(
    "chunked", [b"Content-Length: 8000000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n7a1200\r\n"]
)
@pytest.mark.parametrize(("target", "status"), [(b"/read", 413), (b"/ignore", 200)])
async def test_an_unread_body_ends_the_connection_cleanly(
    app: Quart, target: bytes, status: int, chunked: bytes
) -> None:
    """API-014: the answer arrives, says `Connection: close`, and no reset eats it; the next request used to hang."""
    async with serving(app) as server:
        talk = await server.connect()
        await talk.send(b"POST " + target + b" HTTP/1.1\r\nHost: x\r\n" + chunked)
        await talk.send(bytes(8_000_000) + GET)
        answered, headers, _ = await talk.answer("POST")
        assert (answered, headers["connection"]) == (status, "close")
        assert await talk.closed_by_server() == b""


async def test_a_connection_goes_on_after_a_body_that_was_read(app: Quart) -> None:
    """API-014: keep-alive is kept where nothing is left unread, pipelined requests included."""
    async with serving(app) as server:
        talk = await server.connect()
        post = b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcde"
        for _ in range(3):
            status, headers, body = await talk.ask(post, "POST")
            assert (status, body) == (200, b"5")
            assert "connection" not in headers
        await talk.send(post + post)
        rest = b""
        with trio.fail_after(20):
            while rest.count(b"HTTP/1.1 200") < 2 or not rest.endswith(b"\r\n\r\n5"):
                rest += await talk.stream.receive_some(1_000)


async def test_a_half_sent_body_runs_out_of_time(app: Quart) -> None:
    """API-014, OPS-006: no keep-alive time ever ended it."""
    async with serving(app) as server:
        talk = await server.connect()
        await talk.send(b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
        status, headers, _ = await talk.answer("POST")
        assert (status, headers["connection"]) == (408, "close")
        assert await talk.closed_by_server() == b""


@pytest.mark.parametrize("size", [60_000, MAX_HEAD_BYTES + 1])
async def test_a_large_head_is_refused(app: Quart, size: int) -> None:
    """OPS-006: h11's own limit let 60 kB pass when they came at once."""
    async with serving(app) as server:
        talk = await server.connect()
        await talk.send(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * size + b"\r\n\r\n")
        status, headers, body = await talk.answer()
        assert (status, list(json.loads(body))) == (431, ["error"])
        assert headers["x-content-type-options"] == "nosniff"
        assert (await (await server.connect()).ask(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 15_000 + b"\r\n\r\n"))[
            0
        ] == 200


async def test_an_endless_head_is_cut(app: Quart) -> None:
    """OPS-006: when it comes in pieces h11 refuses it at 16 KiB."""
    async with serving(app) as server:
        talk = await server.connect()
        await talk.send(b"GET / HTTP/1.1\r\nHost: x\r\nX: ")
        with suppress(trio.BrokenResourceError):
            for _ in range(40):
                await talk.send(b"a" * 1_000)
                await trio.testing.wait_all_tasks_blocked(0.001)
        with suppress(trio.BrokenResourceError):
            assert (await talk.closed_by_server()).startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize("warm_up", [0, 2])
async def test_a_slow_head_runs_out_of_time(app: Quart, warm_up: int) -> None:
    """OPS-006: on a fresh connection and on a kept one, one byte after another, which would go on for minutes."""
    async with serving(app, Limits(head=0.3, linger=0.1)) as server:
        talk = await server.connect()
        for _ in range(warm_up):
            await talk.ask(GET)
        started = trio.current_time()
        with suppress(trio.BrokenResourceError), trio.fail_after(30):
            for byte in GET[:-2] * 100:
                await talk.send(bytes([byte]))
                with trio.move_on_after(0.05):
                    if not await talk.stream.receive_some(100):
                        break
        assert trio.current_time() - started > 0.2


async def test_a_silent_connection_is_closed(app: Quart) -> None:
    """OPS-006: the time for the first head runs from connecting."""
    async with serving(app, Limits(head=0.2, linger=0.1)) as server:
        assert await (await server.connect()).closed_by_server() == b""


async def test_a_client_that_goes_away_undoes_its_request(web: Web) -> None:
    """API-012, SER-003: a write is one transaction or it isn't done; the connection to the database comes back."""
    await web.reader.put("asura:one", last_chapter_num=1)
    put = (
        "PUT /bookmarks/asura:one HTTP/1.1\r\nHost: x\r\nContent-Length: 23\r\n"
        f'Authorization: Bearer {web.reader.credential}\r\n\r\n{{"last_chapter_num":77}}'
    )
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with serving(web.app) as server:
        async with web.database.transaction() as connection:
            await connection.execute("SELECT 1 FROM series FOR UPDATE")
            talk = await server.connect()
            await talk.send(put.encode())
            with trio.fail_after(10):
                while not await web.sql(waiting):
                    await trio.lowlevel.checkpoint()
                await talk.stream.aclose()
                while await web.sql(waiting):
                    await trio.lowlevel.checkpoint()
        assert (await web.reader.list())[0]["last_chapter_num"] == 1
        async with web.database.connection() as first, web.database.connection() as second:
            assert first is not second


async def test_a_stream_may_stay_idle(app: Quart) -> None:
    """OPS-006: no limit on the whole of an answer cuts it; its client going away ends it."""
    more, gone = trio.Event(), trio.Event()

    @app.get("/stream")
    async def stream() -> Response:
        async def parts() -> AsyncIterator[bytes]:
            try:
                yield b"one"
                await more.wait()
                yield b"two"
                await trio.sleep_forever()
            finally:
                gone.set()

        return Response(parts(), content_type="text/event-stream")

    app.config["RESPONSE_TIMEOUT"] = 0.01
    async with serving(app) as server:
        talk = await server.connect()
        await talk.send(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
        received = b""
        with trio.fail_after(20):
            while b"one" not in received:
                received += await talk.stream.receive_some(1_000)
            with trio.move_on_after(0.1):
                received += await talk.stream.receive_some(1_000)
            more.set()
            while b"two" not in received:
                received += await talk.stream.receive_some(1_000)
            await talk.stream.aclose()
            await gone.wait()


async def test_a_failing_handler_is_a_500_on_a_living_connection(web: Web, caplog: pytest.LogCaptureFixture) -> None:
    """API-038, API-022: one shape, an id, the traceback in the log, and keep-alive goes on."""

    @web.app.get("/healthz/fails")
    async def fail() -> str:
        raise RuntimeError("what nobody foresaw")

    async with serving(web.app) as server:
        talk = await server.connect()
        for _ in range(2):
            status, headers, body = await talk.ask(b"GET /healthz/fails HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (status, json.loads(body)) == (500, {"error": "internal error"})
            assert headers["x-request-id"] in caplog.text
    assert "what nobody foresaw" in caplog.text


async def test_headers_on_the_socket(web: Web) -> None:
    """API-042, API-041, API-032, API-049: no length on what is compressed, no type on what has no body."""
    await web.reader.put("asura:one")
    authorization = f"Host: x\r\nAuthorization: Bearer {web.reader.credential}\r\n"
    async with serving(web.app) as server:
        talk = await server.connect()
        zipped = f"GET /bookmarks HTTP/1.1\r\n{authorization}Accept-Encoding: gzip\r\n\r\n".encode()
        for _ in range(2):
            status, headers, body = await talk.ask(zipped)
            assert (status, headers["content-encoding"], headers["transfer-encoding"]) == (200, "gzip", "chunked")
            assert "content-length" not in headers
            assert json.loads(gzip.decompress(body))[0]["key"] == "asura:one"
        status, plain, body = await talk.ask(f"GET /bookmarks HTTP/1.1\r\n{authorization}\r\n".encode())
        assert int(plain["content-length"]) == len(body)
        for line, expected in (
            (f"GET /bookmarks HTTP/1.1\r\n{authorization}If-None-Match: {headers['etag']}\r\n", 304),
            (f"DELETE /bookmarks/asura:one HTTP/1.1\r\n{authorization}", 204),
            ("OPTIONS * HTTP/1.1\r\nHost: x\r\n", 204),
        ):
            status, headers, body = await talk.ask(f"{line}\r\n".encode())
            assert (status, body) == (expected, b"")
            assert not {"content-type", "content-length", "server"} & set(headers)
            assert headers["x-content-type-options"] == "nosniff"


async def test_a_key_comes_over_the_socket_as_it_was_sent(web: Web) -> None:
    """API-047: decoded once, also from a target in absolute form."""
    head = f"Host: x\r\nAuthorization: Bearer {web.reader.credential}\r\nContent-Length: 2\r\n\r\n{{}}"
    async with serving(web.app) as server:
        talk = await server.connect()
        for target in ("/bookmarks/demonic%3AFoo%2527s", "http://x/bookmarks/demonic%3AFoo%2527s"):
            status, _, body = await talk.ask(f"PUT {target} HTTP/1.1\r\n{head}".encode(), "PUT")
            assert (status, json.loads(body)["key"]) == (200, "demonic:Foo%27s")


async def test_who_finds_the_room_full_is_turned_away(app: Quart, caplog: pytest.LogCaptureFixture) -> None:
    """API-038: idle sockets took every descriptor, and accepting failed with a traceback ten times a second."""
    async with serving(app, crowd=Crowd(most=3)) as server:
        inside = [await server.connect() for _ in range(3)]
        for talk in inside:
            assert (await talk.ask(GET))[0] == 200
        for _ in range(5):
            assert await (await server.connect()).closed_by_server() == b""
        assert (await inside[0].ask(GET))[0] == 200
        assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
            "3 connections are open, the most there may be: new ones are closed"
        ]
        await inside[0].stream.aclose()
        with trio.fail_after(5):
            status = 0
            while status != 200:
                talk = await server.connect()
                with suppress(h11.RemoteProtocolError, trio.BrokenResourceError):
                    status = (await talk.ask(GET))[0]


def test_the_room_leaves_files_to_others() -> None:
    """API-038: three quarters of what this process may open, which is raised where it is low."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
        most = Crowd.of_this_process().most
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        assert 512 < soft <= before[1]
        assert most == min(2_000, soft * 3 // 4)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_two_credentials_are_none(web: Web) -> None:
    """API-002: which of the two counts is nothing to guess."""
    line = f"Authorization: Bearer {web.reader.credential}\r\n"
    async with serving(web.app) as server:
        talk = await server.connect()
        for lines, expected in ((line, 200), (line * 2, 401), (line + "Authorization: Basic x\r\n", 401)):
            assert (await talk.ask(f"GET /bookmarks HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode()))[0] == expected


async def test_a_path_that_only_looks_like_a_bookmark_is_none(web: Web) -> None:
    """API-032, API-047: DELETE told 204 and had deleted nothing, PUT wrote another key."""
    await web.reader.put("asura:one")
    for target in ("//bookmarks/asura:one", "/bookmarks%2Fasura:one", "/bookmarks%2Fzz/asura:two"):
        for method in ("DELETE", "PUT"):
            body = b"{}" if method == "PUT" else None
            assert (await web.reader.ask(method, target, body)).status_code == 404
            assert (await web.nobody.ask(method, target, body)).status_code == 401
    assert [row["key"] for row in await web.reader.list()] == ["asura:one"]


async def test_a_server_that_can_accept_no_more_is_fatal(app: Quart, monkeypatch: pytest.MonkeyPatch) -> None:
    """API-038: a request's failure is contained, the server's own is not."""

    async def fail(*_: object) -> None:
        raise RuntimeError("no more connections")

    monkeypatch.setattr("trio.SocketListener.accept", fail)
    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="no more"), flatten_subgroups=True):
        await serve_web(app, await trio.open_tcp_listeners(0, host="127.0.0.1"), shutdown=trio.Event())


async def test_the_application_has_its_limits(web: Web) -> None:
    """API-014, OPS-006: the ones that the tests above shorten."""
    app = create_app(web.context)
    assert app.config["MAX_CONTENT_LENGTH"] == 65_536
    assert 0 < app.config["BODY_TIMEOUT"] <= 60
    assert (Limits().head, Limits().drain) == (10, 7)
