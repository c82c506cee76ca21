"""A Lane on a simulated clock and the real database, which is reached through the blocking waiter (TRAPS 22)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import trio
from trio.testing import MockClock

from bookmark_appliance.credentials import credential_hash, derive_credential
from bookmark_appliance.database import Database
from bookmark_appliance.lanes.acquisition import Acquirer
from bookmark_appliance.lanes.fault_watch import FaultWatch
from bookmark_appliance.lanes.lane import Lane
from bookmark_appliance.lanes.request_slots import RequestSlots
from bookmark_appliance.lanes.series_read import SeriesReader
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.secret import Secret
from bookmark_appliance.store.readers import Reader
from tests.lanes.fakes import FakeFetcher, MakeReader, TrioClock


@dataclass(frozen=True, slots=True)
class World:
    """Everything around a Lane."""

    database: Database
    clock: TrioClock
    fetcher: FakeFetcher
    readers: list[Reader]
    browser: FakeFetcher | None = None

    def lane(self, site: str = "asura") -> Lane:
        """A Lane of this database, as a fresh process would make it."""
        slots = RequestSlots(self.database, self.clock)
        faults = FaultWatch(self.database, SITES, browser_configured=self.browser is not None)
        return Lane(SITES[site], self.database, self._reader(), slots, faults, self.clock)

    def acquirer(self) -> Acquirer:
        """The Acquirer of the same process."""
        return Acquirer(SITES, self.database, self._reader(), RequestSlots(self.database, self.clock), self.clock)

    def _reader(self) -> SeriesReader:
        return SeriesReader(self.clock, self.fetcher, self.browser)


@pytest.fixture
def credentials(token_key: Secret) -> list[bytes]:
    """What the two Readers of `world` are known by: the hashes of their credentials."""
    return [credential_hash(derive_credential(token_key, discord_id, 0)) for discord_id in ("1", "2")]


@pytest.fixture
async def world(
    autojump_clock: MockClock, blocking_database: Database, make_reader: MakeReader
) -> AsyncIterator[World]:
    """Two Readers and a fetcher that answers from a script; a test that uses it asks for `autojump_clock` too."""
    async with blocking_database.transaction() as connection:
        readers = [await make_reader(connection, number) for number in ("1", "2")]
    clock = TrioClock()
    yield World(blocking_database, clock, FakeFetcher(clock), readers)
    await trio.lowlevel.checkpoint()
