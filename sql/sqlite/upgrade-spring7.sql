-- From Spring's five columns to sqlock's own, for SQLite 3.35 or later.
--
--     sqlite3 FILE < upgrade-spring7.sql
--
-- Locks may be held meanwhile: all is one transaction, and others wait for it.
-- The first error ends it: it is done, or nothing is.
-- A program that has the table open goes on with five columns, and has tokens
-- and names when it opens it anew.
.bail on
PRAGMA busy_timeout = 10000;
BEGIN IMMEDIATE;

CREATE TEMP TABLE SQLOCK_UPGRADE (COLUMNS);
CREATE TEMP TRIGGER SQLOCK_UPGRADE_CHECK BEFORE INSERT ON SQLOCK_UPGRADE
WHEN NEW.COLUMNS IS NOT 'CLIENT_ID CREATED_DATE EXPIRED_AFTER LOCK_KEY REGION'
BEGIN
    SELECT RAISE(ABORT, 'nothing was changed: there is no table INT_LOCK with the five columns of Spring 7');
END;
INSERT INTO SQLOCK_UPGRADE
    SELECT group_concat(NAME, ' ') FROM (SELECT upper(name) AS NAME
    FROM pragma_table_info('INT_LOCK') ORDER BY 1);

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
    SELECT LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER
    FROM INT_LOCK;
DROP TABLE INT_LOCK;
ALTER TABLE INT_LOCK_NEW RENAME TO INT_LOCK;

COMMIT;
