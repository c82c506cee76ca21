ALTER TABLE series
    ADD COLUMN latest_sighted_at bigint NOT NULL DEFAULT 0,
    ADD COLUMN latest_raised_by bigint REFERENCES readers (id) ON DELETE SET NULL;
