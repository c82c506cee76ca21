CREATE TABLE covers (
    image_id text PRIMARY KEY,
    body bytea NOT NULL,
    content_type text NOT NULL,
    fetched_at timestamptz NOT NULL DEFAULT now()
);
