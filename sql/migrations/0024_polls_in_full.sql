-- A reading too far from the stored number to be published at once: kept beside it until another one settles it (LANE-054).
ALTER TABLE series
    ADD COLUMN doubtful_chapter text NOT NULL DEFAULT '',
    ADD COLUMN doubtful_chapter_num double precision,
    ADD COLUMN doubtful_at bigint NOT NULL DEFAULT 0;

-- Whether the stored number was set by a Reader or the Owner and no machine has read it since: such a one is corrected
-- at once, however far (LANE-054).
ALTER TABLE series ADD COLUMN latest_by_person boolean NOT NULL DEFAULT FALSE;
UPDATE series
SET latest_by_person = TRUE
WHERE latest_raised_by IS NOT NULL
   OR latest_corrected_at <> 0
   OR latest_checked_at = 0 AND latest_chapter_num IS NOT NULL;

-- What a page came with, kept with the reading it came with: a 304 is that reading again (LANE-055).
CREATE TABLE page_validators (
    site text NOT NULL,
    series_id text NOT NULL,
    series_url text NOT NULL,
    reader_version integer NOT NULL,
    etag text NOT NULL,
    last_modified text NOT NULL,
    latest_chapter text NOT NULL,
    latest_chapter_num double precision NOT NULL,
    cover text NOT NULL,
    completed boolean NOT NULL,
    PRIMARY KEY (site, series_id),
    FOREIGN KEY (site, series_id) REFERENCES series ON DELETE CASCADE
);

-- When the browser was last lost, for every process and after a restart (LANE-007); one row at most.
CREATE TABLE browser_losses (
    only_row boolean PRIMARY KEY DEFAULT TRUE CHECK (only_row),
    lost_at bigint NOT NULL
);

-- How long a pause or a backoff was meant to last, so that a clock that jumps back cannot stretch it (LANE-058).
ALTER TABLE poll_lanes
    ADD COLUMN pause_ms bigint NOT NULL DEFAULT 0,
    ADD COLUMN backoff_ms bigint NOT NULL DEFAULT 0;

-- A pass that a shutdown or a crash cut short is judged by nobody (FAULT-002); reads that the browser answered prove that
-- it was reached (LANE-017).
ALTER TABLE poll_passes
    ADD COLUMN cut boolean NOT NULL DEFAULT FALSE,
    ADD COLUMN browser_reads integer NOT NULL DEFAULT 0;

-- A fortnight of passes is some hundred thousand rows, and faults are judged after each of them.
CREATE INDEX poll_passes_ran_at_idx ON poll_passes (ran_at);
CREATE INDEX poll_passes_refusing_idx ON poll_passes (site, ran_at) WHERE skip = 'refusing' OR refused > 0;
CREATE INDEX poll_passes_browser_idx ON poll_passes (ran_at) WHERE browser_reads > 0;

-- A fault that has begun and has not been proven over (FAULT-011, FAULT-012); `site` is empty for the browser's.
CREATE TABLE fault_episodes (
    condition text NOT NULL,
    site text NOT NULL,
    since bigint NOT NULL,
    PRIMARY KEY (condition, site)
);

-- What a Lane may ask for, in the order in which it becomes due. It takes the place of the indexes on the stamp alone,
-- each of which cost every Poll an entry.
CREATE INDEX series_pollable_idx
    ON series (site, latest_checked_at)
    WHERE series_url <> '' AND (finished_at = 0 OR force_poll_at > 0);
DROP INDEX series_latest_checked_at_idx;
DROP INDEX series_site_checked_idx;

-- The few that jump the queue.
CREATE INDEX series_forced_idx ON series (site) WHERE force_poll_at > latest_checked_at;
CREATE INDEX series_doubtful_idx ON series (site) WHERE doubtful_at > 0;

-- A sleeping Lane is told of what its Owner and its Readers change (LANE-002), whoever writes it. The word carries no
-- command and may be lost.
CREATE FUNCTION wake_lane() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('lane_wakeups', NEW.site);
    RETURN NULL;
END
$$;

CREATE TRIGGER wake_lane_of_new_series
AFTER INSERT ON series
FOR EACH ROW
EXECUTE FUNCTION wake_lane();

CREATE TRIGGER wake_lane_of_series
AFTER UPDATE ON series
FOR EACH ROW
WHEN (
    OLD.series_url <> NEW.series_url
    OR OLD.force_poll_at < NEW.force_poll_at
    OR OLD.finished_at <> 0 AND NEW.finished_at = 0
    OR OLD.acquiring_until > NEW.acquiring_until AND NEW.latest_checked_at = 0
)
EXECUTE FUNCTION wake_lane();

CREATE TRIGGER wake_lane_of_pause
AFTER UPDATE ON poll_lanes
FOR EACH ROW
WHEN (OLD.paused_until <> NEW.paused_until)
EXECUTE FUNCTION wake_lane();

CREATE TRIGGER wake_lane_of_first_pause
AFTER INSERT ON poll_lanes
FOR EACH ROW
WHEN (NEW.paused_until <> 0)
EXECUTE FUNCTION wake_lane();
