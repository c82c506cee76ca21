"""The covers in our keeping: files and rows as one thing, for what writes them and for what serves them."""

import logging
from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import trio

from bookmark_appliance.covers.cover_files import PREFIXES, CoverFiles, OpenFile, is_address, relative_path
from bookmark_appliance.covers.image_type import Image, declared_type
from bookmark_appliance.database import DATABASE_ERRORS, Database
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.covers import (
    StoredCover,
    addresses_under,
    adopt_cover,
    clear_cover,
    delete_unused,
    find_cover,
    lock_address,
    may_reclaim,
    record_cover,
)
from bookmark_appliance.store.owner_acts import Removal, remove_series
from bookmark_appliance.store.series import lock_series

_HOT_SECONDS: Final = 2.0
"""For so long a row isn't asked for again. It never changes but by hand, so this is all that such a change waits."""
_HOT_COVERS: Final = 1_000

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Difference:
    """Between the database and the folder; `path` is relative to it."""

    path: str
    has_row: bool
    """A row without its file; else a file without a row."""


@dataclass(frozen=True, slots=True)
class OpenCover:
    """A cover to be served."""

    file: OpenFile
    content_type: str


class CoverKeeper:
    """Writes, serves and reclaims covers; several processes may do so on one folder and one database."""

    def __init__(self, database: Database, files: CoverFiles) -> None:
        self.files = files
        self._database = database
        self._hot: OrderedDict[str, tuple[float, str]] = OrderedDict()
        self._owed: set[str] = set()

    async def keep(self, key: SeriesKey, image: Image, *, source: str, replaces: bool) -> None:
        """Store `image`, found at `source`, as the cover of a Series (COV-014, COV-015, COV-016).

        When this returns, file and row are on the disk. What no Series uses any more is reclaimed. Raises OSError and
        database errors; then the Series is as it was, and no half file stands anywhere.
        """
        address = sha256(image.body).hexdigest()
        cover = StoredCover(relative_path(address), image.content_type)
        async with self._database.transaction() as connection:
            await lock_address(connection, address)
            await self.files.run(self.files.install, address, image.body)
            unused = await record_cover(connection, key, address, cover, source=source, replaces=replaces)
        if unused:
            await self.reclaim(unused)

    async def adopt(self, key: SeriesKey, source: str) -> bool:
        """Give a Series the object that stands under the old address of `source`, if there is one (COV-011)."""
        address = sha256(source.encode()).hexdigest()
        if not await self.files.run(self.files.exists, address):
            return False
        async with self._database.transaction() as connection:
            await lock_address(connection, address)
            return await adopt_cover(connection, key, address)

    async def reclaim(self, address: str) -> None:
        """Remove row and files of `address` if no Series points at it (COV-031). Never fails: a failure is logged.

        What could not be done now, because of a backup or a failure, is tried again with the next one.
        """
        self._owed.add(address)
        for owed in tuple(self._owed):
            try:
                if await self._reclaim(owed):
                    self._owed.discard(owed)
            except (OSError, *DATABASE_ERRORS) as error:
                _logger.warning("cover %s is not reclaimed: %s", owed, error)

    async def _reclaim(self, address: str) -> bool:
        async with self._database.transaction() as connection:
            if not await may_reclaim(connection):
                return False
            await lock_address(connection, address)
            if await delete_unused(connection, address):
                self._hot.pop(address, None)
                await self.files.run(self.files.remove, address)
        return True

    async def remove_series(self, key: SeriesKey) -> Removal:
        """Delete a Series that nobody holds, then reclaim its cover; a failure of that undoes nothing (SER-019)."""
        async with self._database.transaction() as connection:
            stored = await lock_series(connection, key)
            removal = await remove_series(connection, key)
        if stored is not None and stored.cover_address and removal is Removal.DONE:
            await self.reclaim(stored.cover_address)
        return removal

    async def open(self, address: str) -> OpenCover | None:
        """The cover at `address`, whatever text that is; None when there is none to be served (COV-028 to COV-030).

        A row without its file is cleared, so that the next Poll of its Series heals it (COV-011). An empty folder is
        rather one that was not mounted: nothing is cleared for it.
        """
        content_type = self._hot_type(address) or await self._recorded_type(address)
        if content_type is None:
            return None
        try:
            return OpenCover(await self.files.run(self.files.open, address), content_type)
        except FileNotFoundError:
            if await self.files.run(self.files.is_empty):
                _logger.error("the cover folder is empty: is it mounted?")
            else:
                await self._clear(address)
        except OSError as error:
            _logger.warning("cover %s can't be read: %s", address, error)
        return None

    def _hot_type(self, address: str) -> str | None:
        until, content_type = self._hot.get(address, (0.0, None))
        return content_type if trio.current_time() < until else None

    async def _recorded_type(self, address: str) -> str | None:
        if not is_address(address):
            return None
        async with self._database.connection() as connection:
            cover = await find_cover(connection, address)
        if cover is None:
            return None
        if cover.path != relative_path(address) or declared_type(cover.content_type) != cover.content_type:
            _logger.warning("cover %s is not served: its row says %r, %r", address, cover.path, cover.content_type)
            return None
        self._hot[address] = (trio.current_time() + _HOT_SECONDS, cover.content_type)
        self._hot.move_to_end(address)
        if len(self._hot) > _HOT_COVERS:
            self._hot.popitem(last=False)
        return cover.content_type

    async def _clear(self, address: str) -> None:
        self._hot.pop(address, None)
        async with self._database.connection() as connection:
            keys = await clear_cover(connection, address)
        if keys:  # else it was reclaimed a moment ago
            _logger.warning("cover %s has no file: cleared from %s", address, ", ".join(map(str, keys)))
        await self.reclaim(address)

    async def compare(self) -> AsyncIterator[Difference]:
        """Every difference between rows and files, a 256th of them in memory at a time."""
        for prefix in PREFIXES:
            async with self._database.connection() as connection:
                addresses = await addresses_under(connection, prefix)
            names = await self.files.run(self.files.names_under, prefix)
            expected = {relative_path(address) for address in addresses}
            for path in sorted(expected - names):
                yield Difference(path, has_row=True)
            for path in sorted(names - expected):
                if path.partition(".")[0] not in expected:  # not what was made of one that has a row
                    yield Difference(path, has_row=False)
