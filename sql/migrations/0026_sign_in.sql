-- Sign-in: what must be known to every process and after a restart. Tokens are kept as their SHA-256, times are unix ms.

-- OAuth states that a browser was sent to Discord with (SES-015, SES-016).
CREATE TABLE oauth_states (
    state_sha256 bytea PRIMARY KEY,
    browser_sha256 bytea NOT NULL,
    expires_at bigint NOT NULL
);

-- Links that sign a Reader in without Discord (SES-027).
CREATE TABLE sign_in_links (
    token_sha256 bytea PRIMARY KEY,
    reader_id bigint NOT NULL REFERENCES readers (id) ON DELETE CASCADE,
    expires_at bigint NOT NULL
);

-- Failed sign-ins by client, the newest first and at most ten of each (SES-011).
CREATE TABLE sign_in_failures (
    client text PRIMARY KEY,
    failed_at bigint[] NOT NULL,
    last_failed_at bigint NOT NULL
);
CREATE INDEX sign_in_failures_last_idx ON sign_in_failures (last_failed_at);

-- Expired sessions are swept at each sign-in, and one Reader's are ended together.
CREATE INDEX sessions_expires_at_idx ON sessions (expires_at);
CREATE INDEX sessions_reader_idx ON sessions (reader_id);
