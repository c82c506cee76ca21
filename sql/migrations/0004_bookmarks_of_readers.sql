UPDATE bookmarks
SET reader_id = (SELECT id FROM readers ORDER BY id LIMIT 1)
WHERE reader_id IS NULL;

ALTER TABLE bookmarks
    ALTER COLUMN reader_id SET NOT NULL,
    DROP COLUMN key,
    ADD PRIMARY KEY (reader_id, site, series_id),
    ADD CONSTRAINT bookmarks_reader_fk
        FOREIGN KEY (reader_id) REFERENCES readers (id) ON DELETE CASCADE;
