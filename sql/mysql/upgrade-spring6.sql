-- From the four columns of Spring Integration 5.4 to 6.5 to sqlock's own, with
-- MySQL 8.0 and MariaDB 10.6 and later.  No Spring before 7 may use the table
-- from now on.
--
--     mysql --init-command='SET @ttl_ms = 10000' DATABASE < upgrade-spring6.sql
--
-- @ttl_ms is the TTL that all who share the table have agreed on.  Leases that
-- have not run out stay as long as they were meant to be.  A program that still
-- has the table open with four columns can release what it holds, but neither
-- take nor renew a lock: the triggers refuse it, because the others would not see
-- its lease.  They say so as an error of syntax: Spring takes that for final,
-- but tries 45000 again without end, which MariaDB's JDBC driver calls transient.
-- Drop them when every program has been started anew.  To create them takes the
-- privilege TRIGGER (with a binary log, log_bin_trust_function_creators or SUPER,
-- too).
--
-- MySQL commits each statement, so the table is changed in steps: nothing is
-- changed unless @ttl_ms is set and the table has the four columns; the last
-- steps are done only if the triggers are there.  In between, sqlock refuses to
-- open the table, and programs that have it open go on.  A statement that does
-- not get its turn within 2 s ends with an error: run the script again, with
-- --force, which passes over triggers that are there.
SET SESSION lock_wait_timeout = 2;
SET SESSION sql_safe_updates = 0;
SET SESSION sql_mode = CONCAT_WS(',', NULLIF(@@sql_mode, ''), 'STRICT_ALL_TABLES');

-- @sqlock_fault says why the upgrade cannot be done; null: it can.
SET @sqlock_columns = (
    SELECT GROUP_CONCAT(UPPER(column_name) ORDER BY column_name SEPARATOR ' ')
    FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'INT_LOCK');
SET @sqlock_is_begun = (
    SELECT COUNT(*) FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'INT_LOCK'
    AND column_name = 'EXPIRED_AFTER' AND is_nullable = 'YES')
    AND @sqlock_columns = CONCAT('CLIENT_ID CREATED_DATE EXPIRED_AFTER FENCE ',
                                 'HOLDER LEADER LOCK_KEY LOCK_NAME QUEUE REGION ',
                                 'SHARERS');
SET @sqlock_fault = CASE
    WHEN COALESCE(@sqlock_columns, '') <>
         'CLIENT_ID CREATED_DATE LOCK_KEY REGION'
         AND NOT COALESCE(@sqlock_is_begun, 0)
    THEN 'nothing was changed: INT_LOCK has not the four columns'
    WHEN COALESCE(@ttl_ms REGEXP '^[1-9][0-9]*$', 0) = 0
    THEN 'nothing was changed: @ttl_ms is missing' END;
SET @sqlock_do = IF(@sqlock_fault IS NULL, 'DO 0',
                    CONCAT('SELECT `', @sqlock_fault, '`'));
PREPARE sqlock_step FROM @sqlock_do;
EXECUTE sqlock_step;

SET @sqlock_do = IF(@sqlock_fault IS NULL AND NOT COALESCE(@sqlock_is_begun, 0),
    'ALTER TABLE INT_LOCK
        ADD COLUMN EXPIRED_AFTER DATETIME(6),
        ADD COLUMN FENCE BIGINT NOT NULL DEFAULT 0,
        ADD COLUMN LOCK_NAME VARCHAR(255)
            CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
        ADD COLUMN HOLDER VARCHAR(255)
            CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
        ADD COLUMN QUEUE MEDIUMTEXT
            CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
        ADD COLUMN SHARERS MEDIUMTEXT
            CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
        ADD COLUMN LEADER MEDIUMTEXT
            CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
        ALGORITHM = INSTANT', 'DO 0');
PREPARE sqlock_step FROM @sqlock_do;
EXECUTE sqlock_step;

-- On a table without the new columns, this fails: they name one.
DELIMITER //
CREATE TRIGGER INT_LOCK_FOUR_COLUMNS_INSERT BEFORE INSERT ON INT_LOCK
FOR EACH ROW
    IF NEW.EXPIRED_AFTER IS NULL AND NEW.LOCK_NAME IS NULL THEN
        SIGNAL SQLSTATE '42000' SET MESSAGE_TEXT =
            'INT_LOCK has a new layout: start this program anew';
    END IF//
CREATE TRIGGER INT_LOCK_FOUR_COLUMNS_UPDATE BEFORE UPDATE ON INT_LOCK
FOR EACH ROW
    IF NEW.CREATED_DATE <> OLD.CREATED_DATE
       AND NEW.EXPIRED_AFTER <=> OLD.EXPIRED_AFTER
       AND NEW.LOCK_NAME <=> OLD.LOCK_NAME
       AND NEW.SHARERS <=> OLD.SHARERS THEN
        SIGNAL SQLSTATE '42000' SET MESSAGE_TEXT =
            'INT_LOCK has a new layout: start this program anew';
    END IF//
DELIMITER ;

SET @sqlock_fault = COALESCE(@sqlock_fault, IF((
    SELECT COUNT(*) FROM information_schema.triggers
    WHERE event_object_schema = DATABASE()
    AND event_object_table = 'INT_LOCK' AND trigger_name IN
        ('INT_LOCK_FOUR_COLUMNS_INSERT', 'INT_LOCK_FOUR_COLUMNS_UPDATE')) = 2,
    NULL, 'not upgraded: the triggers are missing'));
SET @sqlock_do = IF(@sqlock_fault IS NULL,
    'UPDATE INT_LOCK
        SET EXPIRED_AFTER = CREATED_DATE + INTERVAL @ttl_ms * 1000 MICROSECOND
        WHERE EXPIRED_AFTER IS NULL', CONCAT('SELECT `', @sqlock_fault, '`'));
PREPARE sqlock_step FROM @sqlock_do;
EXECUTE sqlock_step;

SET @sqlock_do = IF(@sqlock_fault IS NULL,
    'ALTER TABLE INT_LOCK
        MODIFY COLUMN EXPIRED_AFTER DATETIME(6) NOT NULL AFTER CREATED_DATE,
        ADD CHECK (CLIENT_ID IS NULL OR EXPIRED_AFTER > CREATED_DATE)', 'DO 0');
PREPARE sqlock_step FROM @sqlock_do;
EXECUTE sqlock_step;
