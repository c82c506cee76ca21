"""Small renditions: what they are, and what no image can do while one is made."""

import ast
import io
import os
import textwrap
from pathlib import Path

import pytest
import trio
from PIL import Image

from bookmark_appliance.covers import rendition, shrink
from bookmark_appliance.covers.cover_files import CoverFiles, OpenFile
from bookmark_appliance.covers.rendition import Renditions
from tests.covers.pictures import (
    animated_webp,
    encoded,
    filled_png,
    gif_of_size,
    jpeg_of_size,
    noisy_photo,
    png_of_size,
)
from tests.serving_process import eventually

ADDRESS = "ab" * 32
SMALL = f"{ADDRESS}.w240.webp"


@pytest.fixture
def files(tmp_path: Path) -> CoverFiles:
    """An empty folder."""
    return CoverFiles(tmp_path / "covers")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> None:
    (tmp_path / "covers").mkdir()


def put(files: CoverFiles, body: bytes) -> OpenFile:
    """The cover that renditions are made of."""
    files.remove(ADDRESS)
    files.install(ADDRESS, body)
    return files.open(ADDRESS)


async def made_of(files: CoverFiles, body: bytes, width: int = 240) -> Image.Image | None:
    """The rendition of these bytes, decoded; None where there is none."""
    made = await Renditions(files).open(ADDRESS, width, put(files, body))
    if made is None:
        return None
    image = Image.open(io.BytesIO(made.read(0, made.size)))
    assert image.format == "WEBP"
    image.load()
    return image


def fake_pillow(tmp_path: Path, evil: str) -> Path:
    """A package of decoders that does this instead."""
    package = tmp_path / "fake" / "PIL"
    package.mkdir(parents=True)
    plugins = ("AvifImagePlugin", "MpoImagePlugin", "TiffImagePlugin", "WebPImagePlugin")
    for name in ("__init__", "ImageOps", *plugins):
        (package / f"{name}.py").touch()
    (package / "Image.py").write_text(
        f"def preinit(): pass\ndef open(file, formats):\n{textwrap.indent(textwrap.dedent(evil), '    ')}\n"
    )
    return package.parent


def children() -> list[str]:
    """The processes that make renditions for this one, and those that it has not yet buried."""
    listed = " ".join(path.read_text() for path in Path("/proc/self/task").glob("*/children")).split()
    commands = [Path(f"/proc/{pid}/cmdline").read_text() for pid in listed]
    return [command for command in commands if "shrink.py" in command or not command]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "AVIF", "GIF"])
async def test_every_accepted_type_becomes_a_webp_as_wide_as_asked_for(files: CoverFiles, kind: str) -> None:
    """COV-019, COV-035: both widths, in proportion, kept beside the original."""
    body = encoded(Image.new("RGB", (960, 1440), "teal"), kind)
    for width, height in ((240, 360), (480, 720)):
        small = await made_of(files, body, width)
        assert small is not None
        assert small.size == (width, height)
    assert files.exists(f"{ADDRESS}.w480.webp")


async def test_a_small_image_is_not_made_larger_and_a_strip_is_bounded(files: CoverFiles) -> None:
    """COV-035: 100 by 150 stays so; 600 by 30,000 becomes no higher than three times the width."""
    small = await made_of(files, encoded(Image.new("RGB", (100, 150)), "PNG"))
    strip = await made_of(files, encoded(Image.new("RGB", (600, 30_000)), "PNG"))
    assert small is not None
    assert strip is not None
    assert (small.size, strip.size) == ((100, 150), (14, 720))


