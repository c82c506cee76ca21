"""Small renditions of covers for lists: made once, in a process with hard limits, and kept beside the original."""

import logging
import subprocess
import sys
from collections import OrderedDict
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import trio

from bookmark_appliance.covers.cover_files import CoverFiles, OpenFile

WIDTHS: Final = (240, 480)
"""Pixels; a phone shows a cover 120 wide, at two or three to one."""

CONTENT_TYPE: Final = "image/webp"

_SECONDS: Final = 15.0
"""By the clock; the script limits its own CPU time and memory."""
_MOST_BYTES: Final = 1024 * 1024
_FAILURE_SECONDS: Final = 3600.0
"""What failed is not tried at each request; the original is served meanwhile."""
_MOST_FAILURES: Final = 1_000

_SCRIPT: Final = Path(__file__).with_name("shrink.py")

_logger = logging.getLogger(__name__)


class Renditions:
    """Opens them, and makes those that are missing: one at a time, whoever asks."""

    def __init__(self, files: CoverFiles, pillow: Path | None = None) -> None:
        """`pillow` is the folder that holds the decoders' package, by default the installed one."""
        self._files = files
        self._pillow = pillow or _installed_pillow()
        self._turn = trio.Lock()
        self._failures: OrderedDict[str, float] = OrderedDict()

    async def open(self, address: str, width: int, original: OpenFile) -> OpenFile | None:
        """The rendition of `address`, which is open as `original`; None when it can't be made."""
        name = f"{address}.w{width}.webp"
        found = await self._open(name)
        if found is None and not self._has_failed(name):
            async with self._turn:
                # Whoever had to wait may find it made meanwhile.
                found = await self._open(name)
                if found is None and not self._has_failed(name):
                    found = await self._make(name, width, original)
        return found

    async def _open(self, name: str) -> OpenFile | None:
        try:
            return await self._files.run(self._files.open, name)
        except OSError:
            return None

    async def _make(self, name: str, width: int, original: OpenFile) -> OpenFile | None:
        try:
            command = [sys.executable, "-I", "-S", str(_SCRIPT), str(self._pillow), str(width)]
            body = await _run(command, original)
            await self._files.run(self._files.install, name, body)
            return await self._files.run(self._files.open, name)
        except (OSError, _Failed) as error:
            _logger.info("no rendition %s: %s", name, error)
            self._failures[name] = trio.current_time() + _FAILURE_SECONDS
            if len(self._failures) > _MOST_FAILURES:
                self._failures.popitem(last=False)
            return None

    def _has_failed(self, name: str) -> bool:
        return trio.current_time() < self._failures.get(name, 0.0)


class _Failed(Exception):
    """The process came to nothing."""


async def _run(command: list[str], original: OpenFile) -> bytes:
    """What `command` makes of the file. Raises _Failed; the process is gone in any case."""
    body = bytearray()
    process = await trio.lowlevel.open_process(
        command, stdin=original.descriptor, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/", env={}
    )
    assert process.stdout is not None
    try:
        with trio.fail_after(_SECONDS):
            async for piece in process.stdout:
                body += piece
                if len(body) > _MOST_BYTES:
                    raise _Failed("too large")
            status = await process.wait()
    except trio.TooSlowError:
        raise _Failed("too slow") from None
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.stdout.aclose()
            await process.wait()
    if status or not body:
        raise _Failed(f"exit status {status}")
    return bytes(body)


def _installed_pillow() -> Path:
    """Found without being imported: the service has no use for it in its own memory."""
    found = find_spec("PIL")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent.parent
