"""Signing in with Discord, through the real application and a stand-in for Discord, over real sockets."""

import hashlib
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
import trio

from bookmark_appliance import discord as discord_module
from bookmark_appliance.credentials import credential_hash, derive_credential
from bookmark_appliance.discord import DiscordSettings
from bookmark_appliance.secret import Secret
from bookmark_appliance.store.sign_in import MOST_CLIENTS, MOST_LIVE, add_state, lock_failures, write_failures
from bookmark_appliance.web import discord_sign_in as sign_in
from bookmark_appliance.web.app import create_app
from bookmark_appliance.web.context import WebContext
from tests.discord_stand_in import (
    CLIENT_ID,
    CLIENT_SECRET,
    GUILD_ID,
    DiscordStandIn,
    Fault,
    Person,
    answering,
    cut_off,
    discord_stand_in,
    endless,
    silent,
)
from tests.web.browsing import Browser, browsing, cookies_of
from tests.web.conftest import SetClock, Web

MEMBER = "3000000000000000001"
STRANGER = "3000000000000000002"
CALLBACK = "/auth/discord/callback"
REDIRECT_URI = f"https://read.example{CALLBACK}"
MINUTE = 60_000
ROLE = "5550000000000000001"


@dataclass
class SigningIn:
    """The application with Discord configured."""

    web: Web
    discord: DiscordStandIn
    context: WebContext
    client: httpx.AsyncClient

    @property
    def clock(self) -> SetClock:
        """What a test sets the time on."""
        return self.web.clock

    def browser(self, **headers: str) -> Browser:
        """A new one."""
        return Browser(self.client, headers={name.replace("_", "-"): value for name, value in headers.items()})

    async def callback(self, browser: Browser, discord_id: str) -> str:
        """Start; the target that this person comes back to."""
        start = await browser.get("/auth/discord")
        assert start.status_code == 303
        return self.discord.approve(start.headers["Location"], discord_id).removeprefix("https://read.example")

    async def sign_in(self, browser: Browser, discord_id: str = MEMBER) -> httpx.Response:
        """There and back."""
        return await browser.get(await self.callback(browser, discord_id))

    async def fail(self, browser: Browser) -> httpx.Response:
        """One attempt that can't succeed."""
        return await browser.get(f"{CALLBACK}?code=x&state=y")

    async def count(self, table: str) -> object:
        """How many rows it has."""
        return (await self.web.sql(f"SELECT count(*) FROM {table}"))[0][0]

    async def failures(self) -> object:
        """How many failures are remembered."""
        return (await self.web.sql("SELECT coalesce(sum(cardinality(failed_at)), 0) FROM sign_in_failures"))[0][0]


def discord_of(stand_in: DiscordStandIn, required_role: str | None = None) -> DiscordSettings:
    """The settings that lead to the stand-in."""
    secret = Secret(CLIENT_SECRET)
    return DiscordSettings(CLIENT_ID, secret, GUILD_ID, REDIRECT_URI, required_role, stand_in.api_base)


@pytest.fixture
async def signing_in(web: Web) -> AsyncIterator[SigningIn]:
    """A member, a stranger, and the application."""
    async with discord_stand_in() as stand_in:
        stand_in.people |= {MEMBER: Person(), STRANGER: Person(member=False)}
        context = replace(web.context, discord=discord_of(stand_in))
        async with browsing(create_app(context)) as client:
            yield SigningIn(web, stand_in, context, client)


def is_sign_in_page(response: httpx.Response) -> bool:
    """Whether it shows the button."""
    return 'href="/auth/discord"' in response.text and response.headers["Content-Type"] == "text/html; charset=utf-8"


