-- The lock table of Spring Integration 5.4 to 6.5 for MySQL and MariaDB, the
-- only one that may be shared with these versions.  The program
-- that wants a lock decides by its own TTL whether the lease has run out.
-- Unlike in Spring's own script, case counts, as it does for Spring itself.

CREATE TABLE IF NOT EXISTS INT_LOCK (
    LOCK_KEY CHAR(36) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    REGION VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    CLIENT_ID CHAR(36) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    CREATED_DATE DATETIME(6) NOT NULL,
    PRIMARY KEY (LOCK_KEY, REGION)
) ENGINE=InnoDB;
