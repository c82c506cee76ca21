"""What `config` prints: each setting's effective value and where it comes from."""

from collections.abc import Mapping

from bookmark_appliance.config import kept_token_key
from bookmark_appliance.secret import Secret
from bookmark_appliance.settings import SETTINGS, Settings

Shown = str | int | bool | list[str] | dict[str, str] | None


def report(settings: Settings, *, reveal: bool = False) -> dict[str, dict[str, Shown]]:
    """`{KEY: {"value": …, "source": …}}` in the order of the table; a secret is `***` unless `reveal`.

    A key that the first start is still to generate is revealed as null.
    """
    shown = {}
    for setting in SETTINGS:
        value = _shown(getattr(settings, setting.key.lower()), reveal)
        shown[setting.key] = {"value": value, "source": settings.sources[setting.key]}
    if reveal and settings.token_key_generated and kept_token_key(settings.token_key_file) is None:
        shown["TOKEN_KEY"]["value"] = None
    return shown


def _shown(value: object, reveal: bool) -> Shown:
    match value:
        case None | bool() | int():
            return value
        case Secret():
            return value.reveal() if reveal else str(value)
        case tuple():
            return [str(item) for item in value]
        case Mapping():
            return {host: f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}" for host, (ip, port) in value.items()}
        case _:
            return str(value)
