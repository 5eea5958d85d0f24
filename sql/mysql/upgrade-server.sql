-- Adds the table INT_LOCK_SERVER to sqlock's tables of an earlier version, or the
-- columns that it lacked there, with MySQL 8.0 and MariaDB 10.6 and later.
--
--     mysql DATABASE < upgrade-server.sql
--
-- Locks may be held and taken meanwhile.  From then on a registry that is opened
-- grants nothing on another server than before, or on one that has lost commits in a
-- crash, until the longest lease that it may have forgotten has run out.  Programs
-- that were started before, and those of an earlier version, grant at once: replace
-- them.  Those of the version that lacked the columns read the longest TTL once: let
-- neither `sqlock reap` nor `sqlock init --longest-ttl` lower it before all are
-- replaced.  If INT_LOCK has grants for roles, run the grants-*.sql scripts again, too.
SET @sqlock_do = IF((
        SELECT COUNT(*) FROM information_schema.columns
        WHERE table_schema = DATABASE() AND table_name = 'INT_LOCK' AND
            UPPER(column_name) = 'QUEUE') = 1,
    'CREATE TABLE IF NOT EXISTS INT_LOCK_SERVER (
        ID INT NOT NULL DEFAULT 1 PRIMARY KEY,
        EPOCH VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
        SINCE DATETIME(6) NOT NULL,
        GRANTS_FROM DATETIME(6) NOT NULL,
        LONGEST_MS BIGINT NOT NULL DEFAULT 30000,
        NOTE VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
        CHECK (ID = 1)
    ) ENGINE=InnoDB',
    'SELECT `nothing was changed: INT_LOCK has no column QUEUE`');
PREPARE sqlock_step FROM @sqlock_do;
EXECUTE sqlock_step;
INSERT IGNORE INTO INT_LOCK_SERVER (ID, SINCE, GRANTS_FROM, LONGEST_MS)
    SELECT 1, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), GREATEST(30000, COALESCE(MAX(
        TIMESTAMPDIFF(MICROSECOND, CREATED_DATE, EXPIRED_AFTER) DIV 1000 + 1), 0))
    FROM INT_LOCK
    WHERE CLIENT_ID IS NOT NULL AND EXPIRED_AFTER > UTC_TIMESTAMP(6);
SET @sqlock_lacks = (
        SELECT COUNT(*) FROM information_schema.columns
        WHERE table_schema = DATABASE() AND table_name = 'INT_LOCK_SERVER' AND
            UPPER(column_name) IN ('LONGEST_MS', 'ALLOWED_MS')) = 1;
SET @sqlock_do = IF(@sqlock_lacks,
    'ALTER TABLE INT_LOCK_SERVER
        ADD COLUMN ALLOWED_MS BIGINT NOT NULL DEFAULT 30000,
        ADD COLUMN LEAST_MS BIGINT NOT NULL DEFAULT 30000,
        ADD COLUMN CHANGED DATETIME(6) NOT NULL DEFAULT ''2000-01-01''',
    'DO 0');
PREPARE sqlock_step FROM @sqlock_do;
EXECUTE sqlock_step;
UPDATE INT_LOCK_SERVER
    SET ALLOWED_MS = LONGEST_MS, LEAST_MS = LONGEST_MS
    WHERE @sqlock_lacks;
