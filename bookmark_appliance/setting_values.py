"""How the text of each setting becomes a value. Pure, but for the two that name a file or zone which must exist.

Every function takes the text of one setting and raises ValueError with the rule that it breaks; the text itself is
never part of that message, since it may be a secret.
"""

import ipaddress
import os
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from urllib.parse import SplitResult, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bookmark_appliance.secret import Secret

IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_HOST_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*", re.ASCII)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_ON, _OFF = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


def secret(text: str) -> Secret:
    """Taken as it stands: white space at an end may be part of a key."""
    return Secret(text)


def text(text: str) -> str:
    """Any text, without white space at its ends."""
    return text.strip()


def path(text: str) -> Path:
    """An absolute path; a relative one starts in the working folder."""
    return Path(text.strip()).absolute()


def decimal(text: str) -> str:
    """Digits, kept as text: a Discord id is a name, not a quantity."""
    if not re.fullmatch("[0-9]{1,20}", text.strip(), re.ASCII):
        raise ValueError("must be a decimal Discord id")
    return text.strip()


def port(text: str) -> int:
    """0 to 65535."""
    if not re.fullmatch("[0-9]{1,5}", text.strip(), re.ASCII) or int(text) > 65_535:
        raise ValueError("must be a port number, 0 to 65535")
    return int(text)


def bind_address(text: str) -> str:
    """The IP address to listen on; `localhost` is 127.0.0.1."""
    address = text.strip().lower()
    try:
        return "127.0.0.1" if address == "localhost" else str(ipaddress.ip_address(address))
    except ValueError:
        raise ValueError("must be an IP address without a port (the port has a key of its own, PORT)") from None


def switch(text: str) -> bool:
    """1 or 0."""
    word = text.strip().lower()
    if word not in _ON | _OFF:
        raise ValueError("must be 1 or 0")
    return word in _ON


def database_url(text: str) -> Secret:
    """A postgres:// or postgresql:// address that libpq can read."""
    from psycopg import ProgrammingError, conninfo  # 0.3 s that only this setting needs

    address = text.strip()
    try:
        conninfo.conninfo_to_dict(address)
    except ProgrammingError:
        # libpq quotes what it could not read, which may be a password.
        raise ValueError("can't be read as an address; special characters in it are percent-encoded") from None
    if not address.startswith(("postgres://", "postgresql://")):
        raise ValueError("must be an address that starts with postgresql://")
    return Secret(address)


def is_loopback(host: str) -> bool:
    """Whether a host name or IP address is this machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def web_address(text: str) -> str:
    """An absolute https address, http only at loopback; kept as it is written, since Discord compares it so."""
    rule = "must be an absolute https address (http only for loopback)"
    parts = _split(text.strip(), rule, "https", "http")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ValueError(rule)
    return text.strip()


def api_base(text: str) -> str:
    """A `web_address` that paths are put after: without trailing slashes."""
    return web_address(text).rstrip("/")


def secret_web_address(text: str) -> Secret:
    """A `web_address` that nobody else may read."""
    return Secret(web_address(text))


def base_url(text: str) -> str:
    """An absolute origin, https unless loopback, trailing slashes trimmed (CFG-009, COV-032)."""
    web_address(text)
    rule = "must be an origin alone, such as https://bookmarks.example.org, without a path"
    return origin_of(_without_path(text, rule, "https", "http"))


def origins(text: str) -> tuple[str, ...]:
    """A comma list of origins as a browser sends them."""
    rule = "must be a comma list of origins such as https://asurascans.com"
    return tuple(dict.fromkeys(origin_of(_without_path(item, rule, "https", "http")) for item in _items(text)))


def browser_address(text: str) -> str:
    """`ws://IP:PORT`. Chrome answers 500 to any Host but an IP address or `localhost` (OPERATIONS.md)."""
    rule = "must be ws://IP:PORT; of host names only localhost, since Chrome refuses any other"
    parts = _without_path(text, rule, "ws")
    if not parts.port or not (parts.hostname == "localhost" or _is_ip(parts.hostname or "")):
        raise ValueError(rule)
    return origin_of(parts)


def origin_of(parts: SplitResult) -> str:
    """`scheme://host[:port]` in the spelling of the `Origin` header: lower case, no default port."""
    host = parts.hostname or ""
    port_text = "" if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port_text}"


def _split(address: str, rule: str, *schemes: str) -> SplitResult:
    """The parts of an absolute address without user and password; raises ValueError with `rule`."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError(rule) from None
    if parts.scheme not in schemes or parts.username is not None or re.search(r"[\s\\]", address):
        raise ValueError(rule)
    if not _HOST_NAME.fullmatch(host) and not _is_ip(host):
        raise ValueError(rule)
    return parts


