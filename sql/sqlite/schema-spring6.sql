-- The four columns of Spring Integration 5.4 to 6.5, for SQLite 3.35 or later.
--
-- Spring itself has no schema for SQLite: this one is for programs that use
-- sqlock with Spring's columns.  Times are microseconds since 1970-01-01 UTC.
-- A lease ends at CREATED_DATE plus the TTL that the contender is set to.
PRAGMA journal_mode=WAL;

CREATE TABLE IF NOT EXISTS INT_LOCK (
    LOCK_KEY      TEXT    NOT NULL,
    REGION        TEXT    NOT NULL,
    CLIENT_ID     TEXT,
    CREATED_DATE  INTEGER NOT NULL CHECK (typeof(CREATED_DATE) = 'integer'),
    PRIMARY KEY (LOCK_KEY, REGION)
) WITHOUT ROWID;
