"""A stand-in for the part of Discord that a sign-in talks to, on loopback: people, a guild, roles, and bad days.

async with discord_stand_in() as discord:
    discord.people["2001"] = Person(roles=("readers",))
    discord.faults["identity"] = answering(500)

`python -m tests.discord_stand_in --redirect-uri URI [--env-file PATH]` serves until told to stop.
"""

import argparse
import html
import json
import secrets
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import h11
import trio

CLIENT_ID = "424242424242424242"
CLIENT_SECRET = "the-stand-in-keeps-this-secret"
GUILD_ID = "777777777777777777"
BASE = "/api/v10"

Fault = Callable[[trio.SocketStream], Awaitable[None]]


@dataclass(frozen=True)
class Person:
    """Someone with an account. `member` is of the guild."""

    member: bool = True
    roles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Call:
    """A call that was made: `token`, `identity` or `membership`."""

    name: str
    headers: Mapping[str, str]
    form: Mapping[str, str]


@dataclass
class DiscordStandIn:
    """What it knows, what it was asked, and how it misbehaves, by the name of a call."""

    port: int
    people: dict[str, Person] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    codes: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Code -> (Discord id, redirect address)."""
    tokens: dict[str, str] = field(default_factory=dict)
    handed_out: list[str] = field(default_factory=list)
    """Every code and token there ever was."""

    @property
    def api_base(self) -> str:
        """DISCORD_API_BASE."""
        return f"http://127.0.0.1:{self.port}{BASE}"

    def settings(self, redirect_uri: str) -> dict[str, str]:
        """The settings of an appliance that signs people in here."""
        return {
            "DISCORD_CLIENT_ID": CLIENT_ID,
            "DISCORD_CLIENT_SECRET": CLIENT_SECRET,
            "DISCORD_GUILD_ID": GUILD_ID,
            "DISCORD_REDIRECT_URI": redirect_uri,
            "DISCORD_API_BASE": self.api_base,
        }

    def approve(self, authorize_address: str, discord_id: str) -> str:
        """What this person's browser is sent on to, once they have agreed to what the address asks for."""
        asked = _query(authorize_address)
        assert asked["client_id"] == CLIENT_ID
        code = self._new_secret()
        self.codes[code] = (discord_id, asked["redirect_uri"])
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def _new_secret(self) -> str:
        secret = secrets.token_urlsafe(24)
        self.handed_out.append(secret)
        return secret

    async def serve(self, stream: trio.SocketStream) -> None:
        """One request and its answer."""
        try:
            async with stream:
                request, body = await _read(stream)
                await self._answer(stream, request, body)
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError):
            pass  # whoever asked has gone

    async def _answer(self, stream: trio.SocketStream, request: h11.Request, body: bytes) -> None:
        target = request.target.decode()
        path = urlsplit(target).path.removeprefix(BASE)
        headers = {name.decode(): value.decode() for name, value in request.headers}
        if path == "/oauth2/authorize":
            await self._authorize(stream, target)
            return
        name = {
            ("POST", "/oauth2/token"): "token",
            ("GET", "/users/@me"): "identity",
            ("GET", f"/users/@me/guilds/{GUILD_ID}/member"): "membership",
        }.get((request.method.decode(), path))
        if name is None:
            await answering(404, {"message": "404: Not Found", "code": 0})(stream)
            return
        form = {key: values[-1] for key, values in parse_qs(body.decode()).items()}
        self.calls.append(Call(name, headers, form))
        fault = self.faults.get(name)
        await (fault or self._good_answer(name, headers, form))(stream)

    async def _authorize(self, stream: trio.SocketStream, target: str) -> None:
        """The page on which a person agrees; `as=ID` and `as=` (no, thanks) are its links."""
        asked = _query(target)
        if "as" not in asked:
            names = [("", "Cancel"), *((person, f"Continue as {person}") for person in self.people)]
            links = [f'<p><a href="{html.escape(f"{target}&as={person}")}">{word}</a>' for person, word in names]
            await answering(200, "<!doctype html><h1>Not Discord</h1>" + "".join(links), "text/html")(stream)
        elif asked["as"]:
            await answering(302, "", location=self.approve(target, asked["as"]))(stream)
        else:
            back = urlencode({"error": "access_denied", "state": asked["state"]})
            await answering(302, "", location=f"{asked['redirect_uri']}?{back}")(stream)

    def _good_answer(self, name: str, headers: Mapping[str, str], form: Mapping[str, str]) -> Fault:
        if name == "token":
            return self._exchange(form)
        discord_id = self.tokens.get(headers.get("authorization", "").removeprefix("Bearer "))
        if discord_id is None:
            return answering(401, {"message": "401: Unauthorized", "code": 0})
        person = self.people.get(discord_id, Person(member=False))
        if name == "identity":
            return answering(200, {"id": discord_id, "username": f"person {discord_id}", "avatar": None})
        if not person.member:
            return answering(404, {"message": "Unknown Guild", "code": 10004})
        return answering(200, {"roles": list(person.roles), "nick": None, "user": {"id": discord_id}})

    def _exchange(self, form: Mapping[str, str]) -> Fault:
        discord_id, redirect_uri = self.codes.pop(form.get("code", ""), ("", ""))
        wanted = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "grant_type": "authorization_code"}
        if not discord_id or form.get("redirect_uri") != redirect_uri or not wanted.items() <= form.items():
            return answering(400, {"error": "invalid_grant"})
        token = self._new_secret()
        self.tokens[token] = discord_id
        return answering(200, {"access_token": token, "token_type": "Bearer", "expires_in": 604_800})


