CREATE TABLE owner_notices (
    condition text NOT NULL,
    site text NOT NULL,
    notified_at bigint NOT NULL,
    PRIMARY KEY (condition, site)
);
