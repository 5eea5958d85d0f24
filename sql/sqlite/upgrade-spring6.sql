-- From Spring's four columns to sqlock's own, for SQLite 3.35 or later.
--
--     sqlite3 -bail -cmd '.parameter set :ttl_ms 10000' FILE \
--         < upgrade-spring6.sql
--
-- :ttl_ms is the TTL that all who share the table have agreed on.  Leases that
-- have not run out stay as long as they were meant to be.  A program that still
-- has the table open with four columns can release what it holds, but neither
-- take nor renew a lock: the trigger and the new column refuse it, because the
-- others would not see its lease.  Drop the trigger when every program has been
-- started anew.
PRAGMA busy_timeout = 10000;
BEGIN IMMEDIATE;

CREATE TABLE INT_LOCK_NEW (
    LOCK_KEY      TEXT    NOT NULL CHECK (typeof(LOCK_KEY) = 'text'
                                          AND length(LOCK_KEY) <= 36),
    REGION        TEXT    NOT NULL CHECK (typeof(REGION) = 'text'
                                          AND length(REGION) <= 100),
    CLIENT_ID     TEXT,
    CREATED_DATE  INTEGER NOT NULL CHECK (typeof(CREATED_DATE) = 'integer'),
    EXPIRED_AFTER INTEGER NOT NULL CHECK (typeof(EXPIRED_AFTER) = 'integer'),
    FENCE         INTEGER NOT NULL DEFAULT 0 CHECK (typeof(FENCE) = 'integer'),
    LOCK_NAME     TEXT,
    HOLDER        TEXT,
    PRIMARY KEY (LOCK_KEY, REGION),
    CHECK (CLIENT_ID IS NULL OR EXPIRED_AFTER > CREATED_DATE)
) WITHOUT ROWID;
INSERT INTO INT_LOCK_NEW (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
                          EXPIRED_AFTER)
    SELECT LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
           CREATED_DATE + :ttl_ms * 1000
    FROM INT_LOCK;
DROP TABLE INT_LOCK;
ALTER TABLE INT_LOCK_NEW RENAME TO INT_LOCK;

CREATE TRIGGER INT_LOCK_FOUR_COLUMNS BEFORE UPDATE ON INT_LOCK
WHEN NEW.CREATED_DATE <> OLD.CREATED_DATE
     AND NEW.EXPIRED_AFTER = OLD.EXPIRED_AFTER
BEGIN
    SELECT RAISE(ABORT, 'INT_LOCK has a new layout: start this program anew');
END;

COMMIT;
