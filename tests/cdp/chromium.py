"""A real Chromium for the tests: started with a profile of its own, always ended by its own process group."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

CHROMIUM = shutil.which("chromium")
START_SECONDS = 60.0

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-popup-blocking",  # so that there is something to close
    "--ignore-certificate-errors",  # of pages on this machine alone, in a profile that goes
)


class Chromium:
    """A browser whose every name leads to `pages_port` on loopback, by TLS; a block starts and ends it."""

    def __init__(self, pages_port: int) -> None:
        self._pages_port = pages_port
        self._profile = Path(tempfile.mkdtemp(prefix="chromium-"))
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def endpoint(self) -> str:
        """The value of BROWSER_WS_URL."""
        return f"ws://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, on the port that it had before; it answers when this returns."""
        assert CHROMIUM is not None
        for stale in self._profile.glob("Singleton*"):
            stale.unlink()
        command = [
            CHROMIUM,
            *FLAGS,
            f"--remote-debugging-port={self.port}",
            f"--user-data-dir={self._profile}",
            f"--host-resolver-rules=MAP * 127.0.0.1:{self._pages_port}, EXCLUDE 127.0.0.1",
        ]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
        give_up = time.monotonic() + START_SECONDS
        while not self._answers():
            assert self._process.poll() is None, "Chromium ended at its start"
            assert time.monotonic() < give_up, "Chromium does not come up"
            time.sleep(0.02)

    def _answers(self) -> bool:
        told = self._profile / "DevToolsActivePort"  # written for a port that it chose itself
        if not self.port and told.exists() and (first := told.read_text().split()):
            self.port = int(first[0])
        try:
            return bool(self.port) and bool(self._get("/json/version"))
        except (OSError, http.client.HTTPException):
            return False

    def _get(self, target: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", target)
            return json.load(connection.getresponse())
        finally:
            connection.close()

    def kill(self) -> None:
        """End it as a crash does, all its processes at once."""
        process, self._process = self._process, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def pause(self, *, on: bool) -> None:
        """Stop its processes where they stand, or let them go on."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGSTOP if on else signal.SIGCONT)

    def pids(self) -> set[int]:
        """Every process of its group."""
        assert self._process is not None
        told = subprocess.run(["ps", "-o", "pid=", "-g", str(self._process.pid)], capture_output=True, check=True)
        return {int(word) for word in told.stdout.split()}

    def kill_renderers(self) -> None:
        """Kill the processes that show pages, as the kernel does when memory is short."""
        for pid in self.pids():
            if b"--type=renderer" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)

    def tabs(self) -> list[str]:
        """The addresses of the open tabs, Chromium's own pages aside."""
        pages = [target["url"] for target in self._get("/json/list") if target["type"] == "page"]
        return [url for url in pages if not url.startswith("chrome://")]

    def __enter__(self) -> "Chromium":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()
        shutil.rmtree(self._profile, ignore_errors=True)
