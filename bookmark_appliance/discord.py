"""Discord, as the sign-in asks it: who someone is, and whether they are of the guild (SES-014, SES-019 to SES-024).

Nothing that it answers with leaves this module but an id: no text of it is shown or logged, and its token is dropped
when the last call has been made.
"""

import re
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

import httpx
import msgspec
import trio

from bookmark_appliance.secret import Secret
from bookmark_appliance.settings import Settings

CALL_SECONDS: Final = 15.0
MAX_BODY_BYTES: Final = 1024 * 1024
SCOPE: Final = "identify guilds.members.read"

_SNOWFLAKE: Final = re.compile(r"[0-9]{1,20}", re.ASCII)
_TOKEN: Final = re.compile(r"[!-~]+", re.ASCII)
"""What can stand in a header."""

T = TypeVar("T")


class DiscordUnavailable(Exception):
    """A call failed, or was answered with what it should not be. The text is ours, and may be logged."""


@dataclass(frozen=True, slots=True)
class DiscordSettings:
    """The Discord application, and the guild whose members may sign in. `api_base` has no trailing slash."""

    client_id: str
    client_secret: Secret
    guild_id: str
    redirect_uri: str
    required_role: str | None
    api_base: str


def discord_settings(settings: Settings) -> DiscordSettings | None:
    """None in local mode."""
    if (
        settings.discord_client_id is None
        or settings.discord_client_secret is None
        or settings.discord_guild_id is None
        or settings.discord_redirect_uri is None
    ):
        return None
    return DiscordSettings(
        client_id=settings.discord_client_id,
        client_secret=settings.discord_client_secret,
        guild_id=settings.discord_guild_id,
        redirect_uri=settings.discord_redirect_uri,
        required_role=settings.discord_required_role,
        api_base=settings.discord_api_base,
    )


class _Token(msgspec.Struct):
    access_token: str = ""


class _Person(msgspec.Struct):
    id: str = ""


class _Member(msgspec.Struct):
    roles: list[str] = []


class Discord:
    """Asks Discord in the name of one application. Keeps nothing between two sign-ins."""

    def __init__(self, settings: DiscordSettings) -> None:
        self._settings = settings
        self.redirect_uri = settings.redirect_uri
        self._tls = httpx.create_ssl_context(trust_env=False)

    def authorize_address(self, state: Secret) -> str:
        """Where a browser asks its person's leave, to come back with `state` (SES-014)."""
        query = {
            "client_id": self._settings.client_id,
            "redirect_uri": self._settings.redirect_uri,
            "response_type": "code",
            "scope": SCOPE,
            "state": state.reveal(),
        }
        return f"{self._settings.api_base}/oauth2/authorize?{urlencode(query)}"

    async def admit(self, code: Secret) -> str | None:
        """The Discord id of whoever was given `code`; None when they are not of the guild, or lack the role.

        Up to three calls, CALL_SECONDS each. Raises DiscordUnavailable.
        """
        # redirects: only an attacker would send the code or the token elsewhere
        async with httpx.AsyncClient(
            verify=self._tls,
            trust_env=False,
            follow_redirects=False,
            timeout=CALL_SECONDS,  # for each step; a call as a whole has its own deadline
            headers={"Accept": "application/json"},
        ) as client:
            token = await self._exchange(client, code)
            bearer = {"Authorization": f"Bearer {token.reveal()}"}
            status, body = await self._call(client, "identity", "GET", "/users/@me", headers=bearer)
            discord_id = _read("identity", status, body, _Person).id
            if not _SNOWFLAKE.fullmatch(discord_id):
                raise DiscordUnavailable("identity: no id in the answer")
            guild = quote(self._settings.guild_id, safe="")
            status, body = await self._call(
                client, "membership", "GET", f"/users/@me/guilds/{guild}/member", headers=bearer
            )
        if status in (403, 404):
            return None
        roles = _read("membership", status, body, _Member).roles
        return discord_id if self._settings.required_role in (None, *roles) else None

    async def _exchange(self, client: httpx.AsyncClient, code: Secret) -> Secret:
        form = {
            "client_id": self._settings.client_id,
            "client_secret": self._settings.client_secret.reveal(),
            "grant_type": "authorization_code",
            "code": code.reveal(),
            "redirect_uri": self._settings.redirect_uri,
        }
        status, body = await self._call(client, "token exchange", "POST", "/oauth2/token", data=form)
        token = _read("token exchange", status, body, _Token).access_token
        if not _TOKEN.fullmatch(token):
            raise DiscordUnavailable("token exchange: no token in the answer")
        return Secret(token)

    async def _call(
        self, client: httpx.AsyncClient, name: str, method: str, path: str, **sent: Any
    ) -> tuple[int, bytes]:
        """Status and body of one call, read as it comes: nothing is unpacked, so the limit is one on what arrives."""
        headers = {"Accept-Encoding": "identity", **sent.pop("headers", {})}
        body = bytearray()
        try:
            with trio.move_on_after(CALL_SECONDS) as call:
                async with client.stream(method, f"{self._settings.api_base}{path}", headers=headers, **sent) as answer:
                    async for part in answer.aiter_raw():
                        body += part
                        if len(body) > MAX_BODY_BYTES:
                            # Leaving the loop would leave httpx's generators to the garbage collector.
                            call.cancel()
                if len(body) <= MAX_BODY_BYTES:
                    return answer.status_code, bytes(body)
        except httpx.HTTPError as error:
            raise DiscordUnavailable(f"{name}: {type(error).__name__}") from None
        if len(body) > MAX_BODY_BYTES:
            raise DiscordUnavailable(f"{name}: an answer of more than {MAX_BODY_BYTES} bytes")
        raise DiscordUnavailable(f"{name}: no answer in time")


def _read(name: str, status: int, body: bytes, kind: type[T]) -> T:
    if status != 200:
        raise DiscordUnavailable(f"{name}: status {status}")
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError):  # the latter: nested by the thousand
        raise DiscordUnavailable(f"{name}: not the JSON that was expected") from None
