-- SHA-256 of the applied file. Null for the twenty steps that were taken over: what the earlier deployment ran had
-- the same effect and other bytes.
ALTER TABLE schema_migrations
    ADD COLUMN checksum text;
