"""Sessions: their rows, their cookie, and what a route does without one."""

from collections.abc import AsyncIterator
from dataclasses import replace
from ipaddress import ip_network

import httpx
import pytest
import trio
from quart import Quart
from quart.wrappers import Response

from bookmark_appliance.secret import Secret
from bookmark_appliance.store.readers import end_sessions, rotate_credential
from bookmark_appliance.store.sessions import SESSION_MS, create_session, delete_session, find_session
from bookmark_appliance.store.sign_in import MOST_LIVE, add_link
from bookmark_appliance.web.app import create_app
from bookmark_appliance.web.pages import Pages, see_other
from bookmark_appliance.web.sessions import Gate, SignedIn
from bookmark_appliance.web.static_files import StaticFiles
from tests.web.browsing import Browser, browsing, cookies_of
from tests.web.conftest import Web

SESSION = "ab" * 32
LINK = "cd" * 32
MINUTE = 60_000


async def begin(web: Web, session_id: str = SESSION, reader_id: int | None = None) -> str:
    """A session of the first Reader, straight in the store."""
    async with web.database.transaction() as connection:
        await create_session(connection, session_id, reader_id or web.reader_id, web.clock.now)
    return session_id


async def link(web: Web, token: str = LINK) -> str:
    """A sign-in link of the first Reader, straight in the store."""
    async with web.database.transaction() as connection:
        await add_link(connection, Secret(token), web.reader_id, web.clock.now)
    return f"/sign-in/{token}"


async def holder(web: Web, session_id: str, now_ms: int) -> str | None:
    """The Discord id of the Reader whose live session this is."""
    async with web.database.connection() as connection:
        reader = await find_session(connection, session_id, now_ms)
    return None if reader is None else reader.discord_id


def add_gated_routes(app: Quart, web: Web) -> None:
    """A page and a fragment that say who is signed in."""
    gate = Gate(web.context, Pages(web.context, StaticFiles()))

    async def who(reader: SignedIn, **_: object) -> Response:
        return see_other(f"/{reader.reader_id}-{reader.discord_id}-{reader.is_owner}")

    app.add_url_rule("/who", "who", gate.page(who), methods=["GET"])
    app.add_url_rule("/ui/who/<key>", "ui_who", gate.fragment(who), methods=["GET", "POST"])


@pytest.fixture
async def client(web: Web) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application, with two routes that say who is signed in."""
    add_gated_routes(web.app, web)
    async with browsing(web.app) as opened:
        yield opened


async def test_a_session_ends_in_time_and_for_good(web: Web) -> None:
    """SES-005: unknown: none; expired: none, and its row is gone, also for a clock that is set back."""
    now = web.clock.now
    await begin(web)
    assert await holder(web, "0" * 64, now) is None
    assert await holder(web, SESSION, now + SESSION_MS - 1) == "201"
    assert await holder(web, SESSION, now + SESSION_MS) is None
    assert await holder(web, SESSION, now) is None


async def test_a_new_session_sweeps_the_expired(web: Web) -> None:
    """SES-006: all of them, in the same transaction."""
    for number in range(5):
        await begin(web, f"{number:064x}")
    web.clock.now += SESSION_MS
    async with web.database.transaction() as connection:
        await create_session(connection, SESSION, web.other_id, web.clock.now)
        rows = await (await connection.execute("SELECT id FROM sessions")).fetchall()
    assert rows == [(SESSION,)]


async def test_sessions_are_ended_one_by_one_and_together(web: Web, client: httpx.AsyncClient) -> None:
    """SES-007, SES-008: the very next request is nobody's; an unknown id is no error; they go with their Reader."""
    first, second = Browser(client, cookies={"bmgr_session": "1" * 64}), Browser(client)
    second.cookies = {"bmgr_session": "2" * 64}
    for browser in (first, second):
        await begin(web, browser.cookies["bmgr_session"])
        assert (await browser.get("/who")).status_code == 303
    async with web.database.connection() as connection:
        await delete_session(connection, "1" * 64)
        await delete_session(connection, "9" * 64)
    assert (await first.get("/who")).status_code == 200
    assert (await second.get("/who")).status_code == 303
    async with web.database.transaction() as connection:
        assert await end_sessions(connection, "201") == 1
    assert (await second.get("/who")).status_code == 200
    await begin(web)
    await web.sql("DELETE FROM readers WHERE id = %s", web.reader_id)
    assert await holder(web, SESSION, web.clock.now) is None


