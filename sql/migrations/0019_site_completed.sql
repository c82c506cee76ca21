ALTER TABLE series
    ADD COLUMN site_completed_at bigint NOT NULL DEFAULT 0;
