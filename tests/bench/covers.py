"""Covers: requests a second beside the bare route, memory while many are sent, CPU time of a small rendition."""

import os
import resource
import statistics
from hashlib import sha256
from pathlib import Path

import httpx
import trio

from bookmark_appliance.covers.cover_files import CoverFiles, relative_path
from bookmark_appliance.covers.rendition import Renditions
from bookmark_appliance.web.app import create_app
from tests.bench.api import bench_context, bench_database, case, request, serving, to_bare_route
from tests.bench.disk_folder import disk_folder
from tests.bench.figures import Figure
from tests.covers.pictures import noisy_photo
from tests.serving_process import Place, Serve

CLIENTS = 20
LARGE_BYTES = 5_000_000
RENDITIONS = 5

_RECORD = "INSERT INTO covers (address, path, content_type) VALUES (%s, %s, 'image/jpeg')"


def run() -> list[Figure]:
    """On databases and folders of its own: about half a minute."""
    with disk_folder() as folder:
        return [*trio.run(_speed, folder), *trio.run(_memory, folder), *trio.run(_rendition, folder)]


async def _speed(folder: Path) -> list[Figure]:
    body = os.urandom(60_000)
    address = sha256(body).hexdigest()
    (folder / "speed").mkdir(0o711)
    async with bench_database(folder / "speed") as database:
        context = bench_context(database, folder)
        context.covers.files.install(address, body)
        async with database.connection() as connection:
            await connection.execute(_RECORD, (address, relative_path(address)))
        async with serving(create_app(context)) as (host, port):
            asked = request("GET", f"/covers/{address}")
            cover = case(host, port, "GET of a 60 KB cover", 0.6, asked, body[100:200], end=body[-100:])
            return await to_bare_route(host, port, [cover])


async def _memory(folder: Path) -> list[Figure]:
    """The most that the process holds while all of it is on its way, over what it held before."""
    place = Place(folder / "memory")
    place.folder.mkdir(0o711)
    body = os.urandom(LARGE_BYTES)
    address = sha256(body).hexdigest()
    async with place.serve() as serve:
        await serve.listening()
        CoverFiles(place.data / "covers").install(address, body)
        place.sql(_RECORD, address, relative_path(address))
        before = _kilobytes(serve, "VmRSS")
        started = trio.current_time()
        async with serve.client() as client, trio.open_nursery() as nursery:
            for _ in range(CLIENTS):
                nursery.start_soon(_download, client, f"/covers/{address}")
        took = trio.current_time() - started
        most = _kilobytes(serve, "VmHWM")
    note = f"{CLIENTS * LARGE_BYTES / took / 1e6:.0f} MB/s"
    return [Figure("memory added by 100 MB to 20 clients", (most - before) / 1000, "MB", most=30, note=note)]


async def _download(client: httpx.AsyncClient, address: str) -> None:
    async with client.stream("GET", address) as response:
        received = 0
        async for piece in response.aiter_raw():
            received += len(piece)
        assert received == LARGE_BYTES


def _kilobytes(serve: Serve, name: str) -> int:
    status = Path(f"/proc/{serve.process.pid}/status").read_text()
    return int(status.partition(f"{name}:")[2].split()[0])


async def _rendition(folder: Path) -> list[Figure]:
    """What it costs this process and its children, Python's own start included."""
    files = CoverFiles(folder / "renditions")
    files.folder.mkdir()
    spent, sizes = [], []
    for number in range(RENDITIONS):
        address = f"{number:064x}"
        photo = noisy_photo(1600, 2300, quality=78)
        files.install(address, photo)
        before = _cpu_seconds()
        made = await Renditions(files).open(address, 240, files.open(address))
        spent.append(_cpu_seconds() - before)
        assert made is not None
        sizes.append(made.size)
    note = f"of {len(photo) / 1e6:.1f} MB"
    return [
        Figure("CPU of a small rendition", 1000 * statistics.median(spent), "ms", most=400, note=note),
        Figure("its size", max(sizes) / 1000, "KB", most=25),
    ]


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
