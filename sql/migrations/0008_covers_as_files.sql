-- The bytes lie in the cover folder from here on; what was stored here is fetched again.
DROP TABLE covers;

CREATE TABLE covers (
    address text PRIMARY KEY,
    path text NOT NULL,
    content_type text NOT NULL
);
