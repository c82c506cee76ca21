# ruff: noqa: RUF001 - titles of many scripts
"""Fill a data folder with an invented library, to look at the pages: `python -m tests.seed_library DATA_DIR [ROWS]`.

The owner of local mode gets a few dozen Series of both kinds in every state that a card can have, and ROWS plain ones
more. What it prints is the value of a session cookie.
"""

import random
import secrets
import sys
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import trio
from PIL import Image as Canvas
from PIL import ImageDraw

from bookmark_appliance.clock import HOUR_MS, SystemClock
from bookmark_appliance.config import load_settings
from bookmark_appliance.covers.cover_files import CoverFiles
from bookmark_appliance.covers.cover_keeper import CoverKeeper
from bookmark_appliance.covers.image_type import Image
from bookmark_appliance.data_folder import prepare_folders
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.storage import open_storage
from bookmark_appliance.store.readers import find_by_discord_id
from bookmark_appliance.store.sessions import create_session

NOVEL_SITES = ("lightnovelworld", "novelfull")
TITLES = (
    "The Lantern Keeper’s Apprentice",
    "Brass Garden",
    "A Ledger of Small Gods",
    "Salt Road Swordsman",
    "The Cartographer Who Drew No Coast",
    "Nine Winters of the Glass Court",
    "Orchard of Iron",
    "I Became the Villain’s Accountant and Now the Whole Empire Owes Me an Explanation",
    "Tidewatch",
    "The Last Bellfounder",
    "Reincarnated as a Lighthouse",
    "Moth Year",
    "The Duke’s Understudy",
    "Under a Borrowed Sky",
    "Ferryman",
    "The Quiet Siege of Vell",
    "Ashes Keep Accounts",
    "月下の鍛冶屋",
    "Paper Tigers, Paper Thrones",
    "The Heron Sutra",
    "Level One Innkeeper",
    "Where the River Forgets",
    "Hollow Crown Regression",
    "قصر الرمال السبعة",
    "Seven Letters to a Dragon",
    "My Disciple Is the Final Boss",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One Bookmark and its Series."""

    site: str
    slug: str
    title: str
    kind: str
    read: float
    latest: float | None
    favorite: bool = False
    status: str = "reading"
    finished: bool = False
    cover: bool = True


def rows(more: int) -> list[Row]:
    """The most recently read first."""
    chance = random.Random(7)
    made = []
    for number, title in enumerate(TITLES):
        site = list(SITES)[number % len(SITES)]
        read = float(chance.randint(1, 240)) + (0.5 if number % 7 == 3 else 0)
        latest = None if number % 11 == 8 else read + (chance.randint(1, 14) if number % 3 == 0 else 0)
        made.append(
            Row(
                *(site, f"series-{number}", title, "novel" if site in NOVEL_SITES else "manga"),
                read=0 if number == 8 else read,
                latest=latest,
                favorite=number % 4 == 0,
                status="archived" if number % 9 == 5 else "reading",
                finished=number % 10 == 6,
                cover=number % 8 != 4,
            )
        )
    made[3:3] = [
        Row("asura", "hostile", '"><script>alert(1)</script><b>Bold\u202eeman ykciT', "manga", 12, 13, cover=False),
        Row("comix", "long", "Unbreakable" * 90, "manga", 4, 4),
        Row("demonic", "none", "", "manga", 1, 2, cover=False),
    ]
    made += [
        Row("asura", f"plain-{number}", f"The Title of Series Number {number}", "manga", 100, 120, cover=number < 80)
        for number in range(more)
    ]
    return made


def drawn_cover(name: str) -> Image:
    """A cover in two colours with a few shapes, as a JPEG."""
    chance = random.Random(name)
    ground, figure = [tuple(chance.randint(20, 210) for _ in range(3)) for _ in range(2)]
    canvas = Canvas.new("RGB", (480, 720), ground)
    draw = ImageDraw.Draw(canvas)
    for _ in range(chance.randint(3, 9)):
        x, y, size = chance.randint(-100, 480), chance.randint(-100, 720), chance.randint(60, 420)
        shape = chance.choice((draw.ellipse, draw.rectangle))
        shape((x, y, x + size, y + size), fill=tuple((2 * a + chance.randint(0, 255)) // 3 for a in figure))
    body = BytesIO()
    canvas.save(body, "JPEG", quality=80)
    return Image(body.getvalue(), "image/jpeg")


async def add(connection: TrioConnection, reader_id: int, row: Row, updated_at: int) -> None:
    """Write the Series and the Reader's Bookmark."""
    address = f"https://{SITES[row.site].host}/{row.slug}"
    await connection.execute(
        """
        INSERT INTO series (site, series_id, title, series_url, kind, latest_chapter_num, finished_at)
        VALUES (%s, %s, %s, %s, %s, %s, %s)
        """,
        (row.site, row.slug, row.title, address, row.kind, row.latest, updated_at if row.finished else 0),
    )
    await connection.execute(
        """
        INSERT INTO bookmarks (
            reader_id, site, series_id, last_chapter_num, last_chapter_url, favorite, status, updated_at
        )
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
        """,
        (reader_id, row.site, row.slug, row.read, f"{address}/chapter", row.favorite, row.status, updated_at),
    )


async def main(folder: Path, more: int) -> None:
    """Seed `folder`, which nothing else uses meanwhile."""
    settings = load_settings({}, data_dir=folder)
    prepare_folders(settings)
    async with open_storage(settings) as storage:
        session, now = secrets.token_hex(32), SystemClock().now_ms()
        async with storage.database.transaction() as connection:
            reader = await find_by_discord_id(connection, storage.settings.owner_discord_id)
            assert reader is not None
            await create_session(connection, session, reader.id, now)
            for number, row in enumerate(rows(more)):
                await add(connection, reader.id, row, now - number * HOUR_MS)
        keeper = CoverKeeper(storage.database, CoverFiles(settings.cover_dir))
        for row in rows(more):
            if row.cover:
                cover = drawn_cover(row.slug)
                await keeper.keep(SeriesKey(row.site, row.slug), cover, source=f"seed:{row.slug}", replaces=False)
    print(session)


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]).absolute(), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
