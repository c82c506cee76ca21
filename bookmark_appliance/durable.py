"""What makes a new name of a file last."""

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Put the names in `folder` on the disk: a synced file may still lack the one it was given. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
