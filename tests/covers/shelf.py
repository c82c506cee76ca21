"""Covers and Series to try the keeping of covers with."""

from hashlib import sha256
from pathlib import Path

from bookmark_appliance.covers.cover_files import CoverFiles
from bookmark_appliance.covers.cover_keeper import CoverKeeper
from bookmark_appliance.covers.image_type import Image
from bookmark_appliance.database import Database
from bookmark_appliance.series_key import SeriesKey
from tests.simulated_sites.images import image

KEY = SeriesKey("asura", "one")
OTHER = SeriesKey("comix", "two")
SOURCE = "https://cdn.asurascans.com/one.webp"


def picture(name: str) -> Image:
    """An image whose bytes depend on `name`."""
    return Image(image("image/jpeg", name), "image/jpeg")


def address_of(kept: Image) -> str:
    """COV-016."""
    return sha256(kept.body).hexdigest()


class Shelf:
    """A keeper on a folder and a database, and what a test looks up behind its back."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.folder = folder
        self.files = CoverFiles(folder)
        self.keeper = CoverKeeper(database, self.files)

    async def keep(self, kept: Image, key: SeriesKey = KEY, *, replaces: bool = False, source: str = SOURCE) -> str:
        """Keep it for a Series; its address."""
        await self.keeper.keep(key, kept, source=source, replaces=replaces)
        return address_of(kept)

    async def sql(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        """One statement; its rows."""
        async with self.database.connection() as connection:
            cursor = await connection.execute(statement.encode(), values)
            return await cursor.fetchall() if cursor.description else []

    async def add_series(self, *keys: SeriesKey) -> None:
        """Series without a cover."""
        for key in keys:
            await self.sql("INSERT INTO series (site, series_id) VALUES (%s, %s)", key.site, key.series_id)

    async def address(self, key: SeriesKey = KEY) -> object:
        """What the Series points at."""
        ((address,),) = await self.sql(
            "SELECT cover_address FROM series WHERE site = %s AND series_id = %s", key.site, key.series_id
        )
        return address

    async def rows(self) -> set[object]:
        """Every recorded address."""
        return {address for (address,) in await self.sql("SELECT address FROM covers")}

    def stored(self) -> set[str]:
        """Every file in the folder, relative to it."""
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()}
