ALTER TABLE poll_passes
    ADD COLUMN not_found integer NOT NULL DEFAULT 0;
