-- From sqlock's table without the column LEADER to one with it, with MySQL 8.0 and
-- MariaDB 10.6 and later.
--
--     mysql DATABASE < upgrade-leader.sql
--
-- Locks may be held and taken meanwhile: the column is added without touching a
-- row.  If the statement does not get its turn within 2 s, it ends with an error
-- and has done nothing: run the script again.
-- Programs of the version before have the texts of leaders in SHARERS: they and
-- newer ones do not see each other's, and agree on all else.
SET SESSION lock_wait_timeout = 2;

SET @sqlock_columns = (
    SELECT GROUP_CONCAT(UPPER(column_name) ORDER BY column_name SEPARATOR ' ')
    FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'INT_LOCK');
SET @sqlock_do = IF(COALESCE(@sqlock_columns, '') = CONCAT(
        'CLIENT_ID CREATED_DATE EXPIRED_AFTER FENCE ',
        'HOLDER LOCK_KEY LOCK_NAME QUEUE REGION SHARERS'),
    'ALTER TABLE INT_LOCK
        ADD COLUMN LEADER MEDIUMTEXT
            CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
        ALGORITHM = INSTANT',
    'SELECT `nothing was changed: INT_LOCK has not the ten columns`');
PREPARE sqlock_step FROM @sqlock_do;
EXECUTE sqlock_step;
