-- Covers keep a Site's second as everything does, but the gap of its Lane does not count from them (LANE-053, LANE-056).
ALTER TABLE site_requests
    ALTER COLUMN last_request_at SET DEFAULT 0,
    ADD COLUMN last_cover_at bigint NOT NULL DEFAULT 0;
