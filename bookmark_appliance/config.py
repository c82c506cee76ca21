"""Where settings come from: the environment, then the settings file, then the defaults (CFG-001).

Nothing else in the package reads the environment, and nothing here writes: `data_folder` makes the folders and keeps a
generated key.
"""

import difflib
import os
import secrets
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from bookmark_appliance.secret import Secret
from bookmark_appliance.setting_values import is_loopback, origin_of, reason
from bookmark_appliance.settings import (
    FROM_DEFAULT,
    FROM_ENVIRONMENT,
    FROM_OPTION,
    GENERATED,
    SETTINGS,
    Setting,
    Settings,
    SettingsError,
    own_origin,
)
from bookmark_appliance.settings_file import SettingsFile, UnreadableLine, parse_settings_file

__all__ = ["SETTINGS", "Setting", "Settings", "SettingsError", "load_settings", "process_settings"]

DISCORD_KEYS = ("DISCORD_CLIENT_ID", "DISCORD_CLIENT_SECRET", "DISCORD_GUILD_ID", "DISCORD_REDIRECT_URI")
"""All four or none; none is local mode."""

REQUIRED_KEYS = ("TOKEN_KEY", "OWNER_DISCORD_ID", "PUBLIC_BASE_URL")
"""Required outside local mode."""

FILE_KEYS = ("TOKEN_KEY", "DATABASE_URL", "DISCORD_CLIENT_SECRET", "DISCORD_WEBHOOK_URL", "METRICS_TOKEN")
"""Keys that `<KEY>_FILE` may set, by naming a file that holds the value."""

EARLIER_KEYS = ("POSTGRES_PASSWORD", "BOOKMARK_API_HOST", "BOOKMARK_WEB_HOST", "PROXY_NETWORK", "BROWSER_TZ")
EARLIER_PREFIXES = ("TRAEFIK_", "LATEST_CHAPTER_POLL_")
"""Of the earlier deployment: named in one log line and ignored (CFG-010)."""

Layers = tuple[tuple[str, Mapping[str, str]], ...]
"""(source, texts by key); an earlier layer wins."""

_FILE_FORMS = tuple(f"{key}_FILE" for key in FILE_KEYS)


@dataclass(frozen=True, slots=True)
class _Given:
    """The text that someone set for a key, and where."""

    text: str
    source: str


def process_settings(*, env_file: Path | None = None, data_dir: Path | None = None) -> Settings:
    """`load_settings` on this process's own environment."""
    return load_settings(os.environ, env_file=env_file, data_dir=data_dir)


def process_zone(option: str | None) -> tuple[str, str]:
    """`find_zone` on this process's own environment and machine."""
    return find_zone(option, os.environ, Path("/etc/timezone"))


def find_zone(option: str | None, environ: Mapping[str, str], file: Path) -> tuple[str, str]:
    """The name of the clock zone, unchecked, and where it comes from: the option, else TZ, else the system's file.

    Raises SettingsError where none of them names one.
    """
    try:
        in_file = file.read_text("utf-8", errors="replace").strip()
    except OSError:
        in_file = ""
    for source, name in (("--timezone", option or ""), ("TZ", environ.get("TZ", "").strip()), (str(file), in_file)):
        if name:
            return name, source
    raise SettingsError(f"--timezone: missing, and neither TZ nor {file} names a zone")


def load_settings(
    environ: Mapping[str, str], *, env_file: Path | None = None, data_dir: Path | None = None
) -> Settings:
    """The settings that `environ`, the settings file and the two options come to; reads files and writes nothing.

    The environment wins over the file; a blank value counts as none. Without `env_file`, a `.env` beside the data
    folder is read where there is one. Raises SettingsError, which names every key that is wrong (CFG-001).
    """
    folder = data_dir or Path(environ.get("DATA_DIR", "").strip() or "./data")
    file_path, file = _read_settings_file(env_file, folder, environ)
    layers = ((FROM_ENVIRONMENT, environ), (str(file_path), file.values))
    given = dict(_given(layers))
    if data_dir is not None:
        given["DATA_DIR"] = _Given(str(data_dir), FROM_OPTION)
    _check_combinations(layers, given)
    sources = {key: one.source for key, one in given.items()}
    fields = _complete(_parse_all(given), sources)
    settings = Settings(
        **fields,
        sources=MappingProxyType({setting.key: sources.get(setting.key, FROM_DEFAULT) for setting in SETTINGS}),
        warnings=tuple(_warnings(file_path, file)),
    )
    if settings.local_mode and not is_loopback(settings.bind):
        raise SettingsError(
            f"BIND: only a loopback address is accepted in local mode; {', '.join(DISCORD_KEYS)} configure the sign-in"
        )
    return settings


def _read_settings_file(
    env_file: Path | None, data_dir: Path, environ: Mapping[str, str]
) -> tuple[Path | None, SettingsFile]:
    path = env_file or data_dir.absolute().parent / ".env"
    try:
        if env_file is None and not path.is_file():
            return None, SettingsFile({})
        file = parse_settings_file(path.read_bytes(), environ)
    except OSError as error:
        raise SettingsError(f"the settings file {path} can't be read: {reason(error, path)}") from None
    except UnreadableLine as error:
        raise SettingsError(f"the settings file {path}: {error}") from None
    unknown = [_unknown_key(key) for key in file.values if not _is_known(key) and not _is_earlier(key)]
    if unknown:
        raise SettingsError("\n".join(f"the settings file {path}: {line}" for line in unknown))
    return path, file


def _is_known(key: str) -> bool:
    return key in _FILE_FORMS or any(setting.key == key for setting in SETTINGS)


