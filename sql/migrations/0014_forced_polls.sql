CREATE INDEX series_latest_checked_at_idx
    ON series (latest_checked_at);

ALTER TABLE series
    ADD COLUMN force_poll_at bigint NOT NULL DEFAULT 0;