async def test_a_start_goes_to_discord_with_a_state(signing_in: SigningIn) -> None:
    """SES-014, SES-015: 303, every parameter, and a cookie that only this route gets back."""
    response = await signing_in.browser().get("/auth/discord")
    assert response.status_code == 303
    location = urlsplit(response.headers["Location"])
    assert f"{location.scheme}://{location.netloc}{location.path}" == f"{signing_in.discord.api_base}/oauth2/authorize"
    query = {name: values for name, values in parse_qs(location.query).items() if name != "state"}
    assert query == {
        "client_id": [CLIENT_ID],
        "redirect_uri": [REDIRECT_URI],
        "response_type": ["code"],
        "scope": ["identify guilds.members.read"],
    }
    (state,) = parse_qs(location.query)["state"]
    assert len(bytes.fromhex(state)) == 32
    value, attributes = cookies_of(response)["bmgr_sign_in"]
    assert value != state
    assert attributes == {"max-age": "600", "path": "/auth/discord", "httponly": "", "samesite": "Lax"}
    stored = await signing_in.web.sql("SELECT state_sha256, browser_sha256 FROM oauth_states")
    assert stored == [(hashlib.sha256(state.encode()).digest(), hashlib.sha256(value.encode()).digest())]


async def test_a_member_gets_in_and_is_the_same_reader_the_next_time(signing_in: SigningIn, token_key: Secret) -> None:
    """SES-023, SES-001, SES-002, TOK-009: the epoch-0 hash at first sight, which a later sign-in leaves alone."""
    browser = signing_in.browser()
    response = await signing_in.sign_in(browser)
    assert (response.status_code, response.headers["Location"]) == (303, "/")
    value, attributes = cookies_of(response)["bmgr_session"]
    assert len(bytes.fromhex(value)) == 32
    assert value == value.lower()
    assert attributes == {"max-age": "5184000", "path": "/", "httponly": "", "samesite": "Lax"}
    assert set(browser.cookies) == {"bmgr_session"}
    assert not is_sign_in_page(await browser.get("/"))
    reader = await signing_in.web.sql("SELECT id, token_sha256, token_epoch FROM readers WHERE discord_id = %s", MEMBER)
    assert [row[1:] for row in reader] == [(credential_hash(derive_credential(token_key, MEMBER, 0)), 0)]
    sessions = "SELECT id, reader_id, (extract(epoch FROM expires_at) * 1000)::bigint FROM sessions ORDER BY expires_at"
    assert await signing_in.web.sql(sessions) == [(value, reader[0][0], signing_in.clock.now + 5_184_000_000)]

    await signing_in.web.sql("UPDATE readers SET token_sha256 = '\\x01', token_epoch = 3 WHERE discord_id = %s", MEMBER)
    signing_in.clock.now += 1
    other = signing_in.browser()
    assert (await signing_in.sign_in(other)).status_code == 303
    again = await signing_in.web.sql("SELECT id, token_sha256, token_epoch FROM readers WHERE discord_id = %s", MEMBER)
    assert again == [(reader[0][0], b"\x01", 3)]
    assert browser.cookies["bmgr_session"] != other.cookies["bmgr_session"]
    assert not is_sign_in_page(await browser.get("/"))


async def test_what_discord_is_asked(signing_in: SigningIn) -> None:
    """SES-019, SES-020, SES-021: three calls with the right words, the user's own membership among them."""
    await signing_in.sign_in(signing_in.browser())
    token, identity, membership = signing_in.discord.calls
    assert [call.name for call in signing_in.discord.calls] == ["token", "identity", "membership"]
    assert token.headers["content-type"] == "application/x-www-form-urlencoded"
    assert token.form == {
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "grant_type": "authorization_code",
        "code": signing_in.discord.handed_out[0],
        "redirect_uri": REDIRECT_URI,
    }
    for call in (identity, membership):
        assert call.headers["authorization"] == f"Bearer {signing_in.discord.handed_out[1]}"


async def test_a_state_is_good_once_in_time_and_in_its_own_browser(signing_in: SigningIn) -> None:
    """SES-015, SES-018: used, from another browser, without the cookie, expired, unknown: 400, and consumed."""
    browser = signing_in.browser()
    used = await signing_in.callback(browser, MEMBER)
    cookies = dict(browser.cookies)
    assert (await browser.get(used)).status_code == 303
    browser.cookies = cookies
    assert (await browser.get(used)).status_code == 400

    for thief in (Browser(signing_in.client), Browser(signing_in.client, cookies={"bmgr_sign_in": "0" * 64})):
        target = await signing_in.callback(browser, MEMBER)
        refused = await thief.get(target)
        assert refused.status_code == 400
        assert is_sign_in_page(refused)
        assert "bmgr_session" not in thief.cookies
        assert (await browser.get(target)).status_code == 400  # it was consumed

    late = await signing_in.callback(browser, MEMBER)
    signing_in.clock.now += 10 * MINUTE
    assert (await browser.get(late)).status_code == 400
    in_time = await signing_in.callback(browser, MEMBER)
    signing_in.clock.now += 10 * MINUTE - 1
    assert (await browser.get(in_time)).status_code == 303
    assert (await browser.get(f"{CALLBACK}?code=x&state={'0' * 64}")).status_code == 400
    assert len(signing_in.discord.calls) == 6


