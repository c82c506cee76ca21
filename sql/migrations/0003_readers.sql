CREATE TABLE readers (
    id bigserial PRIMARY KEY,
    discord_id text NOT NULL UNIQUE,
    token_sha256 bytea NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- Null for now: the owner is seeded between this step and the next.
ALTER TABLE bookmarks
    ADD COLUMN reader_id bigint;
