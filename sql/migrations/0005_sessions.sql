CREATE TABLE sessions (
    id text PRIMARY KEY,
    reader_id bigint NOT NULL REFERENCES readers (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);
