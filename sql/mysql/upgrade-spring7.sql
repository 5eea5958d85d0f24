-- From Spring Integration 7's five columns to sqlock's own, with MySQL 8.0 and
-- MariaDB 10.6 and later; Spring 7 goes on as before.
--
--     mysql DATABASE < upgrade-spring7.sql
--
-- Locks may be held and taken meanwhile: the columns are added without touching
-- a row.  The last statement copies the table, and others wait for it: a lock
-- table is small.  A statement that does not get its turn within 2 s ends with
-- an error and has done nothing: go on from there.
-- A program that has the table open goes on with five columns, and has tokens
-- and names when it opens it anew.
SET SESSION lock_wait_timeout = 2;

ALTER TABLE INT_LOCK
    ADD COLUMN FENCE BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN LOCK_NAME VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    ADD COLUMN HOLDER VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    ALGORITHM = INSTANT;
ALTER TABLE INT_LOCK
    ADD CHECK (CLIENT_ID IS NULL OR EXPIRED_AFTER > CREATED_DATE);
