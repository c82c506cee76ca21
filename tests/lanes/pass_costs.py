"""What passes cost our own process: CPU time and memory, in simulated time and besides parsing."""

import gc
import time
import tracemalloc
from collections.abc import Awaitable, Callable

import trio

from bookmark_appliance.clock import SECOND_MS
from bookmark_appliance.store.readers import Reader
from tests.lanes.simulation import Simulation, hold_many

DUE = 360


async def pass_cpu_ms(simulation: Simulation, reader: Reader) -> float:
    """CPU time of one pass over 360 due Series of asura, in ms; its database works in processes of its own."""
    await hold_many(simulation.database, reader, "asura", DUE)
    lane = simulation.lane("asura")
    began = time.process_time()
    await lane.run_pass()
    took = (time.process_time() - began) * SECOND_MS
    assert len(simulation.fetches("asura")) == DUE
    return took


async def growth_bytes(simulation: Simulation, passes: int) -> int:
    """By how much the memory in use grows over this many passes of one Lane, a minute apart, after some to warm up."""
    lane = simulation.lane("asura")
    tracemalloc.start()
    try:
        await _pass(simulation, lane.run_pass, passes // 10)
        before = _in_use()
        await _pass(simulation, lane.run_pass, passes)
        return _in_use() - before
    finally:
        tracemalloc.stop()


async def _pass(simulation: Simulation, run_pass: Callable[[], Awaitable[int]], passes: int) -> None:
    for _ in range(passes):
        await run_pass()
        simulation.plain.fetched.clear()
        await trio.sleep(60)


def _in_use() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
