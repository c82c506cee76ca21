ALTER TABLE readers
    ADD COLUMN sighting_agreements integer NOT NULL DEFAULT 0,
    ADD COLUMN sighting_disagreements integer NOT NULL DEFAULT 0;
