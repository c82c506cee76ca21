"""What the browser host takes: resident memory at rest, and what it adds to a round trip to Chrome."""

import statistics
import tempfile
from pathlib import Path

import trio

from bookmark_appliance.cdp.chrome_profile import DEBUGGING_PORT
from tests.bench.figures import Figure
from tests.bench.serve import resident_mb
from tests.cdp_host.hosting import ZONE, Client, Host, host_of
from tests.serving_process import Place

ROUND_TRIPS = 2_000


def run() -> list[Figure]:
    """Start it, drive its Chrome through it and past it, in turns; some seconds."""
    with tempfile.TemporaryDirectory(prefix="bookmark-bench-") as folder:
        return trio.run(_measure, Path(folder))


async def _measure(folder: Path) -> list[Figure]:
    place = Place(folder)
    async with place.start("browser", "--listen", "127.0.0.1:0", "--timezone", ZONE) as command:
        through = await host_of(command)
        at_rest = resident_mb(command)
        await through.discovery()
        port = int((place.data / "chrome-profile" / DEBUGGING_PORT).read_text().split()[0])
        past = Host(("127.0.0.1", port))
        seconds: dict[Host, list[float]] = {through: [], past: []}
        async with through.client() as one, past.client() as other:
            for _ in range(ROUND_TRIPS):
                seconds[through].append(await _round_trip(one))
                seconds[past].append(await _round_trip(other))
        serving = resident_mb(command)
    return [
        Figure("browser host at rest", at_rest, "MB", most=60),
        Figure("browser host while it serves", serving, "MB", most=60),
        _added("median", 50, seconds[through], seconds[past]),
        _added("p99", 99, seconds[through], seconds[past]),
    ]


async def _round_trip(client: Client) -> float:
    started = trio.current_time()
    await client.call("Browser.getVersion")
    return trio.current_time() - started


def _added(name: str, percent: int, through: list[float], past: list[float]) -> Figure:
    with_it, without = (1000 * statistics.quantiles(each, n=100)[percent - 1] for each in (through, past))
    note = f"{with_it:.2f} ms through it, {without:.2f} ms past it"
    return Figure(f"added to a round trip, {name}", with_it - without, "ms", most=5, note=note)
