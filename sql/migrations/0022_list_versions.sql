-- A list that hasn't changed is answered from bytes made before. What makes it safe is that every change that a Reader
-- could see in their list bumps their version, whoever writes: so it is done by triggers, and no writer can forget it.
ALTER TABLE readers
    ADD COLUMN list_version bigint NOT NULL DEFAULT 0;

-- Until when (unix ms) an acquisition has this Series to itself (COV-002).
ALTER TABLE series
    ADD COLUMN acquiring_until bigint NOT NULL DEFAULT 0;

-- Who holds a Series; the primary key of bookmarks begins with the Reader.
CREATE INDEX bookmarks_series_idx
    ON bookmarks (site, series_id);

CREATE FUNCTION bump_reader_of_bookmark() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        -- A writer of the Series that is about to commit doesn't know of this holder. Wait for it, so that what it
        -- changed stands in the list whose version is bumped here.
        PERFORM FROM series
        WHERE site = NEW.site
          AND series_id = NEW.series_id
        FOR SHARE;
    END IF;
    UPDATE readers
    SET list_version = list_version + 1
    WHERE id IN (OLD.reader_id, NEW.reader_id);
    RETURN NULL;
END
$$;

-- Locks in the order of the ids: two Series with the same holders, written at once, would deadlock otherwise. A
-- transaction that writes several held Series must take them one by one, or lock their Readers first.
CREATE FUNCTION bump_holders_of_series() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    WITH holders AS (
        SELECT id
        FROM readers
        WHERE id IN (
            SELECT reader_id
            FROM bookmarks
            WHERE site = NEW.site
              AND series_id = NEW.series_id
        )
        ORDER BY id
        FOR NO KEY UPDATE
    )
    UPDATE readers
    SET list_version = list_version + 1
    FROM holders
    WHERE readers.id = holders.id;
    RETURN NULL;
END
$$;

CREATE FUNCTION bump_every_reader() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE readers
    SET list_version = list_version + 1;
    RETURN NULL;
END
$$;

CREATE TRIGGER list_version_of_new_or_gone
AFTER INSERT OR DELETE ON bookmarks
FOR EACH ROW
EXECUTE FUNCTION bump_reader_of_bookmark();

CREATE TRIGGER list_version_of_changed
AFTER UPDATE ON bookmarks
FOR EACH ROW
WHEN (OLD IS DISTINCT FROM NEW)
EXECUTE FUNCTION bump_reader_of_bookmark();

CREATE TRIGGER list_version_of_all
AFTER TRUNCATE ON bookmarks
FOR EACH STATEMENT
EXECUTE FUNCTION bump_every_reader();

-- What of a Series shows on the wire (API-007).
CREATE TRIGGER list_version_of_holders
AFTER UPDATE ON series
FOR EACH ROW
WHEN (
    (OLD.title, OLD.series_url, OLD.cover_address, OLD.kind,
     OLD.latest_chapter, OLD.latest_chapter_num, OLD.finished_at)
    IS DISTINCT FROM
    (NEW.title, NEW.series_url, NEW.cover_address, NEW.kind,
     NEW.latest_chapter, NEW.latest_chapter_num, NEW.finished_at)
)
EXECUTE FUNCTION bump_holders_of_series();
