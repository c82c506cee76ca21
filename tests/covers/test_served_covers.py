"""Covers as `serve` serves them: a process of its own, its folder and its memory."""

import os
from hashlib import sha256
from pathlib import Path

import httpx

from bookmark_appliance.covers.cover_files import CoverFiles, relative_path
from tests.covers.pictures import animated_webp, filled_png, gif_of_size, jpeg_of_size, noisy_photo, png_of_size
from tests.open_folder import open_folder
from tests.serving_process import Place, Serve


def store(place: Place, body: bytes) -> str:
    """Where the running `serve` serves these bytes."""
    address = sha256(body).hexdigest()
    CoverFiles(place.data / "covers").install(address, body)
    place.sql("INSERT INTO covers VALUES (%s, %s, 'image/png')", address, relative_path(address))
    return f"/covers/{address}"


def resident_bytes(serve: Serve) -> int:
    return int(Path(f"/proc/{serve.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_hostile_images_cost_the_service_no_memory() -> None:
    """COV-027, COV-035: whatever is asked to be made small, the service grows by less than 25 MB, and goes on."""
    attacks = [
        png_of_size(65_535, 65_535),
        gif_of_size(65_535, 65_535),
        jpeg_of_size(65_535, 65_535),
        filled_png(5_000, 8_001),
        gif_of_size(8, 8, frames=10_000),
        animated_webp(10_000),
        noisy_photo(800, 1200)[:50_000],
        os.urandom(10 * 1024 * 1024),
    ]
    with open_folder() as folder:
        place = Place(folder)
        async with place.serve() as serve:
            await serve.listening()
            async with serve.client() as client:
                good = store(place, noisy_photo(800, 1200))
                assert await served_type(client, f"{good}?w=240") == "image/webp"
                paths = [store(place, body) for body in attacks]
                before = resident_bytes(serve)
                made = [await served_type(client, f"{path}?w=240") for path in paths]
                assert made == ["image/png"] * 4 + ["image/webp"] * 2 + ["image/png"] * 2
                assert resident_bytes(serve) - before < 25_000_000
                assert await served_type(client, f"{good}?w=480") == "image/webp"


async def served_type(client: httpx.AsyncClient, path: str) -> str:
    """The type of an answer that was read to its end."""
    async with client.stream("GET", path) as response:
        assert response.status_code == 200
        async for _ in response.aiter_raw():
            pass
    return str(response.headers["Content-Type"])
