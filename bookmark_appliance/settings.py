"""The table of settings, and the values that one process runs with.

`Settings` is the table. Each of its fields is one key of docs/INTERFACE.md (`data_dir` is `DATA_DIR`) with its default,
its reading, its rule in words, and whether it is a secret. `config` fills it.
"""
# ruff: noqa: RUF009 - `_setting` is a field specifier, as `dataclasses.field` is

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from bookmark_appliance import setting_values as values
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.secret import Secret

T = TypeVar("T")

FROM_ENVIRONMENT = "environment"
FROM_OPTION = "--data-dir"
FROM_DEFAULT = "default"
GENERATED = "generated"

LOOPBACK_AND_PRIVATE = "127.0.0.0/8, ::1/128, 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7"


class SettingsError(Exception):
    """The settings do not allow a start (exit code 2). Each line of the text names a key and holds no secret."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of the table. `default` is the text that stands in for a missing value, if one text does."""

    key: str
    default: str | None
    parse: Callable[[str], object]
    documentation: str
    secret: bool


def _setting(parse: Callable[[str], T], documentation: str, *, default: str | None = None, secret: bool = False) -> T:
    metadata = {"default": default, "parse": parse, "documentation": documentation, "secret": secret}
    return cast("T", field(metadata=metadata))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The effective settings of one process."""

    data_dir: Path = _setting(values.path, "embedded Postgres, covers, generated key", default="./data")
    database_url: Secret | None = _setting(
        values.database_url, "external Postgres; unset: embedded Postgres in DATA_DIR", secret=True
    )
    token_key: Secret = _setting(values.secret, "signs the Readers' credentials; 32 characters or more", secret=True)
    owner_discord_id: str = _setting(values.decimal, "Discord id of the owner; 0 in local mode")
    public_base_url: str = _setting(values.base_url, "origin under which the API and the covers are reached")
    web_base_url: str = _setting(values.base_url, "origin of the pages, when that is another hostname")
    bind: str = _setting(values.bind_address, "address to listen on; loopback in local mode", default="127.0.0.1")
    port: int = _setting(values.port, "port to listen on; 0 picks a free one", default="8080")
    cover_dir: Path = _setting(values.path, "folder of the cover files; DATA_DIR/covers")
    discord_client_id: str | None = _setting(values.text, "Discord application; all four or none")
    discord_client_secret: Secret | None = _setting(values.secret, "its secret", secret=True)
    discord_guild_id: str | None = _setting(values.text, "the guild whose members may sign in")
    discord_redirect_uri: str | None = _setting(values.web_address, "where Discord sends a browser back to")
    discord_required_role: str | None = _setting(values.text, "a role that a member must have as well")
    discord_api_base: str = _setting(values.api_base, "Discord's API", default="https://discord.com/api/v10")
    discord_webhook_url: Secret | None = _setting(
        values.secret_web_address, "where the owner's notices go; unset: none", secret=True
    )
    allowed_origins: tuple[str, ...] = _setting(
        values.origins,
        "comma list of origins whose scripts may call the API",
        default=",".join(s.origin for s in SITES.values()),
    )
    trusted_proxies: tuple[values.IPNetwork, ...] = _setting(
        values.networks, "comma list of CIDRs whose forwarded headers count", default=LOOPBACK_AND_PRIVATE
    )
    browser_ws_url: str | None = _setting(values.browser_address, "ws://IP:PORT of the browser host; unset: none")
    latest_chapter_poll_enabled: bool = _setting(values.switch, "0 turns the lanes off", default="1")
    userscript_path: Path | None = _setting(values.path, "a file instead of the built-in script")
    novel_userscript_path: Path | None = _setting(values.path, "a file instead of the built-in novel script")
    site_connect_to: Mapping[str, tuple[str, int]] = _setting(
        values.connections, "comma list host=ip:port, where to connect for a Site's or a cover host's name", default=""
    )
    site_ca_file: Path | None = _setting(values.certificates, "extra trust anchors for Sites and covers, PEM")
    metrics_token: Secret | None = _setting(
        values.secret, "bearer token that reads /metrics from anywhere", secret=True
    )
    log_format: str = _setting(values.log_format, "text, or json for machines", default="text")
    log_level: str = _setting(values.log_level, "debug, info, warning or error", default="info")
    api_tz: ZoneInfo = _setting(values.zone, "zone of text log lines and of clock times on owner pages", default="UTC")

    sources: Mapping[str, str]
    """Where each key's value comes from: `environment`, a file's path, `default` or `generated`."""
    warnings: tuple[str, ...] = ()
    """Lines that the start logs."""

    @property
    def local_mode(self) -> bool:
        """Without the four Discord keys: one Reader, loopback only, sign-in by link."""
        return self.discord_client_id is None

    @property
    def token_key_generated(self) -> bool:
        """Whether `token_key` is the appliance's own and not the operator's."""
        return self.sources["TOKEN_KEY"] == GENERATED

    @property
    def token_key_file(self) -> Path:
        """Where a generated key is kept."""
        return self.data_dir / "token_key"

    @property
    def secret_texts(self) -> tuple[str, ...]:
        """Every text that must never be shown, the password inside DATABASE_URL among them."""
        held = [getattr(self, setting.key.lower()) for setting in SETTINGS if setting.secret]
        texts = [value.reveal() for value in held if value is not None]
        if self.database_url is not None:
            texts += _passwords_in(self.database_url.reveal())
        return tuple(texts)

    def bound_to(self, port: int) -> "Settings":
        """The settings of a process that asked for port 0 and was given `port`: its default addresses name it."""
        public, web = self.public_base_url, self.web_base_url
        if self.sources["PUBLIC_BASE_URL"] == FROM_DEFAULT:
            public = own_origin(self.bind, port)
        if self.sources["WEB_BASE_URL"] == FROM_DEFAULT and self.discord_redirect_uri is None:
            web = public
        return dataclasses.replace(self, port=port, public_base_url=public, web_base_url=web)


SETTINGS: tuple[Setting, ...] = tuple(
    Setting(key=line.name.upper(), **line.metadata) for line in dataclasses.fields(Settings) if line.metadata
)


def own_origin(bind: str, port: int) -> str:
    """The address of this process for a browser on the same machine."""
    return f"http://{f'[{bind}]' if ':' in bind else bind}:{port}"


def _passwords_in(database_url: str) -> list[str]:
    """Each password of a connection address, as it stands there and decoded."""
    authority = re.match(r"[a-z]+://[^:/@?]*:(?P<password>[^?#]*)@", database_url)
    found = [authority["password"]] if authority else []
    found += re.findall(r"[?&](?:ssl)?password=([^&#]+)", database_url)
    return [text for raw in found for text in dict.fromkeys((raw, unquote(raw)))]
