-- sqlock's lock table for SQLite 3.35 or later.
--
-- Times are microseconds since 1970-01-01 UTC.  The row of a free lock stays:
-- its FENCE is the last fencing token, from which the next one rises.  QUEUE has
-- the tickets of those who wait, in order; SHARERS has those who share it, and LEADER
-- the text of who has it alone.
--
-- WAL is a property of the file, so it is set here, once, and not by the
-- program: readers and the writer do not wait for each other in it.  It needs
-- a local file system.
PRAGMA journal_mode=WAL;

CREATE TABLE IF NOT EXISTS INT_LOCK (
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
