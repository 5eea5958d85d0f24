-- From Spring Integration 7's five columns to sqlock's own, with MySQL 8.0 and
-- MariaDB 10.6 and later; Spring 7 goes on as before.
--
--     mysql DATABASE < upgrade-spring7.sql
--
-- Locks may be held and taken meanwhile: the columns are added without touching
-- a row.  The last statement copies the table, and others wait for it: a lock
-- table is small.  A statement that does not get its turn within 2 s ends with
-- an error and has done nothing: run the script again.
-- A program that has the table open goes on with five columns, and has tokens
-- and names when it opens it anew.
SET SESSION lock_wait_timeout = 2;

-- @sqlock_fault says why the upgrade cannot be done; null: it can.
SET @sqlock_columns = (
    SELECT GROUP_CONCAT(UPPER(column_name) ORDER BY column_name SEPARATOR ' ')
    FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'INT_LOCK');
SET @sqlock_is_begun = @sqlock_columns = CONCAT(
        'CLIENT_ID CREATED_DATE EXPIRED_AFTER FENCE ',
        'HOLDER LEADER LOCK_KEY LOCK_NAME QUEUE REGION SHARERS')
    AND NOT EXISTS (SELECT 1 FROM information_schema.table_constraints
        WHERE table_schema = DATABASE() AND table_name = 'INT_LOCK'
        AND constraint_type = 'CHECK');
SET @sqlock_fault = IF(COALESCE(@sqlock_is_begun, 0) OR
    COALESCE(@sqlock_columns, '') =
        'CLIENT_ID CREATED_DATE EXPIRED_AFTER LOCK_KEY REGION', NULL,
    'nothing was changed: INT_LOCK has not the five columns');
SET @sqlock_do = IF(@sqlock_fault IS NULL, 'DO 0',
                    CONCAT('SELECT `', @sqlock_fault, '`'));
PREPARE sqlock_step FROM @sqlock_do;
EXECUTE sqlock_step;

SET @sqlock_do = IF(@sqlock_fault IS NULL AND NOT COALESCE(@sqlock_is_begun, 0),
    'ALTER TABLE INT_LOCK
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

SET @sqlock_do = IF(@sqlock_fault IS NULL,
    'ALTER TABLE INT_LOCK
        ADD CHECK (CLIENT_ID IS NULL OR EXPIRED_AFTER > CREATED_DATE)', 'DO 0');
PREPARE sqlock_step FROM @sqlock_do;
EXECUTE sqlock_step;
