"""The server process: made, watched and ended by us."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import trio

from bookmark_appliance.child import start_child
from bookmark_appliance.postgres.files import PostgresFiles
from bookmark_appliance.postgres.polling import until

_FAST_SECONDS: Final = 20.0
_IMMEDIATE_SECONDS: Final = 5.0

SETTINGS: Final[Mapping[str, str]] = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    # A machine with 2 GB that also holds the web service, covers and lanes.
    "max_connections": "40",
    "shared_buffers": "48MB",
    "work_mem": "4MB",
    "maintenance_work_mem": "32MB",
    "max_wal_size": "128MB",
    "min_wal_size": "32MB",
    # No replication, hence less to write; no helpers that idle beside one small database.
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_worker_processes": "2",
    "max_parallel_workers_per_gather": "0",
    "max_parallel_maintenance_workers": "0",
    "max_logical_replication_workers": "0",
    "autovacuum_max_workers": "1",
    "autovacuum_worker_slots": "2",
    "io_method": "sync",
    "jit": "off",
    "huge_pages": "off",
    # Nothing acknowledged is ever lost.
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    # The log is for the server's own troubles; it never quotes a value or a statement of ours.
    "log_min_messages": "warning",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_checkpoints": "off",
    "log_timezone": "UTC",
}


def launch(
    files: PostgresFiles, program: str, arguments: Sequence[str], *, ends_with_us: signal.Signals | None
) -> subprocess.Popen[bytes]:
    """Start one of the server's programs under the service user; what it says is appended to the log.

    For the main thread alone, as `start_child` has it.
    """
    with files.log.open("ab") as log:
        return start_child(
            [str(files.programs / program), *arguments],
            uid=files.user.uid,
            gid=files.user.gid,
            environ={"PATH": os.defpath, "LC_ALL": "C"},
            ends_with_us=ends_with_us,
            stdout=log,
            stderr=log,
        )


def server_arguments(files: PostgresFiles, settings: Mapping[str, str]) -> list[str]:
    """What `postgres` is started with: every setting stands on its command line, none in a file that grows old."""
    given = {
        **SETTINGS,
        "unix_socket_directories": str(files.socket_folder),
        "hba_file": str(files.access_rules),
        "ident_file": str(files.access_names),
        **settings,
    }
    return ["-D", str(files.cluster), *(part for key, value in given.items() for part in ("-c", f"{key}={value}"))]


def read_postmaster(cluster: Path) -> tuple[int, str] | None:
    """The pid in `postmaster.pid` and the state it noted (`starting`, `ready`, …); None when there is no such file.

    The pid is 0 while the file is being written. Source: PostgreSQL's pidfile.h (line 1 the pid, line 8 the state).
    """
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return None
    return (
        int(lines[0]) if lines and lines[0].isdigit() else 0,
        lines[7].strip() if len(lines) > 7 else "",
    )


def works_in(pid: int, cluster: Path) -> bool:
    """Whether this process is one of the cluster's server: all of them have it as their working folder.

    A pid alone proves nothing: after a crash, and in every container, numbers come again.
    """
    try:
        return Path(f"/proc/{pid}/cwd").readlink() == cluster.resolve()
    except OSError:
        return False


def server_processes(cluster: Path) -> list[int]:
    """Every process of the cluster's server, orphans of a killed postmaster included."""
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and works_in(int(entry.name), cluster)
    ]


async def end_server(pid: int, cluster: Path, child: subprocess.Popen[bytes] | None) -> None:
    """Stop the postmaster `pid`: fast (clients are cut, all is written out), then harder. Shielded, bounded.

    `child` is that process where it is our own; of another one only its working folder tells whose it is.
    """

    def lives() -> bool:
        return works_in(pid, cluster) if child is None else child.poll() is None

    for end_signal, seconds in (
        (signal.SIGINT, _FAST_SECONDS),
        (signal.SIGQUIT, _IMMEDIATE_SECONDS),
        (signal.SIGKILL, _IMMEDIATE_SECONDS),
    ):
        if not lives():
            break
        os.kill(pid, end_signal)
        with trio.move_on_after(seconds, shield=True):
            await until(lambda: not lives())
