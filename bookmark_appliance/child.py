"""Programs that we start, and that end with us however we end."""

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from signal import Signals
from typing import IO

from bookmark_appliance import launch


def start_child(
    command: Sequence[str],
    *,
    uid: int,
    gid: int,
    environ: Mapping[str, str],
    ends_with_us: Signals | None = None,
    stdout: IO[bytes] | int = subprocess.DEVNULL,
    stderr: IO[bytes] | int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start a program as a user of its own, if we are root, with its whole environment.

    `ends_with_us` is the signal it gets when we are gone. Must be called from the thread that lives as long as the
    child: the parent-death signal comes when the *thread* that made it ends, and Trio's own process starter uses a
    worker thread.
    """
    assert threading.current_thread() is threading.main_thread()
    becomes = [sys.executable, "-I", "-S", launch.__file__, *map(str, (uid, gid, os.getpid(), int(ends_with_us or 0)))]
    return subprocess.Popen(  # noqa: S603 - our own program and arguments
        [*becomes, *command],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        cwd="/",
        env=dict(environ),
        # A Ctrl-C at the terminal is ours alone: the child is stopped last of all.
        start_new_session=True,
    )
