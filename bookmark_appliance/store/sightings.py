"""What a Reader's browser saw of the Latest Chapter, as it is recorded on the Series (SIG-001 to SIG-004, SIG-014)."""

DISAGREEMENTS_UNTIL_DISTRUST = 3
"""From here on a Reader's Sightings put off no Poll (SIG-014)."""

RECORD_SIGHTING = f"""
    latest_sighted_at = CASE
        WHEN (SELECT sighting_disagreements FROM reader) < {DISAGREEMENTS_UNTIL_DISTRUST}
        THEN %(now)s
        ELSE stored.latest_sighted_at
    END,
    latest_raised_by = CASE
        WHEN stored.latest_chapter_num IS NULL OR %(latest_chapter_num)s > stored.latest_chapter_num
        THEN (SELECT id FROM reader)
        WHEN %(latest_chapter_num)s = stored.latest_chapter_num
        THEN stored.latest_raised_by
    END,
"""
"""Assignments for an UPDATE of the row `stored`, whose columns are still as they stood (SIG-002), by `reader`.

A raise names its raiser, an equal number leaves the one there was, a lower one clears it (SIG-003).
"""