def answering(
    status: int, content: object = None, content_type: str = "application/json", *, location: str = ""
) -> Fault:
    """Answer with this; what is no text or bytes, as JSON."""
    body = content if isinstance(content, bytes) else content.encode() if isinstance(content, str) else None
    body = json.dumps({} if content is None else content).encode() if body is None else body

    async def answer(stream: trio.SocketStream) -> None:
        lines = [f"HTTP/1.1 {status} Whatever", f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
        lines += [f"Location: {location}"] if location else []
        await stream.send_all("\r\n".join([*lines, "Connection: close", "", ""]).encode() + body)

    return answer


async def silent(stream: trio.SocketStream) -> None:
    """Say nothing until whoever asked has gone."""
    while await stream.receive_some():
        pass


async def endless(stream: trio.SocketStream) -> None:
    """Never stop answering."""
    await stream.send_all(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"id": "')
    while True:
        await stream.send_all(b"9" * 65_536)


async def cut_off(stream: trio.SocketStream) -> None:
    """Close in the middle of the body."""
    await stream.send_all(b'HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{"id": "12')


async def _read(stream: trio.SocketStream) -> tuple[h11.Request, bytes]:
    """A whole request."""
    parser, request, body = h11.Connection(h11.SERVER), None, b""
    while True:
        event = parser.next_event()
        if event is h11.NEED_DATA:
            parser.receive_data(await stream.receive_some(65_536))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            assert request is not None
            return request, body
        else:
            raise trio.BrokenResourceError  # it connected and left


def _query(address: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlsplit(address).query, keep_blank_values=True).items()}


@asynccontextmanager
async def discord_stand_in() -> AsyncIterator[DiscordStandIn]:
    """One on a free port; gone at the end."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    stand_in = DiscordStandIn(listeners[0].socket.getsockname()[1])
    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, stand_in.serve, listeners)
        yield stand_in
        nursery.cancel_scope.cancel()


async def _main(redirect_uri: str, env_file: Path | None) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with discord_stand_in() as discord:
            discord.people |= {"1001": Person(), "1002": Person(), "1666": Person(member=False)}
            settings = "".join(f"{key}={value}\n" for key, value in discord.settings(redirect_uri).items())
            if env_file is not None:
                ready = env_file.with_name(env_file.name + ".new")
                ready.write_text(settings)
                ready.replace(env_file)  # whole or not at all: its appearance says that we are ready
            print(settings, end="", flush=True)
            async for _ in signals:
                break


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.discord_stand_in", description="Sign-in, offline.")
    parser.add_argument("--redirect-uri", required=True, help="where it sends a browser back to")
    parser.add_argument("--env-file", type=Path, help="write the settings of the appliance here when ready")
    arguments = parser.parse_args()
    trio.run(_main, arguments.redirect_uri, arguments.env_file)