async def test_two_tabs_of_one_browser_may_sign_in_at_once(signing_in: SigningIn) -> None:
    """SES-015: a second start does not end the first."""
    browser = signing_in.browser()
    first = await signing_in.callback(browser, MEMBER)
    second = await signing_in.callback(browser, MEMBER)
    cookies = dict(browser.cookies)
    assert (await browser.get(first)).status_code == 303
    browser.cookies = cookies
    assert (await browser.get(second)).status_code == 303


async def test_a_callback_twice_at_once_lets_in_once(signing_in: SigningIn) -> None:
    """SES-015: single use, also for those who hurry."""
    browser = signing_in.browser()
    target = await signing_in.callback(browser, MEMBER)
    statuses: list[int] = []

    async def come_back() -> None:
        again = Browser(signing_in.client, cookies=dict(browser.cookies))
        statuses.append((await again.get(target)).status_code)

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(come_back)
    assert sorted(statuses) == [303, 400, 400, 400, 400, 400]


async def test_at_most_256_states_live_however_many_start_at_once(signing_in: SigningIn) -> None:
    """SES-016: the bound is exact, the one nearest expiry goes first, and the expired go before any."""
    web, now = signing_in.web, signing_in.clock.now
    await web.sql(
        """
        INSERT INTO oauth_states
        SELECT sha256(n::text::bytea), '', %s + n
        FROM generate_series(1, 250) AS n
        """,
        now + 5 * MINUTE,
    )

    async def start() -> None:
        assert (await signing_in.browser().get("/auth/discord")).status_code == 303

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(start)
    assert await signing_in.count("oauth_states") == MOST_LIVE == 256
    nearest = await web.sql("SELECT min(expires_at) FROM oauth_states")
    assert nearest == [(now + 5 * MINUTE + 15,)]
    signing_in.clock.now += 6 * MINUTE
    await start()
    assert await signing_in.count("oauth_states") == 21


async def test_who_cancels_is_told_so_and_loses_nothing(signing_in: SigningIn) -> None:
    """SES-017: 400, the state is consumed, no failure; nothing of what came back is shown."""
    browser = signing_in.browser()
    target = await signing_in.callback(browser, MEMBER)
    state = parse_qs(urlsplit(target).query)["state"][0]
    told = {"error": "access_denied", "error_description": "<b>no</b> thanks", "state": state}
    response = await browser.get(f"{CALLBACK}?{urlencode(told)}")
    assert response.status_code == 400
    assert sign_in.CANCELLED in response.text
    assert "access_denied" not in response.text
    assert "thanks" not in response.text
    assert (await browser.get(target)).status_code == 400
    assert await signing_in.failures() == 1  # of the second attempt
    assert not signing_in.discord.calls


@pytest.mark.parametrize("query", ["", "code=", "state=", "code=abc", "code=abc&state=%00", "code=a&state=" + "F" * 64])
async def test_a_callback_without_what_it_needs_is_a_failure(signing_in: SigningIn, query: str) -> None:
    """SES-018: 400 and counted."""
    response = await signing_in.browser().get(f"{CALLBACK}?{query}")
    assert response.status_code == 400
    assert sign_in.INVALID in response.text
    assert await signing_in.failures() == 1


async def test_an_empty_code_consumes_the_state(signing_in: SigningIn) -> None:
    """SES-018: either way."""
    browser = signing_in.browser()
    target = await signing_in.callback(browser, MEMBER)
    state = parse_qs(urlsplit(target).query)["state"][0]
    assert (await browser.get(f"{CALLBACK}?code=&state={state}")).status_code == 400
    assert await signing_in.count("oauth_states") == 0


SECRETIVE = "Discord says <script>secret-of-discord</script>"