async def test_a_rotation_leaves_browsers_alone(web: Web, token_key: Secret) -> None:
    """SES-009: a script's credential and a browser's session are two things."""
    await begin(web)
    async with web.database.transaction() as connection:
        await rotate_credential(connection, "201", token_key)
    assert await holder(web, SESSION, web.clock.now) == "201"


async def test_a_row_of_the_earlier_deployment_goes_on_working(web: Web, client: httpx.AsyncClient) -> None:
    """SES-001, SES-002: ids stand in clear, and the cookie is the id verbatim."""
    await web.sql(
        "INSERT INTO sessions (id, reader_id, expires_at) VALUES (%s, %s, to_timestamp(%s))",
        SESSION,
        web.other_id,
        web.clock.now / 1_000 + 60,
    )
    response = await Browser(client, cookies={"bmgr_session": SESSION}).get("/who")
    assert response.headers["Location"] == f"/{web.other_id}-202-False"


@pytest.mark.parametrize("value", ["", "abc", "AB" * 32, SESSION + "0", "%00" * 22, f'"{SESSION[:62]}"', "\xe9" * 64])
async def test_a_cookie_that_is_no_id_is_no_session(web: Web, client: httpx.AsyncClient, value: str) -> None:
    """SES-005: it never gets as far as the database."""
    await begin(web)
    browser = Browser(client, headers={"Cookie": f"bmgr_session={value}".encode("latin-1")})  # type: ignore[dict-item]
    assert (await browser.get("/who")).status_code == 200


async def test_a_route_without_a_session(web: Web, client: httpx.AsyncClient) -> None:
    """SES-026: a page shows how to sign in; a fragment is 401, in words for htmx, as a page for a form."""
    browser = Browser(client)
    page = await browser.get("/")
    assert (page.status_code, (await browser.get("/who")).content) == (200, page.content)
    assert (await browser.get("/login")).content == page.content
    part = await browser.ask("POST", "/ui/who/asura:one", {"HX-Request": "true"})
    assert (part.status_code, part.text) == (401, "your session has ended")
    assert part.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert "WWW-Authenticate" not in part.headers
    form = await browser.ask("POST", "/ui/who/asura:one")
    assert form.status_code == 401
    assert "Nothing was saved." in form.text


async def test_the_owner_is_known_by_the_settings(web: Web, client: httpx.AsyncClient, owner_discord_id: str) -> None:
    """TOK-004: nobody else is the owner."""
    ((owner_id,),) = await web.sql("SELECT id FROM readers WHERE discord_id = %s", owner_discord_id)
    await begin(web, reader_id=owner_id)
    response = await Browser(client, cookies={"bmgr_session": SESSION}).get("/who")
    assert response.headers["Location"] == f"/{owner_id}-{owner_discord_id}-True"


@pytest.mark.parametrize(
    ("trusted", "forwarded", "secure"),
    [
        ("127.0.0.0/8", "https", True),
        ("127.0.0.0/8", "http", False),
        ("127.0.0.0/8", "HTTPS", False),
        ("127.0.0.0/8", "https, http", False),
        ("127.0.0.0/8", "", False),
        ("127.0.0.0/8", None, False),
        ("10.0.0.0/8", "https", False),
    ],
)
async def test_the_cookie_is_secure_behind_tls(web: Web, trusted: str, forwarded: str | None, secure: bool) -> None:
    """SES-003: the word of a proxy counts where it is trusted, and says exactly this; the same for logging out."""
    app = create_app(replace(web.context, trusted_proxies=(ip_network(trusted),)))
    headers = {} if forwarded is None else {"X-Forwarded-Proto": forwarded}
    async with browsing(app) as client:
        browser = Browser(client, headers=headers)
        signed_in = await browser.get(await link(web))
        signed_out = await browser.ask("POST", "/logout")
    for response in (signed_in, signed_out):
        _, attributes = cookies_of(response)["bmgr_session"]
        assert ("secure" in attributes) is secure
        assert "domain" not in attributes


