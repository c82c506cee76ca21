"""PostgreSQL in the data folder: started when nobody else has, joined when somebody has, stopped by the last one.

Two locks, both given back by the kernel when a process dies:

- `postgres.users`, shared by everyone who uses the server; whoever gets it alone knows that nobody does.
- `postgres.turn`, held for a moment while deciding: start, join, stop.

`serve` always makes its own server: what it finds running without a user is the stray of a killed process and is
stopped; while another command uses one it waits. Its server is ended by the kernel together with it. Other commands
join what runs, or start a server that the last of them stops. That there is one `serve` a data folder is seen to
elsewhere (`data_folder.held_by_serve`).
"""

import logging
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio
from psycopg.conninfo import make_conninfo

from bookmark_appliance.durable import sync_folder
from bookmark_appliance.postgres.connecting import DatabaseError
from bookmark_appliance.postgres.file_lock import FileLock
from bookmark_appliance.postgres.files import MAJOR, PostgresFiles, prepare_files, prune_programs
from bookmark_appliance.postgres.polling import POLL_SECONDS, until
from bookmark_appliance.postgres.process import (
    end_server,
    launch,
    read_postmaster,
    server_arguments,
    server_processes,
    works_in,
)

logger = logging.getLogger(__name__)

_ROLE: Final = "bookmark"
_MAP: Final = "appliance"

_SAY_SECONDS: Final = 5.0
"""Between two lines that say what is being waited for."""

_ORPHAN_SECONDS: Final = 10.0
"""How long the processes of a killed postmaster may take to notice; about one second is usual."""

_BIGGEST_LOG: Final = 1_000_000
"""Bytes; a larger log of the server is emptied at the next start."""


class EmbeddedFailed(DatabaseError):
    """The server did not start; its own log says why."""


class EmbeddedPostgres:
    """The server of one data folder, as one process uses it. See embedded_postgres for the usual way."""

    def __init__(self, data_dir: Path, *, serve: bool, settings: Mapping[str, str]) -> None:
        data_dir = data_dir.resolve()
        self._data_dir = data_dir
        self._serve = serve
        self._settings = settings
        self._child: subprocess.Popen[bytes] | None = None
        self._files: PostgresFiles | None = None
        self._users = FileLock(data_dir / "postgres.users")
        self._turn = FileLock(data_dir / "postgres.turn")

    @property
    def conninfo(self) -> str:
        """How to connect. Nothing in it is secret: the socket's folder and the peer's user are what lets in."""
        assert self._files is not None
        return make_conninfo("", host=str(self._files.socket_folder), user=_ROLE, dbname="postgres")

    async def start(self) -> None:
        """Start or join the server; return when it answers. Raises EmbeddedRefused or EmbeddedFailed."""
        self._files = prepare_files(self._data_dir)
        try:
            if self._serve:
                await self._start_own(self._files)
            else:
                await self._join_or_start(self._files)
        except BaseException:
            with trio.CancelScope(shield=True):
                await self.stop()
            raise

    async def stop(self) -> None:
        """Let go of the server, and end it if it is ours or nobody uses it any more."""
        assert self._files is not None
        async with self._turn.turn():
            self._users.release()
            if (self._serve and self._child is not None) or self._users.try_exclusive():
                await _end_any(self._files, self._child)
            self._users.release()

    async def wait_ended(self) -> None:
        """Return when the server that `serve` started has ended by itself. For a supervisor: nothing restarts it."""
        assert self._child is not None
        child = self._child
        await until(lambda: child.poll() is not None, every_seconds=1)

    async def _start_own(self, files: PostgresFiles) -> None:
        said = trio.current_time()
        while True:
            async with self._turn.turn():
                if self._users.try_exclusive():
                    await _end_any(files, None)
                    prune_programs(self._data_dir, files.programs)
                    await self._start_new(files, ends_with_us=signal.SIGINT)
                    self._users.try_shared()
                    return
            if trio.current_time() - said > _SAY_SECONDS:
                said = trio.current_time()
                logger.info("waiting for another command to finish with the database")
            await trio.sleep(10 * POLL_SECONDS)

    async def _join_or_start(self, files: PostgresFiles) -> None:
        async with self._turn.turn():
            self._users.try_shared()
            found = read_postmaster(files.cluster)
            if found is not None and works_in(found[0], files.cluster) and await _is_ready(files, None):
                return
            # Not ended with us: another command may join it, and then the last one stops it.
            await self._start_new(files, ends_with_us=None)

    async def _start_new(self, files: PostgresFiles, *, ends_with_us: signal.Signals | None) -> None:
        files.log.touch(mode=0o600)
        if files.log.stat().st_size > _BIGGEST_LOG:
            os.truncate(files.log, 0)
        await _init_if_new(files)
        _write_access_rules(files)
        await _clear_remains(files.cluster)
        arguments = server_arguments(files, self._settings)
        self._child = launch(files, "postgres", arguments, ends_with_us=ends_with_us)
        if not await _is_ready(files, self._child):
            raise EmbeddedFailed(f"PostgreSQL did not start; see {files.log}")


