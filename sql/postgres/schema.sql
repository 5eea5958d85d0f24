-- The lock table of sqlock for PostgreSQL 12 and later.
-- A Spring Integration 7 JdbcLockRegistry may share it; an older one may not:
-- it does not know EXPIRED_AFTER.
-- Times are UTC, by the database's clock.  A free row stays: it keeps the last
-- fencing token of its key.  Its EXPIRED_AFTER is the time of the release less 50
-- years, so that a Spring service whose clock is behind sees it free at once.
-- QUEUE has the tickets of those who wait, in order; SHARERS has those who share it, and
-- LEADER the text of who has it alone.
-- Each acquire and release leaves a dead row version: room in the page and an
-- early vacuum keep the table small.
--
-- INT_LOCK_SERVER has one row, from which a session learns whether the server may
-- have forgotten leases: EPOCH names the history of the data, which a promotion
-- changes, SINCE is when that one was first seen, and before GRANTS_FROM nothing is
-- granted.  No lease is longer than LONGEST_MS, nor a new one than ALLOWED_MS: the
-- standbys had LONGEST_MS by then.  Both are lowered to LEAST_MS, one after the other
-- (CHANGED), when no lease is longer.  INT_LOCK_MARK has a mark of sessions whose
-- claims do not wait for the disk, durability=fast: a crash empties the table, and so
-- a server that lacks the mark of INT_LOCK_SERVER has forgotten leases.
CREATE TABLE IF NOT EXISTS INT_LOCK_SERVER (
    ID          INTEGER      DEFAULT 1 PRIMARY KEY CHECK (ID = 1),
    EPOCH       VARCHAR(64),
    SINCE       TIMESTAMP    DEFAULT (clock_timestamp() AT TIME ZONE 'UTC') NOT NULL,
    GRANTS_FROM TIMESTAMP    DEFAULT (clock_timestamp() AT TIME ZONE 'UTC') NOT NULL,
    LONGEST_MS  BIGINT       DEFAULT 30000 NOT NULL,
    ALLOWED_MS  BIGINT       DEFAULT 30000 NOT NULL,
    LEAST_MS    BIGINT       DEFAULT 30000 NOT NULL,
    CHANGED     TIMESTAMP    DEFAULT (clock_timestamp() AT TIME ZONE 'UTC') NOT NULL,
    NOTE        VARCHAR(255)
);
INSERT INTO INT_LOCK_SERVER (ID) VALUES (1) ON CONFLICT DO NOTHING;
CREATE UNLOGGED TABLE IF NOT EXISTS INT_LOCK_MARK (
    ID    INTEGER     DEFAULT 1 PRIMARY KEY CHECK (ID = 1),
    EPOCH VARCHAR(64) NOT NULL,
    MARK  BIGINT      NOT NULL
);
CREATE TABLE IF NOT EXISTS INT_LOCK (
    LOCK_KEY      CHAR(36)     NOT NULL,
    REGION        VARCHAR(100) NOT NULL,
    CLIENT_ID     CHAR(36),
    CREATED_DATE  TIMESTAMP    NOT NULL,
    EXPIRED_AFTER TIMESTAMP    NOT NULL,
    FENCE         BIGINT       DEFAULT 0 NOT NULL,
    LOCK_NAME     VARCHAR(255),
    HOLDER        VARCHAR(255),
    QUEUE         TEXT,
    SHARERS       TEXT,
    LEADER        TEXT,
    PRIMARY KEY (LOCK_KEY, REGION),
    CHECK (CLIENT_ID IS NULL OR EXPIRED_AFTER > CREATED_DATE)
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000
);
