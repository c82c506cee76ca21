"""Where the one file unpacks itself: a folder a build, safe against concurrent starts, kills and power cuts.

build.py lays this module beside the archive's `__main__.py`. Standard library only: nothing else is importable yet.

    ROOT/BUILD_ID/in-use      a shared lock is held on it as long as a process of that build lives
    ROOT/BUILD_ID/unpacked/   complete, or not there at all

The operating system drops the locks of a killed process, so there is no stale state to clean by hand.
"""

import fcntl
import json
import os
import shutil
import stat
import sys
import tempfile
import zipfile
import zipimport
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

NAME = "bookmark-appliance"
USAGE_EXIT = 2
INTERRUPTED_EXIT = 130
_PRUNED = ".pruned"

_locks: list[int] = []
"""Descriptors that stay open for the life of the process."""


def run(archive: str) -> None:
    """Unpack `archive` unless it is, remove builds that nobody uses, start the appliance. Does not return."""
    bootstrap = import_module("_bootstrap")
    try:
        root = cache_root()
        build_id = json.loads(zipimport.zipimporter(archive).get_data(os.path.join(archive, "environment.json")))[
            "build_id"
        ]
        folder = root / build_id
        _locks.append(hold(folder))
        unpack(bootstrap, archive, folder)
        prune(root, build_id)
    except (OSError, zipfile.BadZipFile) as error:
        print(f"{NAME}: cannot unpack itself: {error}", file=sys.stderr)
        sys.exit(USAGE_EXIT)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED_EXIT)
    # Left alone, shiv unpacks to ~/.shiv under a name that follows the file's, and never prunes (docs/TRAPS.md 25).
    setattr(bootstrap, "cache_path", lambda *_: folder / "unpacked")  # noqa: B010 - a module known at run time only
    bootstrap.bootstrap()


def cache_root() -> Path:
    """The first place that is this user's own, closed to other writers, and able to hold executables.

    `SHIV_ROOT`, `XDG_CACHE_HOME` or `~/.cache`, or a private folder in the temporary directory when there is no home.
    Raises OSError, naming what was tried, when none of them will do.
    """
    tried = []
    for folder in _candidates():
        trouble = _trouble_with(folder)
        if not trouble:
            return folder
        tried.append(f"{folder}: {trouble}")
    raise OSError("no folder to unpack into (" + "; ".join(tried) + "); set XDG_CACHE_HOME to one")


def _candidates() -> Iterator[Path]:
    chosen = os.environ.get("SHIV_ROOT")
    if chosen:
        yield Path(chosen, NAME).absolute()
        return
    for base in (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~/.cache")):
        if os.path.isabs(base):  # `~` stays as it is for a user without a home; the convention ignores relative paths
            yield Path(base, NAME)
    yield Path(tempfile.gettempdir(), f"{NAME}-{os.geteuid()}")


def _trouble_with(folder: Path) -> str:
    """Why `folder`, made where it is missing, is not fit to hold code that this process will run; empty when it is."""
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        mount = os.statvfs(folder)
    except OSError as error:
        return error.strerror or str(error)
    if not stat.S_ISDIR(found.st_mode):
        return "not a folder"
    if found.st_uid != os.geteuid():
        return "belongs to another user"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "other users may write to it"
    if mount.f_flag & os.ST_NOEXEC:
        return "mounted noexec"
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        return "not writable"
    return ""


def hold(folder: Path, operation: int = fcntl.LOCK_SH) -> int:
    """Lock `folder`, made where it is missing, against its removal; the descriptor is the lock.

    Raises BlockingIOError when `operation` carries LOCK_NB and another process is in the way.
    """
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / "in-use"
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue  # pruned between the two steps
        try:
            fcntl.flock(lock, operation)
            if os.path.samestat(os.fstat(lock), path.stat()):
                return lock
        except FileNotFoundError:
            pass  # pruned while we waited for the lock: begin again in a new folder
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


def unpack(bootstrap: Any, archive: str, folder: Path) -> None:
    """Make `folder/unpacked` complete and durable; the first of several concurrent starts does it, the others wait."""
    unpacked = folder / "unpacked"
    if unpacked.exists():
        return
    with bootstrap.FileLock(folder / "unpacking"):
        if unpacked.exists():
            return
        partial = folder / "partial"
        with zipfile.ZipFile(archive) as opened:
            bootstrap.extract_site_packages(opened, partial, force=True)
        # A name that survives a power cut while the bytes behind it do not would break every later start.
        flush_filesystem(partial)
        partial.rename(unpacked)


def flush_filesystem(folder: Path) -> None:
    """Write what the filesystem of `folder` still holds in memory to the disk."""
    import ctypes  # only the first start of a build pays for it

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        ctypes.CDLL(None).syncfs(descriptor)
    finally:
        os.close(descriptor)


def prune(root: Path, keep: str) -> None:
    """Remove each build under `root` but `keep` that no process has in use."""
    for folder in root.iterdir():
        if folder.name == keep or not folder.is_dir():
            continue
        if folder.suffix != _PRUNED:
            try:
                lock = hold(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            try:
                # Renamed first: a kill in the middle of the removal leaves no half build under a good name.
                folder = folder.rename(folder.with_suffix(_PRUNED))
            except OSError:
                continue
            finally:
                os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)
