"""All six Sites on one loopback port, for tests and for the demonstration.

async with simulated_sites() as sites:
    series = sites.world.add("asura", "brass-garden", chapters=180)
    sites.world.publish("asura", "brass-garden", "181")
    sites.world.misbehave("demonicscans.org", faults.status(429, retry_after="60"))
    ...
    assert [seen.target for seen in sites.requests_to("asura")] == [series.target]
"""

from tests.simulated_sites.server import SimulatedSites, simulated_sites

__all__ = ["SimulatedSites", "simulated_sites"]
