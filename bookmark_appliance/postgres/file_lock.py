"""A lock between processes that the kernel gives back when its holder dies, however it dies."""

import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bookmark_appliance.postgres.polling import until


class FileLock:
    """An advisory lock on a file, made when it is not there (mode 0600) and never removed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def try_exclusive(self) -> bool:
        """Take it alone, or turn a shared hold into an exclusive one. False when someone else holds it."""
        return self._try(fcntl.LOCK_EX)

    def try_shared(self) -> bool:
        """Take it beside other sharers, or turn an exclusive hold into a shared one."""
        return self._try(fcntl.LOCK_SH)

    def _try(self, kind: int) -> bool:
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            # A failed change of kind may have given up the hold that there was: hold nothing, in all cases.
            self.release()
            return False
        return True

    def release(self) -> None:
        """Give it back; does nothing when it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold it exclusively for a block, waiting as long as it takes."""
        await until(self.try_exclusive)
        try:
            yield
        finally:
            self.release()
