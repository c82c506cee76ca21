"""`serve` as an operator runs it: a process of its own, in a folder of its own, with its words kept.

async with place.serve() as serve:
    await serve.listening()
    async with serve.client(place.credential()) as client:
        await client.put("/bookmarks/asura:brass-garden", json={...})
    serve.signal(signal.SIGTERM)
    assert await serve.ended() == 0
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg
import trio
from psycopg.conninfo import make_conninfo

from bookmark_appliance.credentials import derive_credential
from bookmark_appliance.postgres.files import socket_folder
from bookmark_appliance.postgres.polling import until
from bookmark_appliance.postgres.process import read_postmaster, server_processes
from bookmark_appliance.secret import Secret
from tests.simulated_sites import SimulatedSites

ROOT = Path(__file__).parent.parent
OWNER = "0"
"""Of local mode."""

START_SECONDS = 60.0
"""Bounds for a machine that is busy with other tests; what is promised is measured by tests/bench/serve.py."""
STOP_SECONDS = 40.0


class Serve:
    """One running `serve`, and everything it has written so far."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self.said = ""
        self.printed = ""
        """Its standard output."""
        self._more = trio.lowlevel.ParkingLot()
        self._silent = trio.Event()

    async def listen_to(self) -> None:
        """Keep what it writes until it has ended."""
        assert self.process.stderr is not None
        async for chunk in self.process.stderr:
            self.said += chunk.decode(errors="replace")
            self._more.unpark_all()
        self._silent.set()
        self._more.unpark_all()

    async def keep_printed(self) -> None:
        """Keep what it prints until it has ended."""
        assert self.process.stdout is not None
        async for chunk in self.process.stdout:
            self.printed += chunk.decode()
            self._more.unpark_all()

    async def prints(self, pattern: str) -> re.Match[str]:
        """Wait until it has printed a line that matches."""
        with trio.fail_after(START_SECONDS):
            while (found := re.search(pattern, self.printed, re.MULTILINE)) is None:
                await self._more.park()
        return found

    async def says(self, pattern: str, within: float = START_SECONDS) -> re.Match[str]:
        """Wait until it has written a line that matches; it fails at once when it ends without."""
        with trio.fail_after(within):
            while True:
                if found := re.search(pattern, self.said, re.MULTILINE):
                    return found
                assert not self._silent.is_set(), f"ended without saying {pattern!r}:\n{self.said}"
                await self._more.park()

    async def listening(self) -> str:
        """Wait for it; the address."""
        return (await self.says(r"listening on (http://\S+)\n"))[1]

    @property
    def address(self) -> str:
        """Where it listens."""
        found = re.search(r"listening on (http://\S+)\n", self.said)
        assert found, self.said
        return found[1]

    def client(self, credential: str = "") -> httpx.AsyncClient:
        """A client that carries this credential. Open it with `async with`."""
        headers = {"Authorization": f"Bearer {credential}"} if credential else {}
        return httpx.AsyncClient(base_url=self.address, headers=headers, trust_env=False, timeout=20)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it alone."""
        self.process.send_signal(number)

    async def ended(self, within: float = STOP_SECONDS) -> int:
        """Wait until it has ended and said its last word; the exit code, negative for a signal."""
        with trio.fail_after(within):
            code = await self.process.wait()
            await self._silent.wait()
        return code


@dataclass
class Place:
    """A folder with the data folder, the `.env` beside it, and the environment of the commands run there."""

    folder: Path
    environ: dict[str, str] = field(default_factory=lambda: {"PORT": "0"})
    python_path: tuple[Path, ...] = ()
    """Where Python looks first."""

    @property
    def data(self) -> Path:
        """DATA_DIR, where nothing else was set."""
        return self.folder / "data"

    @property
    def cluster(self) -> Path:
        """The folder of embedded Postgres."""
        return self.data / "postgres"

    def reads(self, sites: SimulatedSites) -> None:
        """Let the appliance find the simulated Sites, through the settings file."""
        (self.folder / ".env").write_text(f"SITE_CONNECT_TO={sites.connect_to}\nSITE_CA_FILE={sites.ca_file}\n")

    @asynccontextmanager
    async def serve(self, *arguments: str) -> AsyncIterator[Serve]:
        """Start it; at the end of the block it is killed if it still runs."""
        try:
            async with self.start("serve", *arguments) as serve:
                yield serve
        finally:
            with trio.CancelScope(shield=True):
                # Of a killed one the kernel stops the server, which takes its time.
                await eventually(lambda: not server_processes(self.cluster))

    @asynccontextmanager
    async def start(self, *arguments: str) -> AsyncIterator[Serve]:
        """Start any command that goes on until it is told to end; killed at the end of the block as well."""
        process = await trio.lowlevel.open_process(
            self._command(*arguments),
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        serve = Serve(process)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve.listen_to)
            nursery.start_soon(serve.keep_printed)
            try:
                yield serve
            finally:
                with trio.CancelScope(shield=True):
                    if process.returncode is None:
                        process.kill()
                    await serve.ended()

    @asynccontextmanager
    async def browser(self, *, port: int = 0) -> AsyncIterator[Serve]:
        """Start the browser host on loopback; at the end of the block it is asked to end, so that no Chrome is left."""
        async with self.start("browser", "--listen", f"127.0.0.1:{port}", "--timezone", "Asia/Jakarta") as host:
            try:
                yield host
            finally:
                with trio.CancelScope(shield=True):
                    if host.process.returncode is None:
                        host.signal(signal.SIGTERM)
                    await host.ended()

    async def run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run another command to its end."""
        with trio.fail_after(START_SECONDS):
            return await trio.run_process(
                self._command(*arguments),
                cwd=self.folder,
                env=self._environment(),
                capture_stdout=True,
                capture_stderr=True,
                check=False,
            )

    def credential(self, discord_id: str = OWNER) -> str:
        """What this Reader's scripts hold: derived here, since a command would take a second to print the same."""
        key = self.environ.get("TOKEN_KEY") or (self.data / "token_key").read_text().strip()
        return derive_credential(Secret(key), discord_id, 0).reveal()

    async def fails(self, *arguments: str) -> tuple[int, str]:
        """Run `serve`, which must end by itself: the exit code and what it wrote."""
        ended = await self.run("serve", *arguments)
        assert ended.stdout == b""
        return ended.returncode, ended.stderr.decode()

    def sql(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        """One statement on the embedded server, which must be running; its rows."""
        conninfo = make_conninfo("", host=str(socket_folder(self.data)), user="bookmark", dbname="postgres")
        with psycopg.connect(conninfo, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def postmaster(self) -> int:
        """The pid of embedded Postgres."""
        found = read_postmaster(self.cluster)
        assert found is not None
        return found[0]

    def has_postgres(self) -> bool:
        """Whether any process of embedded Postgres lives, or its pid file stands."""
        return bool(server_processes(self.cluster)) or read_postmaster(self.cluster) is not None

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "bookmark_appliance", *arguments]

    def _environment(self) -> dict[str, str]:
        search = os.pathsep.join(map(str, (*self.python_path, ROOT)))
        return {"PATH": os.environ["PATH"], "PYTHONPATH": search, **self.environ}


async def eventually(condition: Callable[[], bool], within: float = STOP_SECONDS) -> None:
    """Wait for what no event announces."""
    with trio.fail_after(within):
        await until(condition)
