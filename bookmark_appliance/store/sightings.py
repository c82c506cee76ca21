"""What a Reader's browser saw of the Latest Chapter, as it is recorded on the Series (SIG-001 to SIG-004, SIG-014)."""

from psycopg import AsyncConnection

from bookmark_appliance.series_key import SeriesKey

DISAGREEMENTS_UNTIL_DISTRUST = 3
"""From here on a Reader's Sightings put off no Poll (SIG-014)."""

RECORD_SIGHTING = f"""
    latest_sighted_at = CASE
        WHEN (SELECT sighting_disagreements FROM reader) < {DISAGREEMENTS_UNTIL_DISTRUST}
        THEN %(now)s
        ELSE stored.latest_sighted_at
    END,
    doubtful_at = 0,
    latest_raised_by = CASE
        WHEN stored.latest_chapter_num IS NULL OR %(latest_chapter_num)s > stored.latest_chapter_num
        THEN (SELECT id FROM reader)
        WHEN %(latest_chapter_num)s = stored.latest_chapter_num
        THEN stored.latest_raised_by
    END,
"""
"""Assignments for an UPDATE of the row `stored`, whose columns are still as they stood (SIG-002), by `reader`.

A raise names its raiser, an equal number leaves the one there was, a lower one clears it (SIG-003). What a person saw
settles a doubtful reading (LANE-054).
"""

NO_SIGHTING = """
    latest_raised_by = CASE
        WHEN %(latest_chapter_num)s IS NULL OR %(latest_chapter_num)s = stored.latest_chapter_num
        THEN stored.latest_raised_by
    END,
"""
"""The same for a write that records none: nobody is judged for a number that another has put in its place."""

AGREEMENTS_THAT_FORGIVE = 20
"""In a row, with no contradiction between (SIG-015)."""


async def lock_judged(connection: AsyncConnection, key: SeriesKey, reader_id: int) -> None:
    """Lock this Reader and every holder of the locked Series, in the order of their ids.

    A number that is written locks the holders by its trigger, and the raiser need not be one of them: two Polls that
    contradict each other's holders would deadlock.
    """
    await connection.execute(
        """
        SELECT
        FROM readers
        WHERE id = %(reader)s
            OR id IN (
                SELECT reader_id
                FROM bookmarks
                WHERE site = %(site)s
                    AND series_id = %(series_id)s
            )
        ORDER BY id
        FOR NO KEY UPDATE
        """,
        {"reader": reader_id, "site": key.site, "series_id": key.series_id},
    )


async def record_agreement(connection: AsyncConnection, reader_id: int) -> None:
    """A Poll confirmed this Reader's raise; enough of them in a row, and the marks are forgiven (SIG-011, SIG-015)."""
    await connection.execute(
        """
        UPDATE readers
        SET sighting_agreements = sighting_agreements + 1,
            sighting_disagreements = CASE
                WHEN sighting_agreements + 1 >= %(forgiving)s THEN 0
                ELSE sighting_disagreements
            END
        WHERE id = %(reader)s
        """,
        {"reader": reader_id, "forgiving": AGREEMENTS_THAT_FORGIVE},
    )


async def record_contradiction(connection: AsyncConnection, reader_id: int) -> None:
    """A Poll contradicted this Reader's raise, and the streak of agreements starts anew (SIG-010, SIG-011)."""
    await connection.execute(
        """
        UPDATE readers
        SET sighting_disagreements = sighting_disagreements + 1,
            sighting_agreements = 0
        WHERE id = %(reader)s
        """,
        {"reader": reader_id},
    )


async def clear_marks(connection: AsyncConnection, reader_id: int) -> None:
    """The Owner forgives this Reader everything (SIG-016)."""
    await connection.execute(
        "UPDATE readers SET sighting_agreements = 0, sighting_disagreements = 0 WHERE id = %s", (reader_id,)
    )
