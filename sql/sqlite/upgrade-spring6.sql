-- From Spring's four columns to sqlock's own, for SQLite 3.35 or later.
--
--     sqlite3 -cmd '.parameter set :ttl_ms 10000' FILE < upgrade-spring6.sql
--
-- :ttl_ms is the TTL that all who share the table have agreed on.  Leases that
-- have not run out stay as long as they were meant to be.  A program that still
-- has the table open with four columns can release what it holds, but neither
-- take nor renew a lock: the triggers refuse it, because the others would not
-- see its lease.  Drop them when every program has been started anew.
--
-- All is one transaction, which the first error ends: it is done, or nothing is.
.bail on
PRAGMA busy_timeout = 10000;
BEGIN IMMEDIATE;

CREATE TEMP TABLE SQLOCK_UPGRADE (TTL_MS, COLUMNS);
CREATE TEMP TRIGGER SQLOCK_UPGRADE_CHECK BEFORE INSERT ON SQLOCK_UPGRADE
BEGIN
    SELECT RAISE(ABORT, 'nothing was changed: there is no table INT_LOCK with the four columns of Spring')
    WHERE NEW.COLUMNS IS NOT 'CLIENT_ID CREATED_DATE LOCK_KEY REGION';
    SELECT RAISE(ABORT, 'nothing was changed: the TTL is missing: .parameter set :ttl_ms 10000')
    WHERE typeof(NEW.TTL_MS) <> 'integer' OR NEW.TTL_MS <= 0;
END;
INSERT INTO SQLOCK_UPGRADE SELECT :ttl_ms, (
    SELECT group_concat(NAME, ' ') FROM (SELECT upper(name) AS NAME
    FROM pragma_table_info('INT_LOCK') ORDER BY 1));

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
    QUEUE         TEXT,
    SHARERS       TEXT,
    LEADER        TEXT,
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

CREATE TRIGGER INT_LOCK_FOUR_COLUMNS_INSERT BEFORE INSERT ON INT_LOCK
WHEN NEW.EXPIRED_AFTER IS NULL
BEGIN
    SELECT RAISE(ABORT, 'INT_LOCK has a new layout: start this program anew');
END;
CREATE TRIGGER INT_LOCK_FOUR_COLUMNS_UPDATE BEFORE UPDATE ON INT_LOCK
WHEN NEW.CREATED_DATE <> OLD.CREATED_DATE
     AND NEW.EXPIRED_AFTER = OLD.EXPIRED_AFTER
     AND NEW.SHARERS IS OLD.SHARERS
BEGIN
    SELECT RAISE(ABORT, 'INT_LOCK has a new layout: start this program anew');
END;

COMMIT;
