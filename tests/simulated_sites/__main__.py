"""`python -m tests.simulated_sites [--env-file PATH] [--grow-every SECONDS]`: serve until told to stop."""

import argparse
import signal
from pathlib import Path

import trio

from tests.simulated_sites.server import SimulatedSites, simulated_sites


async def serve(env_file: Path | None, grow_every: float | None) -> None:
    """Tell how to reach the Sites, then serve until SIGINT or SIGTERM."""
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with simulated_sites() as sites, trio.open_nursery() as nursery:
            settings = f"SITE_CONNECT_TO={sites.connect_to}\nSITE_CA_FILE={sites.ca_file}\n"
            if env_file is not None:
                ready = env_file.with_name(env_file.name + ".new")
                ready.write_text(settings)
                ready.replace(env_file)  # whole or not at all: its appearance says that we are ready
            print(settings, end="", flush=True)
            print(f"# state and faults: curl -k https://127.0.0.1:{sites.port}/-/", flush=True)
            if grow_every is not None:
                nursery.start_soon(grow, sites, grow_every)
            async for _ in signals:
                break
            nursery.cancel_scope.cancel()


async def grow(sites: SimulatedSites, every: float) -> None:
    """One more chapter at the next Series in turn, every so many seconds."""
    while True:
        for series in [each for each in sites.world.series if not each.completed]:
            await trio.sleep(every)
            latest = max(map(float, series.chapters), default=0)
            sites.world.publish(series.site, series.slug, str(int(latest) + 1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.simulated_sites", description="All six Sites, offline.")
    parser.add_argument("--env-file", type=Path, help="write SITE_CONNECT_TO and SITE_CA_FILE here when ready")
    parser.add_argument("--grow-every", type=float, metavar="SECONDS", help="publish a chapter this often")
    arguments = parser.parse_args()
    trio.run(serve, arguments.env_file, arguments.grow_every)
