-- "ms" columns throughout hold unix milliseconds.
CREATE TABLE bookmarks (
    key text PRIMARY KEY,
    site text NOT NULL,
    series_id text NOT NULL,
    title text NOT NULL DEFAULT '',
    series_url text NOT NULL DEFAULT '',
    cover text NOT NULL DEFAULT '',
    last_chapter text NOT NULL DEFAULT '',
    last_chapter_num double precision NOT NULL DEFAULT 0,
    last_chapter_url text NOT NULL DEFAULT '',
    favorite boolean NOT NULL DEFAULT FALSE,
    latest_chapter text NOT NULL DEFAULT '',
    latest_chapter_num double precision,
    latest_checked_at bigint NOT NULL DEFAULT 0,
    status text NOT NULL DEFAULT 'reading',
    kind text NOT NULL DEFAULT 'manga',
    updated_at bigint NOT NULL
);
