-- The lock table of Spring Integration 5.4 to 6.5 for PostgreSQL: the only
-- layout that these may share with C programs.  A lease ends at CREATED_DATE
-- plus the time to live that all who share the table must agree on.
CREATE TABLE IF NOT EXISTS INT_LOCK (
    LOCK_KEY     CHAR(36)     NOT NULL,
    REGION       VARCHAR(100) NOT NULL,
    CLIENT_ID    CHAR(36),
    CREATED_DATE TIMESTAMP    NOT NULL,
    PRIMARY KEY (LOCK_KEY, REGION)
) WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000
);
