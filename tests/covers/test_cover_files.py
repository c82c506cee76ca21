"""The cover folder: what stands in it is whole, durable and what its name says."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookmark_appliance.clock import HOUR_MS
from bookmark_appliance.covers.cover_files import CoverFiles, is_address, relative_path
from tests.open_folder import open_folder
from tests.serving_process import ROOT

ADDRESS = "0123456789abcdef" * 4
BODY = b"x" * 200_000


@pytest.fixture
def files(tmp_path: Path) -> CoverFiles:
    """An empty folder."""
    return CoverFiles(tmp_path)


def stored(files: CoverFiles) -> list[str]:
    return sorted(str(path.relative_to(files.folder)) for path in files.folder.rglob("*") if path.is_file())


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """A disk that is full after so many bytes: the kernel refuses the next one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def nobody() -> Iterator[None]:
    """As a user who may write nothing here; root may everywhere."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if user == 0:
            os.seteuid(user)


def test_the_layout_is_that_of_the_earlier_deployment(files: CoverFiles) -> None:
    """COV-017: `<first 2>/<next 2>/<address>`."""
    files.install(ADDRESS, BODY)
    assert stored(files) == [f"01/23/{ADDRESS}"] == [relative_path(ADDRESS)]
    assert CoverFiles(files.folder).open(ADDRESS).read(0, len(BODY) + 1) == BODY


def test_an_existing_object_is_never_overwritten(files: CoverFiles) -> None:
    """COV-018: also when it appears between the look and the link."""
    files.install(ADDRESS, BODY)
    files.install(ADDRESS, b"other")
    assert files.path(ADDRESS).read_bytes() == BODY
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "exists", lambda path: False)
        files.install(ADDRESS, b"other")
    assert files.path(ADDRESS).read_bytes() == BODY
    assert stored(files) == [relative_path(ADDRESS)]


def test_bytes_are_on_the_disk_before_the_name_and_the_name_before_the_answer(
    files: CoverFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """COV-018: file, link, then each folder up to the root; the folders also where the object was there."""
    done: list[str] = []
    flush, link = os.fsync, os.link

    def recorded_flush(descriptor: int) -> None:
        done.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        flush(descriptor)

    def recorded_link(source: Path, target: Path) -> None:
        done.append("link")
        link(source, target)

    monkeypatch.setattr(os, "fsync", recorded_flush)
    monkeypatch.setattr(os, "link", recorded_link)
    files.install(ADDRESS, BODY)
    temporary, *rest = done
    assert temporary.startswith(".new-")
    assert rest == ["link", "23", "01", files.folder.name]
    done.clear()
    files.install(ADDRESS, BODY)
    assert done == ["23", "01", files.folder.name]


def test_an_install_that_is_killed_at_any_line_leaves_the_whole_file_or_none() -> None:
    """COV-018: and the next one heals it; what is left behind is swept."""
    with open_folder() as folder:
        command = [sys.executable, "-m", "tests.covers.killed_install", str(folder / "covers")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20


def test_a_full_disk_leaves_nothing(files: CoverFiles) -> None:
    """COV-018: no half file, no temporary one; it works again once there is room."""
    with no_file_larger_than(100_000), pytest.raises(OSError, match="too large"):
        files.install(ADDRESS, BODY)
    assert stored(files) == []
    files.install(ADDRESS, BODY)
    assert files.path(ADDRESS).read_bytes() == BODY


def test_a_folder_that_cannot_be_written_is_an_error_and_its_files_are_served() -> None:
    """COV-018, COV-028: what stands there can still be read."""
    with open_folder() as folder:
        files = CoverFiles(folder)
        files.install(ADDRESS, BODY)
        folder.chmod(0o555)
        with nobody():
            with pytest.raises(PermissionError):
                files.install("ab" * 32, BODY)
            assert files.open(ADDRESS).read(0, 3) == b"xxx"
        assert stored(files) == [relative_path(ADDRESS)]


def test_only_what_a_killed_install_left_long_ago_is_swept(files: CoverFiles) -> None:
    """COV-018: an hour by the file's own time; another process may be writing the younger ones."""
    files.install(ADDRESS, BODY)
    old, young = (files.path(ADDRESS).parent / f".new-{name}" for name in ("old", "young"))
    for path, minutes in ((old, 61), (young, 59), (files.path(ADDRESS), 600)):
        path.touch()
        moment = 10**18 - minutes * 60 * 10**9
        os.utime(path, ns=(moment, moment))
    (files.folder / "stray").touch()
    (files.folder / "01" / "stray").touch()
    files.sweep(ADDRESS[:2], 10**12)
    assert not old.exists()
    assert young.exists()
    assert files.exists(ADDRESS)
    files.sweep(ADDRESS[:2], 10**12 + HOUR_MS)
    assert not young.exists()


@given(st.text() | st.text("0123456789abcdefA./", min_size=63, max_size=65))
def test_only_64_lower_case_digits_are_an_address(text: str) -> None:
    """COV-028: whatever else is asked for never becomes a path."""
    assert is_address(text) == (len(text) == 64 and set(text) <= set("0123456789abcdef"))


def test_a_line_end_or_digits_of_another_script_are_no_address() -> None:
    """COV-028: what a laxer pattern would let pass."""
    assert is_address(ADDRESS)
    for text in (ADDRESS + "\n", ADDRESS[:-1] + "\u0661", ADDRESS.upper(), ADDRESS[:-1], ADDRESS + "0", ""):
        assert not is_address(text)


def test_links_folders_and_pipes_are_not_opened(files: CoverFiles, tmp_path_factory: pytest.TempPathFactory) -> None:
    """COV-030: nothing but an ordinary file in the very place is ever read, and a pipe holds nobody up."""
    secret = tmp_path_factory.mktemp("elsewhere") / "secret"
    secret.write_text("secret")
    path = files.path(ADDRESS)
    path.parent.mkdir(parents=True)
    refused = pytest.raises(OSError, match=r"not a file|symbolic links")
    path.symlink_to(secret)
    with refused:
        files.open(ADDRESS)
    path.unlink()
    os.mkfifo(path)
    with refused:
        files.open(ADDRESS)
    path.unlink()
    path.mkdir()
    with refused:
        files.open(ADDRESS)


def test_an_open_file_is_closed_with_its_last_reference(files: CoverFiles) -> None:
    """COV-027: however an answer ends, no descriptor is left."""
    files.install(ADDRESS, BODY)
    before = os.listdir("/proc/self/fd")
    file = files.open(ADDRESS)
    assert len(os.listdir("/proc/self/fd")) == len(before) + 1
    file.close()
    file.close()
    del file
    files.open(ADDRESS)
    assert len(os.listdir("/proc/self/fd")) == len(before)
