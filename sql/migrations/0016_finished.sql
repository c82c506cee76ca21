ALTER TABLE series
    ADD COLUMN finished_at bigint NOT NULL DEFAULT 0;

-- Before the flip below, which leaves nothing to tell a finished Series by.
UPDATE series
SET finished_at = (extract(epoch FROM now()) * 1000)::bigint
WHERE EXISTS (
    SELECT FROM bookmarks
    WHERE bookmarks.site = series.site
      AND bookmarks.series_id = series.series_id
)
AND NOT EXISTS (
    SELECT FROM bookmarks
    WHERE bookmarks.site = series.site
      AND bookmarks.series_id = series.series_id
      AND bookmarks.status <> 'finished'
);

UPDATE bookmarks
SET status = 'archived'
WHERE status = 'finished';
