"""What a Series page came with, kept with the reading it came with (LANE-055)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from bookmark_appliance.chapter import Chapter
from bookmark_appliance.series_key import SeriesKey


@dataclass(frozen=True, slots=True)
class KeptReading:
    """The validators of a page, as the Site sent them or empty, and what the page said.

    They hold for this address and this version of the Site's reader alone.
    """

    series_url: str
    reader_version: int
    etag: str
    last_modified: str
    latest: Chapter
    cover: str | None
    completed: bool


KEPT_COLUMNS = """
    kept.series_url,
    kept.reader_version,
    kept.etag,
    kept.last_modified,
    kept.latest_chapter_num,
    kept.latest_chapter,
    kept.cover,
    kept.completed
"""


def kept_reading(row: Sequence[Any]) -> KeptReading | None:
    """What KEPT_COLUMNS of an outer join came to; None when nothing is kept."""
    series_url, reader_version, etag, last_modified, number, label, cover, completed = row
    if series_url is None:
        return None
    return KeptReading(
        series_url, reader_version, etag, last_modified, Chapter(number, label), cover or None, completed
    )


async def keep_reading(connection: AsyncConnection, key: SeriesKey, kept: KeptReading) -> None:
    """Keep this reading instead of the one before."""
    await connection.execute(
        """
        INSERT INTO page_validators (
            site, series_id, series_url, reader_version, etag, last_modified,
            latest_chapter_num, latest_chapter, cover, completed
        )
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
        ON CONFLICT (site, series_id) DO UPDATE
        SET series_url = excluded.series_url,
            reader_version = excluded.reader_version,
            etag = excluded.etag,
            last_modified = excluded.last_modified,
            latest_chapter_num = excluded.latest_chapter_num,
            latest_chapter = excluded.latest_chapter,
            cover = excluded.cover,
            completed = excluded.completed
        """,
        (
            key.site,
            key.series_id,
            kept.series_url,
            kept.reader_version,
            kept.etag,
            kept.last_modified,
            kept.latest.number,
            kept.latest.label,
            kept.cover or "",
            kept.completed,
        ),
    )


async def forget_reading(connection: AsyncConnection, key: SeriesKey) -> None:
    """The page is asked for whole next time."""
    await connection.execute(
        "DELETE FROM page_validators WHERE site = %s AND series_id = %s", (key.site, key.series_id)
    )
