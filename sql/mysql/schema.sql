-- The lock table for MySQL 8.0 and later and MariaDB 10.6 and later.
--
-- Spring Integration 7 may share it.  Spring before 7 must not: it does not
-- know EXPIRED_AFTER, and two holders would be let in.
--
-- Keys and regions are compared byte by byte, whatever the database's default
-- collation is.  Times are UTC by the server's clock.  There is no index beyond
-- the primary key: every statement goes by it, and another one would only make
-- writing dearer.
--
-- A released row stays and keeps the last fencing token.  CLIENT_ID and HOLDER
-- stay in it, too, so that its size does not change: it is free where CLIENT_ID
-- is null or EXPIRED_AFTER lies before now, and a release puts EXPIRED_AFTER 400
-- years back (and CREATED_DATE 800).  QUEUE has the tickets of those who wait, in
-- order; SHARERS has those who share it, and LEADER the text of who has it alone.

-- INT_LOCK_SERVER has one row, from which a session learns whether the server may
-- have forgotten leases: EPOCH names the server, and its start where a crash loses
-- commits, SINCE is when that one was first seen, and before GRANTS_FROM nothing is
-- granted.  No lease is longer than LONGEST_MS, nor a new one than ALLOWED_MS.  Both
-- are lowered to LEAST_MS, one after the other (CHANGED), when no lease is longer.
CREATE TABLE IF NOT EXISTS INT_LOCK_SERVER (
    ID INT NOT NULL DEFAULT 1 PRIMARY KEY,
    EPOCH VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    SINCE DATETIME(6) NOT NULL,
    GRANTS_FROM DATETIME(6) NOT NULL,
    LONGEST_MS BIGINT NOT NULL DEFAULT 30000,
    ALLOWED_MS BIGINT NOT NULL DEFAULT 30000,
    LEAST_MS BIGINT NOT NULL DEFAULT 30000,
    CHANGED DATETIME(6) NOT NULL DEFAULT '2000-01-01',
    NOTE VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    CHECK (ID = 1)
) ENGINE=InnoDB;
INSERT IGNORE INTO INT_LOCK_SERVER (ID, SINCE, GRANTS_FROM)
    VALUES (1, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6));
CREATE TABLE IF NOT EXISTS INT_LOCK (
    LOCK_KEY CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    REGION VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    CLIENT_ID CHAR(36) CHARACTER SET ascii COLLATE ascii_bin,
    CREATED_DATE DATETIME(6) NOT NULL,
    EXPIRED_AFTER DATETIME(6) NOT NULL,
    FENCE BIGINT NOT NULL DEFAULT 0,
    LOCK_NAME VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    HOLDER VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    QUEUE MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    SHARERS MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    LEADER MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    PRIMARY KEY (LOCK_KEY, REGION),
    CHECK (CLIENT_ID IS NULL OR EXPIRED_AFTER > CREATED_DATE)
) ENGINE=InnoDB;