async def test_logging_out_deletes_the_row_and_the_cookie(web: Web, client: httpx.AsyncClient) -> None:
    """SES-004: empty, of negative age; without a session it is the same."""
    await begin(web)
    await begin(web, "2" * 64)
    browser = Browser(client, cookies={"bmgr_session": SESSION})
    for _ in range(2):
        response = await browser.ask("POST", "/logout")
        assert (response.status_code, response.headers["Location"]) == (303, "/")
        value, attributes = cookies_of(response)["bmgr_session"]
        assert value == ""
        assert attributes == {"max-age": "-1", "path": "/", "httponly": "", "samesite": "Lax"}
        browser.cookies = {"bmgr_session": SESSION}
    assert await web.sql("SELECT id FROM sessions") == [("2" * 64,)]
    assert (await browser.get("/who")).status_code == 200


async def test_a_link_signs_in_once(web: Web, client: httpx.AsyncClient) -> None:
    """SES-027: 303, the cookie, and then 400; unknown and misshapen ones as well."""
    target = await link(web)
    browser = Browser(client)
    response = await browser.get(target)
    assert (response.status_code, response.headers["Location"]) == (303, "/")
    value, attributes = cookies_of(response)["bmgr_session"]
    assert attributes == {"max-age": "5184000", "path": "/", "httponly": "", "samesite": "Lax"}
    assert (await browser.get("/who")).headers["Location"] == f"/{web.reader_id}-201-False"
    assert await holder(web, value, web.clock.now) == "201"
    other = Browser(client)
    for used in (target, f"/sign-in/{'0' * 64}", f"/sign-in/{LINK.upper()}", "/sign-in/x", "/sign-in/%00"):
        refused = await other.get(used)
        assert refused.status_code == 400
        assert "already used" in refused.text
        assert not cookies_of(refused)


async def test_a_link_is_good_for_ten_minutes(web: Web, client: httpx.AsyncClient) -> None:
    """SES-027: and not a moment longer."""
    target = await link(web)
    web.clock.now += 10 * MINUTE - 1
    assert (await Browser(client).get(target)).status_code == 303
    target = await link(web)
    web.clock.now += 10 * MINUTE
    assert (await Browser(client).get(target)).status_code == 400
    assert await web.sql("SELECT count(*) FROM sign_in_links") == [(0,)]


async def test_a_link_is_followed_by_one_of_many(web: Web, client: httpx.AsyncClient) -> None:
    """SES-027: who is later by a moment is too late; who only looks ahead uses nothing up."""
    target = await link(web)
    assert (await Browser(client).ask("HEAD", target)).status_code == 200
    statuses: list[int] = []

    async def follow() -> None:
        statuses.append((await Browser(client).get(target)).status_code)

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(follow)
    assert sorted(statuses) == [303, 400, 400, 400, 400]


async def test_a_failing_store_leaves_the_link_as_it_was(
    web: Web, client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    """SES-027: consumed by the session that it gives, and by nothing else; the log shows no row."""
    target = await link(web)
    await web.sql("ALTER TABLE sessions ADD CONSTRAINT never CHECK (id = '')")
    assert (await Browser(client).get(target)).status_code == 500
    await web.sql("ALTER TABLE sessions DROP CONSTRAINT never")
    assert "Failing row" not in caplog.text
    assert (await Browser(client).get(target)).status_code == 303


async def test_links_have_a_bound_and_go_with_their_reader(web: Web) -> None:
    """SES-027: 256 live ones at most, kept as a digest."""
    for number in range(MOST_LIVE + 4):
        await link(web, f"{number:064x}")
    assert await web.sql("SELECT count(*) FROM sign_in_links") == [(MOST_LIVE,)]
    assert await web.sql("SELECT min(length(token_sha256)), max(length(token_sha256)) FROM sign_in_links") == [(32, 32)]
    await web.sql("DELETE FROM readers WHERE id = %s", web.reader_id)
    assert await web.sql("SELECT count(*) FROM sign_in_links") == [(0,)]


async def test_a_sign_in_never_keeps_the_session_that_came_with_it(web: Web, client: httpx.AsyncClient) -> None:
    """SES-001, SES-007: fixation: the id is always a new one, the old row is deleted, an unknown one is not made."""
    await begin(web, reader_id=web.other_id)
    for planted in (SESSION, "7" * 64):
        browser = Browser(client, cookies={"bmgr_session": planted})
        await browser.get(await link(web))
        assert browser.cookies["bmgr_session"] != planted
        assert await holder(web, planted, web.clock.now) is None
        assert await holder(web, browser.cookies["bmgr_session"], web.clock.now) == "201"