async def test_it_stands_upright_and_keeps_its_transparency(files: CoverFiles) -> None:
    """COV-035: an EXIF orientation is carried out, before the width is measured; alpha stays."""
    exif = Image.Exif()
    exif[0x0112] = 6
    lying = Image.new("RGB", (1440, 960), "blue")
    lying.paste("red", (0, 0, 100, 960))  # the left side, which is the top
    upright = await made_of(files, encoded(lying, "JPEG", exif=exif))
    assert upright is not None
    assert upright.size == (240, 360)
    red, _, blue = upright.getpixel((120, 4))  # type: ignore[misc]
    assert red > blue
    for kind in ("PNG", "GIF"):
        sheer = await made_of(files, encoded(Image.new("RGBA", (480, 720), (255, 0, 0, 0)), kind))
        assert sheer is not None
        assert sheer.mode == "RGBA"
        assert sheer.getpixel((5, 5))[3] == 0  # type: ignore[index]


async def test_of_many_frames_the_first_is_taken(files: CoverFiles) -> None:
    """COV-035: 10,000 frames cost what one does."""
    for body in (gif_of_size(8, 8, frames=10_000), animated_webp(10_000)):
        with trio.fail_after(10):
            small = await made_of(files, body)
        assert small is not None
        assert getattr(small, "n_frames", 1) == 1


async def test_a_large_cover_becomes_small(files: CoverFiles) -> None:
    """COV-035: of 1.3 MB at most 25 KB are left, of an image that is harder than covers are."""
    body = noisy_photo(1600, 2300, quality=78)
    assert len(body) > 1_200_000
    await made_of(files, body)
    assert files.open(SMALL).size < 25_000


