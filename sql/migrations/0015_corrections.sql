ALTER TABLE series
    ADD COLUMN latest_corrected_at bigint NOT NULL DEFAULT 0;
