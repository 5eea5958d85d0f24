-- The lock table of Spring Integration 7 for PostgreSQL, where C programs and
-- Spring services share it.  Release deletes the row; tokens are the database's
-- clock.
CREATE TABLE IF NOT EXISTS INT_LOCK (
    LOCK_KEY      CHAR(36)     NOT NULL,
    REGION        VARCHAR(100) NOT NULL,
    CLIENT_ID     CHAR(36),
    CREATED_DATE  TIMESTAMP    NOT NULL,
    EXPIRED_AFTER TIMESTAMP    NOT NULL,
    PRIMARY KEY (LOCK_KEY, REGION)
) WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000
);
