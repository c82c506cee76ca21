"""What passes cost our own process: CPU time and memory, in simulated time and besides parsing."""

import gc
import resource
import time
from collections.abc import Callable
from pathlib import Path

import trio

from bookmark_appliance.clock import SECOND_MS
from bookmark_appliance.store.readers import Reader
from tests.lanes.simulation import Simulation, hold_many

DUE = 360

WARMING_UP = 150
"""Passes: two hours and a half, in which every Series was read and every statement prepared."""


async def pass_cpu_ms(simulation: Simulation, reader: Reader) -> float:
    """CPU time of one pass over 360 due Series of asura, in ms; its database works in processes of its own."""
    await hold_many(simulation.database, reader, "asura", DUE)
    lane = simulation.lane("asura")
    began = time.process_time()
    await lane.run_pass()
    took = (time.process_time() - began) * SECOND_MS
    assert len(simulation.fetches("asura")) == DUE
    return took


async def growth(simulation: Simulation, passes: int, measure: Callable[[], int]) -> int:
    """By how much `measure()` grows over this many passes of one Lane, a minute apart, after some to warm up."""
    lane = simulation.lane("asura")
    before = 0
    for number in range(-WARMING_UP, passes):
        if number == 0:
            gc.collect()
            before = measure()
        await lane.run_pass()
        simulation.plain.fetched.clear()
        await trio.sleep(60)
    gc.collect()
    return measure() - before


def resident_bytes() -> int:
    """The memory that this process holds, what its libraries hold included."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()