def _is_earlier(key: str) -> bool:
    """Whether the earlier deployment knew `key`. A slip in LATEST_CHAPTER_POLL_ENABLED is no retired pace key."""
    if difflib.SequenceMatcher(None, key, "LATEST_CHAPTER_POLL_ENABLED").ratio() > 0.9:
        return False
    return key in EARLIER_KEYS or key.startswith(EARLIER_PREFIXES)


def _unknown_key(key: str) -> str:
    known = [setting.key for setting in SETTINGS] + list(_FILE_FORMS)
    close = difflib.get_close_matches(key.upper(), known, n=1)
    return f"{key} is not a setting" + (f"; did you mean {close[0]}?" if close else "")


def _given(layers: Layers) -> Iterator[tuple[str, _Given]]:
    """What is set, key by key: the first layer that has a text wins, and a blank one is as good as none."""
    for setting in SETTINGS:
        direct = _first(setting.key, layers)
        in_file = _first(f"{setting.key}_FILE", layers) if setting.key in FILE_KEYS else None
        if direct and in_file:
            raise SettingsError(f"{setting.key}: {setting.key}_FILE is set as well; only one of the two may be")
        if direct:
            yield setting.key, direct
        elif in_file:
            yield setting.key, _read_value(f"{setting.key}_FILE", Path(in_file.text.strip()))
        elif setting.key == "COVER_DIR" and any("COVER_DIR" in layer for _, layer in layers):
            raise SettingsError("COVER_DIR: is set and blank; name a folder, or leave the key out")  # COV-032


def _first(key: str, layers: Layers) -> _Given | None:
    return next((_Given(layer[key], source) for source, layer in layers if layer.get(key, "").strip()), None)


def _read_value(key: str, path: Path) -> _Given:
    try:
        text = path.read_text("utf-8").rstrip("\r\n")
    except OSError as error:
        raise SettingsError(f"{key}: {path} can't be read: {reason(error, path)}") from None
    except ValueError:
        raise SettingsError(f"{key}: {str(path)!r} is no file of text in UTF-8") from None
    if not text.strip():
        raise SettingsError(f"{key}: {path} is empty")
    return _Given(text, str(path))


def _check_combinations(layers: Layers, given: Mapping[str, _Given]) -> None:
    if "DATABASE_URL" not in given and _first("POSTGRES_PASSWORD", layers):
        # CFG-010: the earlier deployment's database is never passed over for a new embedded one.
        raise SettingsError(
            "DATABASE_URL: missing, though POSTGRES_PASSWORD of the earlier deployment is set; "
            "name that database, or remove POSTGRES_PASSWORD to begin with an embedded one"
        )
    missing = [key for key in DISCORD_KEYS if key not in given]
    if missing and len(missing) < len(DISCORD_KEYS):
        raise SettingsError(f"{', '.join(missing)}: missing; of {', '.join(DISCORD_KEYS)} all are set or none")
    absent = [key for key in REQUIRED_KEYS if key not in given]
    if absent and not missing:
        raise SettingsError(f"{', '.join(absent)}: missing, and required where the sign-in is configured")


def _parse_all(given: Mapping[str, _Given]) -> dict[str, Any]:
    """Each key's value under its field's name; None where nothing was set and the table has no default."""
    fields: dict[str, Any] = {}
    problems: list[str] = []
    for setting in SETTINGS:
        text = given[setting.key].text if setting.key in given else setting.default
        try:
            fields[setting.key.lower()] = None if text is None else setting.parse(_printable(text))
        except ValueError as rule:
            shown = "" if setting.secret else f" (found {text!r:.100})"
            problems.append(f"{setting.key}: {rule}{shown}")
    if problems:
        raise SettingsError("\n".join(problems))
    return fields


def _printable(text: str) -> str:
    # A byte of the environment that is not UTF-8 arrives as a lone surrogate, category Cs.
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in text.strip()):
        raise ValueError("must be text in UTF-8 without control characters")
    return text


def _complete(fields: dict[str, Any], sources: dict[str, str]) -> dict[str, Any]:
    """Fill in the defaults that depend on other settings."""
    fields["cover_dir"] = fields["cover_dir"] or fields["data_dir"] / "covers"
    if fields["discord_client_id"] is None:
        fields["owner_discord_id"] = fields["owner_discord_id"] or "0"
        fields["public_base_url"] = fields["public_base_url"] or own_origin(fields["bind"], fields["port"])
        if fields["token_key"] is None:
            fields["token_key"] = kept_token_key(fields["data_dir"] / "token_key") or Secret(secrets.token_hex(32))
            sources["TOKEN_KEY"] = GENERATED
    if fields["web_base_url"] is None:
        redirect = fields["discord_redirect_uri"]
        fields["web_base_url"] = origin_of(urlsplit(redirect)) if redirect else fields["public_base_url"]
    return fields


def kept_token_key(path: Path) -> Secret | None:
    """The key that an earlier start generated; None when there is none yet."""
    try:
        text = path.read_text("utf-8").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SettingsError(f"TOKEN_KEY: {path} can't be read: {reason(error, path)}") from None
    except UnicodeDecodeError:
        text = ""
    if not text:
        raise SettingsError(f"TOKEN_KEY: {path} does not hold the key that was generated once")
    return Secret(text)


def _warnings(path: Path | None, file: SettingsFile) -> Iterator[str]:
    if ignored := [key for key in file.values if _is_earlier(key)]:
        yield f"ignored in {path}, keys of the earlier deployment: {', '.join(ignored)}"
    if file.unset_references:
        names = ", ".join(f"${name}" for name in file.unset_references)
        yield f"read as blank in {path}, as Compose does, since nothing sets them: {names} (write $$ for a dollar sign)"