BAD_DAYS = [
    ("token", answering(500, {"error": SECRETIVE})),
    ("token", answering(400, {"error": SECRETIVE})),
    ("token", answering(201, {"access_token": "abc"})),
    ("token", answering(200, {"access_token": ""})),
    ("token", answering(200, {"access_token": None})),
    ("token", answering(200, {"access_token": "a\r\nX-Evil: 1"})),
    ("token", answering(200, {"access_token": "é"})),
    ("token", answering(200, SECRETIVE)),
    ("token", answering(302, "", location="http://127.0.0.1:1/elsewhere")),
    ("token", cut_off),
    ("token", endless),
    ("identity", answering(200, "[" * 100_000)),
    ("identity", answering(500)),
    ("identity", answering(401, {"message": SECRETIVE})),
    ("identity", answering(200, {"username": SECRETIVE})),
    ("identity", answering(200, {"id": ""})),
    ("identity", answering(200, {"id": 3000000000000000001})),
    ("identity", answering(200, {"id": "1\n2"})),
    ("identity", answering(200, {"id": "\u0661\u0662"})),
    ("identity", answering(200, b'{"id": "\xff"}')),
    ("identity", endless),
    ("membership", answering(500)),
    ("membership", answering(401)),
    ("membership", answering(429, {"message": SECRETIVE})),
    ("membership", answering(200, [])),
    ("membership", answering(200, {"roles": [1]})),
    ("membership", answering(200, {"nick": "x" * 1_048_576})),
    ("membership", cut_off),
]


async def test_discord_on_a_bad_day(signing_in: SigningIn, caplog: pytest.LogCaptureFixture) -> None:
    """SES-019, SES-020, SES-021, SES-024: 502 and one text for all of it, counted, nobody made, nothing repeated."""
    before = await signing_in.count("readers")
    for number, (name, fault) in enumerate(BAD_DAYS):
        signing_in.discord.faults = {name: fault}
        browser = signing_in.browser(X_Forwarded_For=f"203.0.113.{number}")
        response = await signing_in.sign_in(browser)
        assert response.status_code == 502, (number, name)
        assert sign_in.UNAVAILABLE in response.text
        assert is_sign_in_page(response)
        assert "secret-of-discord" not in response.text
        assert "bmgr_session" not in browser.cookies
    assert await signing_in.failures() == len(BAD_DAYS)
    assert await signing_in.count("readers") == before
    assert "secret-of-discord" not in caplog.text
    assert not any(secret in caplog.text for secret in (*signing_in.discord.handed_out, CLIENT_SECRET))
    assert "token exchange: status 500" in caplog.text