@asynccontextmanager
async def embedded_postgres(
    data_dir: Path, *, serve: bool = False, settings: Mapping[str, str] | None = None
) -> AsyncIterator[EmbeddedPostgres]:
    """Use the PostgreSQL of this data folder for a block; `serve` tells whether we are the one that serves.

    The folder must be there; `settings` are added to the server's own, over them. Raises EmbeddedRefused or
    EmbeddedFailed. Must be entered from the main thread (see postgres.process.launch).
    """
    server = EmbeddedPostgres(data_dir, serve=serve, settings=settings or {})
    await server.start()
    try:
        yield server
    finally:
        with trio.CancelScope(shield=True):
            await server.stop()


async def _is_ready(files: PostgresFiles, child: subprocess.Popen[bytes] | None) -> bool:
    """Wait until the server answers (true) or has ended (false). Crash recovery takes as long as it takes."""
    said = trio.current_time()
    while True:
        pid, state = read_postmaster(files.cluster) or (0, "")
        if state == "ready" and (child is None or child.pid == pid):
            return True
        if (child.poll() is not None) if child is not None else not works_in(pid, files.cluster):
            return False
        if trio.current_time() - said > _SAY_SECONDS:
            said = trio.current_time()
            logger.info("waiting for PostgreSQL, which recovers from an unclean stop")
        await trio.sleep(POLL_SECONDS)


async def _end_any(files: PostgresFiles, child: subprocess.Popen[bytes] | None) -> None:
    """End `child`, which need not have come as far as its pid file, or else whatever the pid file names."""
    if child is not None and child.poll() is None:
        await end_server(child.pid, files.cluster, child)
    elif (found := read_postmaster(files.cluster)) is not None:
        await end_server(found[0], files.cluster, None)


async def _clear_remains(cluster: Path) -> None:
    """After an unclean end: wait for the last orphan, and remove a pid file that names a stranger."""
    if read_postmaster(cluster) is None:
        return
    with trio.move_on_after(_ORPHAN_SECONDS):
        await until(lambda: not server_processes(cluster))
        (cluster / "postmaster.pid").unlink(missing_ok=True)


async def _init_if_new(files: PostgresFiles) -> None:
    """Make the cluster beside its place and move it there when it is whole."""
    version_file = files.cluster / "PG_VERSION"
    if version_file.exists():
        if (found := version_file.read_text().strip()) != str(MAJOR):
            raise EmbeddedFailed(f"{files.cluster} was made by PostgreSQL {found}; this one is {MAJOR}")
        return
    unfinished = files.cluster.with_name("postgres.new")
    with trio.move_on_after(_ORPHAN_SECONDS):  # what a killed start left may still be writing there
        await until(lambda: not server_processes(unfinished))
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    os.chown(unfinished, files.user.uid, files.user.gid)
    arguments = [
        *("-D", str(unfinished), "-U", _ROLE),
        # The builtin provider sorts by code point and knows upper and lower case of all of Unicode, whatever locales
        # and libraries the machine has.
        *("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
        *("--auth-local=peer", "--auth-host=reject", "--no-instructions"),
    ]
    child = launch(files, "initdb", arguments, ends_with_us=signal.SIGKILL)
    try:
        await until(lambda: child.poll() is not None)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)  # a session of its own: the server that it runs goes as well
            child.wait()
    if child.returncode != 0:
        raise EmbeddedFailed(f"the database could not be made; see {files.log}")
    unfinished.rename(files.cluster)
    sync_folder(files.cluster.parent)  # initdb synced the files, not the name that they now lie under


def _write_access_rules(files: PostgresFiles) -> None:
    """Only over the socket, and only the service user and, where that is another one, root."""
    names = sorted({files.user.name, "root"} if os.geteuid() == 0 else {files.user.name})
    files.access_rules.write_text(f"local all {_ROLE} peer map={_MAP}\n")
    files.access_names.write_text("".join(f'{_MAP} "{name}" {_ROLE}\n' for name in names))
    for path in (files.access_rules, files.access_names):
        path.chmod(0o644)
