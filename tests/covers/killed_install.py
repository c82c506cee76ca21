"""Installs a cover over and over, each time killed with SIGKILL one line later, until one comes to its end.

A process of its own, since it forks. After each kill the folder must hold the whole file or none, and a second install
must heal it; the last line on standard output is the number of kills.
"""

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from bookmark_appliance import durable
from bookmark_appliance.clock import HOUR_MS
from bookmark_appliance.covers import cover_files
from bookmark_appliance.covers.cover_files import CoverFiles, relative_path

ADDRESS = "0123" * 16
BODY = bytes(range(256)) * 1_000


def killed_at(line: int, work: Callable[[], None]) -> bool:
    """Run `work` in a process that is killed before its line number `line` of ours; whether it came to it."""
    child = os.fork()
    if child == 0:
        left = line

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal left
            if frame.f_code.co_filename not in (cover_files.__file__, durable.__file__):
                return None
            if event == "line":
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace

        sys.settrace(trace)
        work()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL), status
    return status == signal.SIGKILL


def main(folder: Path) -> int:
    """The number of lines at which it was killed."""
    kills = 0
    files = CoverFiles(folder)
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        if not killed_at(kills + 1, lambda: files.install(ADDRESS, BODY)):
            return kills
        kills += 1
        path = folder / relative_path(ADDRESS)
        assert not path.exists() or path.read_bytes() == BODY, f"half a file after {kills} lines"
        files.install(ADDRESS, BODY)
        assert path.read_bytes() == BODY
        files.sweep(ADDRESS[:2], time.time_ns() // 1_000_000 + 2 * HOUR_MS)
        assert os.listdir(path.parent) == [ADDRESS]


if __name__ == "__main__":
    print(main(Path(sys.argv[1])))
