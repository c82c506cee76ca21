"""The profile of the browser host: what must be cleared away in it, and set, before Chrome is started on it."""

import hashlib
import os
import sqlite3
import ssl
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

DEBUGGING_PORT = "DevToolsActivePort"
"""Where Chrome writes the port it chose, and the path of its address."""

_TRUSTED = bytes.fromhex("0a020803")
"""Chromium's `CertificateMetadata(trust=CertificateTrust(trust_type=TRUSTED))`, from its server_certificate_database.
Measured with Chromium 156 (2026-11-30): a server that sends no root is verified against it, and nothing else is let
pass. Its list of accepted key hashes is no substitute: it looks at what the server sends, and asks for no signature."""

_SCHEMA = """
    CREATE TABLE IF NOT EXISTS meta (key LONGVARCHAR NOT NULL UNIQUE PRIMARY KEY, value LONGVARCHAR);
    INSERT OR IGNORE INTO meta VALUES ('version', '1'), ('last_compatible_version', '1');
    CREATE TABLE IF NOT EXISTS certificates (
        sha256hash_hex TEXT PRIMARY KEY, der_cert BLOB NOT NULL, trust_settings BLOB NOT NULL
    );
    DELETE FROM certificates;
"""


def clear_leftovers(profile: Path) -> None:
    """Remove what a Chrome that ended uncleanly left behind: with its lock there, another one refuses for ever."""
    for path in [*profile.glob("Singleton*"), profile / DEBUGGING_PORT]:
        path.unlink(missing_ok=True)


def trust(profile: Path, ca_file: Path | None) -> None:
    """Make the certificates of `ca_file` the ones that this profile trusts besides Chrome's own.

    Raises sqlite3.Error where Chrome keeps them otherwise than we know.
    """
    store = profile / "Default" / "ServerCertificate"
    if ca_file is None and not store.exists():
        return
    store.parent.mkdir(mode=0o700, exist_ok=True)
    anchors = _certificates(ca_file) if ca_file else []
    rows = [(hashlib.sha256(anchor).hexdigest(), anchor, _TRUSTED) for anchor in anchors]
    with closing(sqlite3.connect(store)) as database, database:
        database.executescript(_SCHEMA)
        database.executemany("INSERT INTO certificates VALUES (?, ?, ?)", rows)


def _certificates(ca_file: Path) -> list[bytes]:
    """The authorities of a PEM file, each in DER."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cafile=ca_file)
    return context.get_ca_certs(binary_form=True)


def chromes_on(profile: Path) -> list[int]:
    """The process groups of Chromes that run on this profile, told by their command lines.

    A pid that stands in a file proves nothing: numbers come again. Chrome's helpers lead no group.
    """
    uses = f"--user-data-dir={profile}".encode()
    return [
        pid for pid in _processes() if uses in _read(f"/proc/{pid}/cmdline").split(b"\0") and _group_of(pid)[1] == pid
    ]


def group_lives(group: int) -> bool:
    """Whether a process of this group still runs; one that ended and that nobody has reaped does not."""
    return any((state not in "ZX") and found == group for state, found in map(_group_of, _processes()))


def _group_of(pid: int) -> tuple[str, int]:
    """The state and the process group of a process; after its name in brackets, its parent between them (proc(5))."""
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return (fields[0].decode(), int(fields[2])) if fields else ("X", 0)


def _processes() -> Iterator[int]:
    return (int(entry) for entry in os.listdir("/proc") if entry.isdigit())


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""  # it has ended meanwhile
