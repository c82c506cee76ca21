ALTER TABLE series
    ADD COLUMN cover_address text NOT NULL DEFAULT '';
