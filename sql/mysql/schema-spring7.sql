-- Spring Integration 7's lock table for MySQL and MariaDB, for a database where
-- Spring's services come first.  It has no fencing counter and no names.

CREATE TABLE IF NOT EXISTS INT_LOCK (
    LOCK_KEY CHAR(36) NOT NULL,
    REGION VARCHAR(100) NOT NULL,
    CLIENT_ID CHAR(36),
    CREATED_DATE DATETIME(6) NOT NULL,
    EXPIRED_AFTER DATETIME(6) NOT NULL,
    PRIMARY KEY (LOCK_KEY, REGION)
) ENGINE=InnoDB;
