"""Folders for data that an embedded server works in."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MEMORY = "/dev/shm"
_ROOM = 2 << 30
"""Bytes."""


@contextmanager
def open_folder() -> Iterator[Path]:
    """A new folder that every user may pass through: as root the server runs as another one, and pytest's are closed.

    In memory where that is to be had, since making clusters and databases mostly waits for the disk.
    """
    folder = Path(tempfile.mkdtemp(prefix="bookmark-tests-", dir=_MEMORY if _memory_will_do() else None))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _memory_will_do() -> bool:
    try:
        found = os.statvfs(_MEMORY)
    except OSError:
        return False
    return (
        os.access(_MEMORY, os.W_OK | os.X_OK)
        and found.f_bavail * found.f_frsize > _ROOM
        and not found.f_flag & os.ST_NOEXEC  # the server's programs may be copied beside its data
    )
