"""One Site at the size that the Lanes' queries are held to: 20,000 Series, 100,000 Bookmarks."""

from bookmark_appliance.clock import HOUR_MS
from bookmark_appliance.database import Database
from bookmark_appliance.lanes.pace import due_terms
from bookmark_appliance.postgres.trio_connection import TrioConnection
from tests.lanes.fakes import START_MS
from tests.lanes.simulation import SIMULATED

SITE = "asura"
SERIES = 20_000
READERS = 500
DUE = 360

NOW = START_MS
TERMS = due_terms(SIMULATED[SITE], NOW)


async def fill(database: Database) -> None:
    """Store the Series, held by one to nine Readers each; DUE of them are due, the others were checked within the hour.

    A few are finished, orphaned or deferred by a Sighting, as they would be. The triggers sleep meanwhile: what they
    keep is not asked here, and they take minutes for so many rows.
    """
    async with database.transaction() as connection:
        await connection.execute("ALTER TABLE bookmarks DISABLE TRIGGER USER")
        await connection.execute("ALTER TABLE series DISABLE TRIGGER USER")
        await connection.execute(
            """
            INSERT INTO readers (discord_id, token_sha256)
            SELECT 'large-' || n, sha256(n::text::bytea)
            FROM generate_series(1, %s) AS n
            """,
            (READERS,),
        )
        await connection.execute(
            """
            INSERT INTO series (
                site, series_id, title, series_url, cover_address, latest_chapter, latest_chapter_num,
                latest_checked_at, latest_sighted_at, finished_at
            )
            SELECT
                %(site)s, 'a-series-of-some-length-' || n, 'A Series of some length ' || n,
                %(origin)s || '/comics/a-series-of-some-length-' || n, %(origin)s || '/covers/' || n || '.webp',
                'Chapter ' || n %% 300, n %% 300,
                %(now)s - %(hour)s + CASE WHEN n <= %(due)s THEN -n ELSE 1 + (n * 7919::bigint) %% (%(hour)s - 1) END,
                CASE WHEN n %% 10 = 0 THEN %(now)s - n ELSE 0 END,
                CASE WHEN n > %(due)s AND n %% 20 = 1 THEN 1 ELSE 0 END
            FROM generate_series(1, %(series)s) AS n
            """,
            {
                "site": SITE,
                "origin": SIMULATED[SITE].origin,
                "now": NOW,
                "hour": HOUR_MS,
                "due": DUE,
                "series": SERIES,
            },
        )
        await connection.execute(
            """
            INSERT INTO bookmarks (reader_id, site, series_id, updated_at)
            SELECT reader.id, series.site, series.series_id, 1
            FROM (SELECT row_number() OVER () AS n, * FROM series WHERE site = %(site)s) AS series
            CROSS JOIN LATERAL generate_series(0, series.n %% 9) AS holder
            JOIN (SELECT row_number() OVER (ORDER BY id) AS n, id FROM readers) AS reader
                ON reader.n = 1 + (series.n * 31 + holder * 7) %% %(readers)s
            """,
            {"site": SITE, "readers": READERS},
        )
        await connection.execute("ALTER TABLE series ENABLE TRIGGER USER")
        await connection.execute("ALTER TABLE bookmarks ENABLE TRIGGER USER")
    async with database.connection() as connection:
        await connection.execute("VACUUM ANALYZE series")
        await connection.execute("VACUUM ANALYZE bookmarks")


async def make_all_due(connection: TrioConnection) -> None:
    """As if none had ever been checked."""
    await connection.execute("UPDATE series SET latest_checked_at = 0, finished_at = 0")
    await connection.execute("VACUUM ANALYZE series")
