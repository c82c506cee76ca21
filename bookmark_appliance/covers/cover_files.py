"""The cover folder: content-addressed files, put in place whole and durable, or not at all (COV-016 to COV-018).

Several processes share the folder, and any of them may be killed at any step. What isn't `async` here blocks, and is
handed to `CoverFiles.run`.
"""

import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import trio

from bookmark_appliance.clock import HOUR_MS
from bookmark_appliance.durable import sync_folder

T = TypeVar("T")

PREFIXES: Final = tuple(f"{number:02x}" for number in range(256))
"""The names of the folder's own folders, in order."""

_ADDRESS: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)

_TEMPORARY: Final = ".new-"
_LEFT_BEHIND_MS: Final = HOUR_MS
"""No install takes so long: a temporary file of this age was left behind by a process that was killed."""

_THREADS: Final = 4


def is_address(text: str) -> bool:
    """Whether `text` may be asked for as a file of ours: the one gate before every path (COV-028)."""
    return _ADDRESS.fullmatch(text) is not None


def relative_path(address: str) -> str:
    """Where the file of `address` lies under the cover folder (COV-017)."""
    return f"{address[:2]}/{address[2:4]}/{address}"


class OpenFile:
    """A file to read from at any offset. Closed with `close`, or with the last reference: an answer that was cut off
    may never come to it."""

    def __init__(self, path: Path) -> None:
        """Raises FileNotFoundError when there is none, another OSError when it can't be had or is no ordinary file."""
        self.descriptor = -1
        # Neither a link nor a pipe may lead or hold us anywhere.
        self.descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        found = os.fstat(self.descriptor)
        self.size = found.st_size
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a file", str(path))

    def close(self) -> None:
        """Once or more often."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    __del__ = close

    def read_cached(self, offset: int, length: int) -> bytes:
        """What of that stands in memory; empty when nothing does. Never waits for a disk."""
        buffer = bytearray(length)
        try:
            return bytes(memoryview(buffer)[: os.preadv(self.descriptor, [buffer], offset, os.RWF_NOWAIT)])
        except OSError:  # nothing, or a filesystem that can't tell
            return b""

    def read(self, offset: int, length: int) -> bytes:
        """The same from the disk; fewer bytes only at the end."""
        return os.pread(self.descriptor, length, offset)


@dataclass(frozen=True, slots=True)
class CoverFiles:
    """Under `folder`, which exists. A name is an address, or an address with a suffix: what was made of that cover."""

    folder: Path
    _limiter: trio.CapacityLimiter = field(default_factory=lambda: trio.CapacityLimiter(_THREADS))

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        """Do blocking work in one of a few threads of our own; not cut short, since it may be half done."""
        return await trio.to_thread.run_sync(work, *arguments, limiter=self._limiter)

    async def read(self, file: OpenFile, offset: int, length: int) -> bytes:
        """So many bytes, fewer at the end of the file: at once where they stand in memory, else in a thread."""
        cached = file.read_cached(offset, length)
        return cached if len(cached) == length else await self.run(file.read, offset, length)

    def path(self, name: str) -> Path:
        """The file of this name."""
        return self.folder / relative_path(name)

    def open(self, name: str) -> OpenFile:
        """Raises FileNotFoundError when there is none, another OSError when it can't be had."""
        return OpenFile(self.path(name))

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        return self.path(name).is_file()

    def is_empty(self) -> bool:
        """Whether nothing was ever kept here; a folder that is missing is empty too."""
        with suppress(FileNotFoundError):
            return not any(self.folder.iterdir())
        return True

    def install(self, name: str, body: bytes) -> None:
        """Put `body` in place, on the disk when this returns; what stands there already is left as it is.

        Raises OSError (a full disk, a folder that can't be written): then nothing has been put in place.
        """
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            temporary = path.parent / f"{_TEMPORARY}{secrets.token_hex(8)}"
            try:
                _write(temporary, body)
                with suppress(FileExistsError):
                    os.link(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)
        # Also when it was there: another process may have been cut off before it came to this.
        for folder in (path.parent, path.parent.parent, self.folder):
            sync_folder(folder)

    def remove(self, address: str) -> None:
        """Take away the file of `address` and all that was made of it; none there is no error."""
        folder = self.path(address).parent
        with suppress(FileNotFoundError):
            for name in sorted(os.listdir(folder), reverse=True):  # the cover itself last
                if name.startswith(address):
                    (folder / name).unlink(missing_ok=True)
            sync_folder(folder)

    def names_under(self, prefix: str) -> set[str]:
        """Of every file in this one of PREFIXES the path relative to the cover folder, temporary ones aside."""
        return {f"{prefix}/{folder}/{name}" for folder, name in self._walk(prefix) if not name.startswith(_TEMPORARY)}

    def sweep(self, prefix: str, now_ms: int) -> None:
        """Remove what killed installs left behind under this one of PREFIXES. Raises OSError where it can't."""
        for folder, name in self._walk(prefix):
            if name.startswith(_TEMPORARY):
                _remove_old(self.folder / prefix / folder / name, now_ms - _LEFT_BEHIND_MS)

    def _walk(self, prefix: str) -> Iterator[tuple[str, str]]:
        with suppress(FileNotFoundError, NotADirectoryError):
            for folder in os.listdir(self.folder / prefix):
                with suppress(FileNotFoundError, NotADirectoryError):
                    for name in os.listdir(self.folder / prefix / folder):
                        yield folder, name


def _write(path: Path, body: bytes) -> None:
    with path.open("xb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())


def _remove_old(path: Path, before_ms: int) -> None:
    with suppress(FileNotFoundError):
        if path.stat().st_mtime_ns // 1_000_000 < before_ms:
            path.unlink()
