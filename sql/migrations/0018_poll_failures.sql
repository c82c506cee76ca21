CREATE TABLE poll_failures (
    site text NOT NULL,
    series_id text NOT NULL,
    outcome text NOT NULL,
    failing_since bigint NOT NULL,
    PRIMARY KEY (site, series_id),
    FOREIGN KEY (site, series_id) REFERENCES series (site, series_id) ON DELETE CASCADE
);
