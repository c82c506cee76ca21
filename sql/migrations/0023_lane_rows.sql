-- When a Site was last asked for anything, by anyone of ours (LANE-019, LANE-056).
CREATE TABLE site_requests (
    site text PRIMARY KEY,
    last_request_at bigint NOT NULL
);

-- Refusals in a row, whoever asked: a Lane and the Acquisitions of every process count together (LANE-030, LANE-045).
ALTER TABLE poll_lanes ADD COLUMN refusals_in_a_row integer NOT NULL DEFAULT 0;

-- The due query walks one Site by check stamp; the older index spans all Sites.
CREATE INDEX series_site_checked_idx ON series (site, latest_checked_at);
