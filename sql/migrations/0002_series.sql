-- What is true whoever reads moves to a table of its own.
CREATE TABLE series (
    site text NOT NULL,
    series_id text NOT NULL,
    title text NOT NULL DEFAULT '',
    series_url text NOT NULL DEFAULT '',
    cover text NOT NULL DEFAULT '',
    kind text NOT NULL DEFAULT 'manga',
    latest_chapter text NOT NULL DEFAULT '',
    latest_chapter_num double precision,
    latest_checked_at bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (site, series_id)
);

-- The key was text of its own, so two rows may name one Series: the one touched last speaks for it.
INSERT INTO series (
    site, series_id, title, series_url, cover, kind, latest_chapter, latest_chapter_num, latest_checked_at
)
SELECT DISTINCT ON (site, series_id)
    site, series_id, title, series_url, cover, kind, latest_chapter, latest_chapter_num, latest_checked_at
FROM bookmarks
ORDER BY site, series_id, updated_at DESC;

ALTER TABLE bookmarks
    DROP COLUMN title,
    DROP COLUMN series_url,
    DROP COLUMN cover,
    DROP COLUMN kind,
    DROP COLUMN latest_chapter,
    DROP COLUMN latest_chapter_num,
    DROP COLUMN latest_checked_at,
    ADD CONSTRAINT bookmarks_series_fk
        FOREIGN KEY (site, series_id) REFERENCES series (site, series_id);
