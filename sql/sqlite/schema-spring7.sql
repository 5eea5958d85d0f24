-- The five columns of Spring Integration 7, for SQLite 3.35 or later.
--
-- Spring itself has no schema for SQLite: this one is for programs that use
-- sqlock with Spring's columns.  Times are microseconds since 1970-01-01 UTC.
-- There are no fencing tokens in it.
PRAGMA journal_mode=WAL;

CREATE TABLE IF NOT EXISTS INT_LOCK (
    LOCK_KEY      TEXT    NOT NULL,
    REGION        TEXT    NOT NULL,
    CLIENT_ID     TEXT,
    CREATED_DATE  INTEGER NOT NULL CHECK (typeof(CREATED_DATE) = 'integer'),
    EXPIRED_AFTER INTEGER NOT NULL CHECK (typeof(EXPIRED_AFTER) = 'integer'),
    PRIMARY KEY (LOCK_KEY, REGION)
) WITHOUT ROWID;