async def test_what_is_no_image_or_too_large_has_no_rendition(files: CoverFiles) -> None:
    """COV-035: lying heads, 40 million pixels and one row, halves, text: nothing is made, no memory taken."""
    photo = noisy_photo(400, 600)
    whole = {kind: encoded(Image.open(io.BytesIO(photo)), kind) for kind in ("JPEG", "PNG", "WEBP", "AVIF")}
    bodies = [
        png_of_size(65_535, 65_535),
        gif_of_size(65_535, 65_535),
        jpeg_of_size(65_535, 65_535),
        filled_png(8_000, 5_001),
        *(body[: len(body) // 2] for body in whole.values()),
        b"GIF89a<script>",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"%!PS-Adobe-3.0 EPSF-3.0\n",
        b"",
    ]
    before = resident_bytes()
    for body in bodies:
        assert await made_of(files, body) is None, body[:40]
        assert files.names_under("ab") == {f"ab/ab/{ADDRESS}"}
    assert resident_bytes() - before < 25_000_000


async def test_forty_million_pixels_are_within_the_limits(files: CoverFiles) -> None:
    """COV-035: the memory that the process may take is enough for what is allowed."""
    small = await made_of(files, filled_png(5_000, 8_000))
    assert small is not None
    assert small.size == (240, 384)


def resident_bytes() -> int:
    """Of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    "evil",
    [
        pytest.param("bytearray(10**9)", id="eats memory"),
        pytest.param("import sys\nwhile True: sys.stdout.buffer.write(bytes(10**6))", id="writes for ever"),
        pytest.param("import sys\nsys.stdout.buffer.write(b'half')\nraise ValueError", id="fails half way"),
        pytest.param("import os\nos.kill(os.getpid(), 11)", id="crashes"),
        pytest.param("import os\nos.open('/dev/null', 0)", id="opens a file"),
        pytest.param("import socket\nsocket.socket()", id="opens a socket"),
        pytest.param("import os\nos._exit(0)", id="says nothing"),
    ],
)
async def test_a_decoder_gone_wrong_ends_alone(
    files: CoverFiles, tmp_path: Path, evil: str, caplog: pytest.LogCaptureFixture
) -> None:
    """COV-035: no rendition, nothing left, and not tried again at the next request."""
    caplog.set_level("INFO")
    renditions = Renditions(files, fake_pillow(tmp_path, evil))
    original = put(files, b"x")
    with trio.fail_after(20):
        assert await renditions.open(ADDRESS, 240, original) is None
    assert len(caplog.records) == 1
    assert await renditions.open(ADDRESS, 240, original) is None
    assert len(caplog.records) == 1
    assert not files.exists(SMALL)
    assert children() == []


async def test_a_decoder_that_hangs_is_killed(
    files: CoverFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """COV-035: by the clock, whatever it has used of its CPU time."""
    monkeypatch.setattr(rendition, "_SECONDS", 1.0)
    renditions = Renditions(files, fake_pillow(tmp_path, "import time\ntime.sleep(600)"))
    began = trio.current_time()
    assert await renditions.open(ADDRESS, 240, put(files, b"x")) is None
    assert trio.current_time() - began < shrink.ALARM_SECONDS - 10, "it has ended by itself"
    assert children() == []


async def test_the_process_runs_under_the_limits_that_are_promised(files: CoverFiles, tmp_path: Path) -> None:
    """COV-035: memory, CPU time, no file to write, no other descriptor, no environment, a lower priority."""
    report = """
    import os, resource, sys
    limits = {name: resource.getrlimit(getattr(resource, name)) for name in ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_FSIZE")}
    told = {**limits, "nice": os.nice(0), "environ": dict(os.environ), "cwd": os.getcwd()}
    sys.stdout.write(str(told))
    sys.stdout.flush()
    os._exit(0)
    """
    made = await Renditions(files, fake_pillow(tmp_path, report)).open(ADDRESS, 240, put(files, b"x"))
    assert made is not None
    told = ast.literal_eval(made.read(0, made.size).decode())
    assert set(told.pop("environ")) <= {"LC_CTYPE"}, "which Python sets itself"
    assert told == {
        "RLIMIT_AS": (shrink.MEMORY_BYTES,) * 2,
        "RLIMIT_CPU": (shrink.CPU_SECONDS,) * 2,
        "RLIMIT_FSIZE": (0, 0),
        "nice": min(os.nice(0) + 10, 19),
        "cwd": "/",
    }


async def test_whoever_asks_at_once_shares_the_work(files: CoverFiles, caplog: pytest.LogCaptureFixture) -> None:
    """COV-035: ten requests, one process; one that is cut off leaves the work to the next."""
    original = put(files, encoded(Image.new("RGB", (480, 720)), "PNG"))
    renditions = Renditions(files)
    started: list[list[str]] = []
    run = rendition._run

    async def counted(command: list[str], file: OpenFile) -> bytes:
        started.append(command)
        if len(started) == 1:
            first.cancel()
        return await run(command, file)

    async def ask() -> None:
        assert await renditions.open(ADDRESS, 240, original) is not None

    with pytest.MonkeyPatch.context() as patch, trio.CancelScope() as first:
        patch.setattr(rendition, "_run", counted)
        await renditions.open(ADDRESS, 240, original)
    assert first.cancelled_caught
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rendition, "_run", counted)
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(ask)
    assert len(started) == 2
    assert children() == []


async def test_a_request_that_is_cut_off_ends_its_process(files: CoverFiles, tmp_path: Path) -> None:
    """COV-035: killed and buried, and the next request may begin at once."""
    renditions = Renditions(files, fake_pillow(tmp_path, "import time\ntime.sleep(600)"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(renditions.open, ADDRESS, 240, put(files, b"x"))
        await eventually(lambda: children() != [])
        began = trio.current_time()
        nursery.cancel_scope.cancel()
    assert trio.current_time() - began < shrink.ALARM_SECONDS - 10, "it has ended by itself"
    assert children() == []


async def test_a_folder_that_takes_no_more_serves_the_original(
    files: CoverFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """COV-035: a full disk is no error of the request."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    original = put(files, encoded(Image.new("RGB", (480, 720)), "PNG"))
    monkeypatch.setattr(os, "fsync", full)
    assert await Renditions(files).open(ADDRESS, 240, original) is None
    assert files.names_under("ab") == {f"ab/ab/{ADDRESS}"}
