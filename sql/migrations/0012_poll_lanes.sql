CREATE TABLE poll_lanes (
    site text PRIMARY KEY,
    paused_until bigint NOT NULL DEFAULT 0,
    refuse_until bigint NOT NULL DEFAULT 0
);
