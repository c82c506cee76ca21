CREATE TABLE poll_passes (
    site text NOT NULL,
    ran_at bigint NOT NULL,
    skip text NOT NULL,
    due integer NOT NULL,
    checked integer NOT NULL,
    gap_ms bigint NOT NULL,
    clamped boolean NOT NULL,
    refused integer NOT NULL,
    unreachable integer NOT NULL,
    no_chapter integer NOT NULL,
    unfetchable integer NOT NULL,
    errors integer NOT NULL,
    PRIMARY KEY (site, ran_at)
);
