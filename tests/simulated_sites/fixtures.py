"""The pytest fixture. `tests/conftest.py` names this module in `pytest_plugins`."""

from collections.abc import AsyncIterator

import pytest

from tests.simulated_sites.server import SimulatedSites, simulated_sites


@pytest.fixture(name="simulated_sites")
async def simulated_sites_fixture() -> AsyncIterator[SimulatedSites]:
    """The six Sites with their sample Series, fresh for each test."""
    async with simulated_sites() as sites:
        yield sites