def _without_path(text: str, rule: str, *schemes: str) -> SplitResult:
    parts = _split(text.strip().rstrip("/"), rule, *schemes)
    if parts.path or parts.query or parts.fragment:
        raise ValueError(rule)
    return parts


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def networks(text: str) -> tuple[IPNetwork, ...]:
    """A comma list of CIDRs; a bare address stands for itself."""
    try:
        return tuple(ipaddress.ip_network(item, strict=False) for item in _items(text))
    except ValueError:
        raise ValueError("must be a comma list of CIDRs such as 10.0.0.0/8") from None


def connections(text: str) -> Mapping[str, tuple[str, int]]:
    """A comma list `host=ip:port`, as host to (ip, port)."""
    table: dict[str, tuple[str, int]] = {}
    for item in _items(text):
        match = re.fullmatch(
            r"(?P<host>[^=\s]+)\s*=\s*(?:\[(?P<v6>[^\]]+)\]|(?P<v4>[^:]+)):(?P<port>[0-9]{1,5})", item, re.ASCII
        )
        host = match["host"].lower() if match else ""
        if match is None or not _HOST_NAME.fullmatch(host) or not 0 < int(match["port"]) < 65_536:
            raise ValueError("must be a comma list of host=ip:port")
        try:
            address = ipaddress.IPv6Address(match["v6"]) if match["v6"] else ipaddress.IPv4Address(match["v4"])
        except ValueError:
            raise ValueError("must be a comma list of host=ip:port, where ip is an address and no name") from None
        table[host] = (str(address), int(match["port"]))
    return MappingProxyType(table)


def certificates(text: str) -> Path:
    """The path of a file that holds at least one PEM certificate."""
    file = path(text)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=file)
    except ssl.SSLError:
        raise ValueError("must name a file of PEM certificates") from None
    except OSError as error:
        raise ValueError(f"must name a file that can be read: {reason(error, file)}") from None
    return file


def reason(error: OSError, path: Path) -> str:
    """Why `path` can't be used, in words: where a folder above it is closed to this user, that one is named."""
    if isinstance(error, PermissionError):
        for parent in reversed(path.absolute().parents):
            if not os.access(parent, os.X_OK):
                return f"this user can't enter {parent}"
    return error.strerror or "unknown error"


def log_format(text: str) -> str:
    """`text` or `json`."""
    return _one_of(text, "text", "json")


def log_level(text: str) -> str:
    """`debug`, `info`, `warning` or `error`."""
    return _one_of(text, "debug", "info", "warning", "error")


def zone(text: str) -> ZoneInfo:
    """A time zone by its IANA name."""
    try:
        return ZoneInfo(text.strip())
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("must be the name of a time zone, such as Europe/Berlin") from None


def _one_of(text: str, *words: str) -> str:
    if text.strip().lower() not in words:
        raise ValueError(f"must be {' or '.join(words)}")
    return text.strip().lower()


def _items(text: str) -> list[str]:
    return [item for part in text.split(",") if (item := part.strip())]
