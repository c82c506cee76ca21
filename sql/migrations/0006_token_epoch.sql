ALTER TABLE readers
    ADD COLUMN token_epoch bigint NOT NULL DEFAULT 0;
