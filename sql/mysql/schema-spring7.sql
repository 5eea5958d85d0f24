-- Spring Integration 7's lock table for MySQL and MariaDB, for a database where
-- Spring's services come first.  It has no fencing counter and no names.
-- Unlike in Spring's own script, case counts, as it does for Spring itself.

CREATE TABLE IF NOT EXISTS INT_LOCK (
    LOCK_KEY CHAR(36) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    REGION VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    CLIENT_ID CHAR(36) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    CREATED_DATE DATETIME(6) NOT NULL,
    EXPIRED_AFTER DATETIME(6) NOT NULL,
    PRIMARY KEY (LOCK_KEY, REGION)
) ENGINE=InnoDB;