async def test_a_silent_discord_is_given_up(signing_in: SigningIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """SES-024: each call has its time, 15 s; the page says the same as ever."""
    assert discord_module.CALL_SECONDS == 15
    monkeypatch.setattr(discord_module, "CALL_SECONDS", 0.2)
    for name in ("token", "identity", "membership"):
        signing_in.discord.faults = {name: silent}
        with trio.fail_after(10):
            assert (await signing_in.sign_in(signing_in.browser())).status_code == 502


async def test_a_discord_that_is_gone(signing_in: SigningIn) -> None:
    """SES-019: a connection that can't be made is an outage too."""
    discord = replace(discord_of(signing_in.discord), api_base="http://127.0.0.1:1/api")
    async with browsing(create_app(replace(signing_in.context, discord=discord))) as client:
        browser = Browser(client)
        start = await browser.get("/auth/discord")
        target = signing_in.discord.approve(start.headers["Location"], MEMBER)
        assert (await browser.get(target.removeprefix("https://read.example"))).status_code == 502


@pytest.mark.parametrize("fault", [None, answering(403, {"message": "Missing Access"}), answering(404)])
async def test_a_stranger_leaves_nothing_behind(signing_in: SigningIn, fault: Fault | None) -> None:
    """SES-021, SES-022: 403, no Reader, no session, counted."""
    before = await signing_in.count("readers")
    signing_in.discord.faults = {} if fault is None else {"membership": fault}
    browser = signing_in.browser()
    response = await signing_in.sign_in(browser, MEMBER if fault else STRANGER)
    assert response.status_code == 403
    assert sign_in.REFUSED in response.text
    assert "bmgr_session" not in browser.cookies
    assert await signing_in.count("readers") == before
    assert await signing_in.count("sessions") == 0
    assert await signing_in.failures() == 1


async def test_no_member_and_no_role_are_refused_alike(signing_in: SigningIn) -> None:
    """SES-022: the two answers are the same to the byte, and name neither guild nor role; who has the role gets in."""
    stand_in = signing_in.discord
    stand_in.people["3000000000000000003"] = Person(roles=(ROLE, "other"))
    stand_in.people[MEMBER] = Person(roles=("other",))
    context = replace(signing_in.context, discord=discord_of(stand_in, ROLE))
    async with browsing(create_app(context)) as client:
        with_role = replace(signing_in, client=client)
        stranger = await with_role.sign_in(with_role.browser(), STRANGER)
        roleless = await with_role.sign_in(with_role.browser(), MEMBER)
        assert stranger.status_code == roleless.status_code == 403
        assert stranger.content == roleless.content
        named = {"set-cookie", "date", "x-request-id"}
        for name in stranger.headers.keys() | roleless.headers.keys():
            assert name in named or stranger.headers[name] == roleless.headers[name]
        assert not any(word in stranger.text for word in (GUILD_ID, ROLE, "guild", "Guild", STRANGER, MEMBER))
        assert "role" not in sign_in.REFUSED
        assert (await with_role.sign_in(with_role.browser(), "3000000000000000003")).status_code == 303


async def test_ten_failures_block_an_address_and_no_other(signing_in: SigningIn) -> None:
    """SES-011, SES-012: the eleventh is 429, before anything else, until the oldest ages out."""
    browser = signing_in.browser(X_Forwarded_For="203.0.113.5")
    other = signing_in.browser(X_Forwarded_For="evil, 203.0.113.5, 203.0.113.6")
    target = await signing_in.callback(browser, MEMBER)
    start = signing_in.clock.now
    for _ in range(10):
        assert (await signing_in.fail(browser)).status_code == 400
        signing_in.clock.now += 30_000
    blocked = await browser.get(target)
    assert blocked.status_code == 429
    assert blocked.headers["Retry-After"] == str(15 * 60 + 1)
    assert "Try again in 15 minutes." in blocked.text
    assert is_sign_in_page(blocked)
    assert (await browser.get(f"{CALLBACK}?error=access_denied")).status_code == 429
    assert (await signing_in.sign_in(other)).status_code == 303

    signing_in.clock.now = start + 20 * MINUTE - 500
    soon = await browser.get(f"{CALLBACK}?error=access_denied")
    assert (soon.status_code, soon.headers["Retry-After"]) == (429, "1")
    assert "Try again in a minute." in soon.text
    signing_in.clock.now = start + 20 * MINUTE
    assert (await signing_in.fail(browser)).status_code == 400
    assert (await signing_in.fail(browser)).status_code == 429


async def test_a_blocked_attempt_uses_no_state_up(signing_in: SigningIn) -> None:
    """SES-012: before anything else in the callback."""
    browser = signing_in.browser()
    for _ in range(10):
        await signing_in.fail(browser)
    target = await signing_in.callback(browser, MEMBER)
    assert (await browser.get(target)).status_code == 429
    assert await signing_in.count("oauth_states") == 1
    assert not signing_in.discord.calls


async def test_no_more_than_ten_get_through_at_once(signing_in: SigningIn) -> None:
    """SES-011: an attempt counts from its start, so thirty of one moment are ten, of one household too."""
    statuses: list[int] = []

    async def attempt(number: int) -> None:
        browser = signing_in.browser(X_Forwarded_For=f"2001:db8:7:7::{number:x}")
        statuses.append((await signing_in.fail(browser)).status_code)

    async with trio.open_nursery() as nursery:
        for number in range(30):
            nursery.start_soon(attempt, number)
    assert sorted(statuses) == [400] * 10 + [429] * 20


async def test_a_header_from_outside_moves_nobody_to_another_address(signing_in: SigningIn, web: Web) -> None:
    """SES-010: without a proxy that is trusted the socket's peer counts, whatever the client writes."""
    async with browsing(create_app(replace(signing_in.context, trusted_proxies=()))) as client:
        for number in range(10):
            browser = Browser(client, headers={"X-Forwarded-For": f"203.0.113.{number}"})
            assert (await signing_in.fail(browser)).status_code == 400
        assert (await signing_in.fail(Browser(client))).status_code == 429
    assert await web.sql("SELECT client FROM sign_in_failures") == [("127.0.0.1",)]


async def test_a_success_forgets_the_failures_of_its_address_alone(signing_in: SigningIn) -> None:
    """SES-013: the other address stays where it was."""
    browser, other = signing_in.browser(), signing_in.browser(X_Forwarded_For="203.0.113.9")
    for _ in range(9):
        await signing_in.fail(browser)
        await signing_in.fail(other)
    assert (await signing_in.sign_in(browser)).status_code == 303
    assert await signing_in.failures() == 9
    for _ in range(10):
        assert (await signing_in.fail(browser)).status_code == 400


async def test_what_is_remembered_of_failures_has_a_bound(signing_in: SigningIn) -> None:
    """SES-011: ten of an address, ten thousand addresses, and none for longer than it counts."""
    web, now = signing_in.web, signing_in.clock.now
    await web.sql(
        """
        INSERT INTO sign_in_failures
        SELECT 'client ' || n, ARRAY[%(now)s - n], %(now)s - n
        FROM generate_series(1, 10100) AS n
        """.replace("%(now)s", str(now))
    )
    for _ in range(15):
        async with web.database.transaction() as connection:
            known = await lock_failures(connection, "ours")
            await write_failures(connection, "ours", [now, *known][:10], now - 20 * MINUTE)
    assert await signing_in.count("sign_in_failures") == MOST_CLIENTS
    assert await web.sql("SELECT cardinality(failed_at) FROM sign_in_failures WHERE client = 'ours'") == [(10,)]
    signing_in.clock.now += 21 * MINUTE
    await signing_in.fail(signing_in.browser())
    assert await signing_in.count("sign_in_failures") == 1


async def test_leaving_the_guild_ends_no_session(signing_in: SigningIn) -> None:
    """SES-025: membership is looked at when someone signs in, and only then."""
    browser = signing_in.browser()
    await signing_in.sign_in(browser)
    signing_in.discord.people[MEMBER] = Person(member=False)
    assert not is_sign_in_page(await browser.get("/"))
    assert len(signing_in.discord.calls) == 3
    assert (await signing_in.sign_in(signing_in.browser())).status_code == 403
    assert not is_sign_in_page(await browser.get("/"))


async def test_a_store_that_fails_is_ours_to_answer_for(
    signing_in: SigningIn, caplog: pytest.LogCaptureFixture
) -> None:
    """SES-013, SES-023, SES-024: 500 in plain text, neither Reader nor session, no failure counted; the server's
    error shows the row, and the log does not."""
    web = signing_in.web
    await web.sql("ALTER TABLE sessions ADD CONSTRAINT never CHECK (id = '')")
    await signing_in.fail(signing_in.browser())
    response = await signing_in.sign_in(signing_in.browser())
    assert (response.status_code, response.text) == (500, "internal error")
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert await web.sql("SELECT id FROM readers WHERE discord_id = %s", MEMBER) == []
    assert await signing_in.failures() == 1
    assert "a sign-in could not be written: CheckViolation" in caplog.text
    assert not re.search("[0-9a-f]{64}|Failing row", caplog.text)


async def test_states_and_failures_live_through_a_restart(signing_in: SigningIn) -> None:
    """SES-011, SES-015, SES-023: another process goes on where this one was."""
    browser = signing_in.browser()
    target = await signing_in.callback(browser, MEMBER)
    for _ in range(9):
        await signing_in.fail(browser)
    async with browsing(create_app(signing_in.context)) as client:
        later = Browser(client, cookies=browser.cookies)
        assert (await later.get(target)).status_code == 303
        for _ in range(10):
            assert (await signing_in.fail(later)).status_code == 400
    assert (await signing_in.fail(browser)).status_code == 429
    assert not is_sign_in_page(await browser.get("/"))


async def test_no_address_leads_anywhere_but_home_and_to_discord(signing_in: SigningIn) -> None:
    """SES-014, SES-023, CFG-011: whatever a request says, a Location is one of ours; no line of it becomes a header."""
    evil = "//evil.example/%0d%0aSet-Cookie:%20a=b"
    for path in ("/auth/discord", "/login", "/"):
        response = await signing_in.browser().get(f"{path}?next={evil}&redirect_uri={evil}&state={evil}")
        location = response.headers.get("Location", signing_in.discord.api_base)
        assert location.startswith(signing_in.discord.api_base)
        assert "evil" not in location
    browser = signing_in.browser(Host="evil.example", X_Forwarded_Host="evil.example")
    start = await browser.get("/auth/discord")
    assert start.headers["Location"].startswith(signing_in.discord.api_base)
    assert parse_qs(urlsplit(start.headers["Location"]).query)["redirect_uri"] == [REDIRECT_URI]
    target = signing_in.discord.approve(start.headers["Location"], MEMBER).removeprefix("https://read.example")
    response = await browser.get(f"{target}&next={evil}&redirect={evil}")
    assert response.headers["Location"] == "/"
    assert set(cookies_of(response)) == {"bmgr_session", "bmgr_sign_in"}
    for path in ("//evil.example", "/%2f%2fevil.example", "/login//evil.example", "/\\evil.example"):
        response = await signing_in.browser().get(f"http://{signing_in.client.base_url.netloc.decode()}{path}")
        assert "Location" not in response.headers, path
        assert response.status_code == 404


async def test_the_other_host_sends_on_to_the_pages(signing_in: SigningIn) -> None:
    """CFG-011: cookies are of one host, so the sign-in goes on where the pages live; no other host is sent on."""
    browser = signing_in.browser()
    browser.host = "books.example"
    response = await browser.get("/auth/discord")
    assert (response.status_code, response.headers["Location"]) == (303, "https://read.example/auth/discord")
    assert not cookies_of(response)
    browser.host = "192.0.2.7:8080"
    assert (await browser.get("/auth/discord")).headers["Location"].startswith(signing_in.discord.api_base)


async def test_a_way_back_to_another_host_is_told(signing_in: SigningIn, caplog: pytest.LogCaptureFixture) -> None:
    """CFG-011: its cookie would stay behind, so nobody could get in; the log says so when the service starts."""
    create_app(signing_in.context)
    assert "DISCORD_REDIRECT_URI" not in caplog.text
    create_app(replace(signing_in.context, web_base_url="https://books.example"))
    assert "DISCORD_REDIRECT_URI is not at the host of WEB_BASE_URL" in caplog.text


async def test_one_host_for_everything_sends_nobody_in_circles(signing_in: SigningIn) -> None:
    """CFG-011: the usual deployment, where the pages live at the address of the API."""
    async with browsing(create_app(replace(signing_in.context, web_base_url="https://books.example"))) as client:
        start = await Browser(client, host="books.example").get("/auth/discord")
    assert start.headers["Location"].startswith(signing_in.discord.api_base)


async def test_asking_for_the_head_alone_does_nothing(signing_in: SigningIn) -> None:
    """SES-015: what looks ahead consumes no state."""
    browser = signing_in.browser()
    target = await signing_in.callback(browser, MEMBER)
    for path in ("/auth/discord", target):
        response = await browser.ask("HEAD", path)
        assert (response.status_code, response.content) == (200, b"")
        assert not cookies_of(response)
    assert (await browser.get(target)).status_code == 303


async def test_without_discord_there_is_no_way_over_it(web: Web) -> None:
    """SES-026, SES-027: local mode has no button, and says in a sentence what to do instead."""
    async with browsing(web.app) as client:
        browser = Browser(client)
        page = await browser.get("/")
        assert page.status_code == 200
        assert "sign-in-link" in page.text
        assert "/auth/discord" not in page.text
        for path in ("/auth/discord", CALLBACK):
            assert (await browser.get(path)).status_code == 404


async def test_states_at_once_by_the_store_alone(web: Web) -> None:
    """SES-016: twelve at a time, three hundred in all, and never more than may live."""
    limit = trio.CapacityLimiter(8)
    most = 0

    async def add(number: int) -> None:
        nonlocal most
        async with limit, web.database.transaction() as connection:
            await add_state(connection, Secret(f"{number:064x}"), Secret("b"), web.clock.now + number)
        most = max(most, (await web.sql("SELECT count(*) FROM oauth_states"))[0][0])

    async with trio.open_nursery() as nursery:
        for number in range(300):
            nursery.start_soon(partial(add, number))
    assert most == 256
