-- From sqlock's table without the columns QUEUE, SHARERS and LEADER to one with
-- them, with MySQL 8.0 and MariaDB 10.6 and later.
--
--     mysql DATABASE < upgrade-queue.sql
--
-- Locks may be held and taken meanwhile: the columns are added without touching
-- a row.  If the statement does not get its turn within 2 s, it ends with an
-- error and has done nothing: run the script again.
-- Programs of a version that does not know QUEUE overtake those that wait in it:
-- let none of them run on.
SET SESSION lock_wait_timeout = 2;

SET @sqlock_columns = (
    SELECT GROUP_CONCAT(UPPER(column_name) ORDER BY column_name SEPARATOR ' ')
    FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'INT_LOCK');
SET @sqlock_do = IF(COALESCE(@sqlock_columns, '') = CONCAT(
        'CLIENT_ID CREATED_DATE EXPIRED_AFTER FENCE ',
        'HOLDER LOCK_KEY LOCK_NAME REGION'),
    'ALTER TABLE INT_LOCK
        ADD COLUMN QUEUE MEDIUMTEXT
            CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
        ADD COLUMN SHARERS MEDIUMTEXT
            CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
        ADD COLUMN LEADER MEDIUMTEXT
            CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
        ALGORITHM = INSTANT',
    'SELECT `nothing was changed: INT_LOCK has not the eight columns`');
PREPARE sqlock_step FROM @sqlock_do;
EXECUTE sqlock_step;
