"""A folder for a bench: on the disk, since every commit shall reach it."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def disk_folder() -> Iterator[Path]:
    """A new folder that the embedded server, which may run as another user, can pass through; gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="bookmark-bench-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
