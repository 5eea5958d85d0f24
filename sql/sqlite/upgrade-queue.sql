-- From sqlock's table without the columns QUEUE, SHARERS and LEADER to one with
-- them, for SQLite 3.35 or later.
--
--     sqlite3 FILE < upgrade-queue.sql
--
-- Locks may be held meanwhile: all is one transaction, and others wait for it.
-- Programs of a version that does not know QUEUE overtake those that wait in it:
-- let none of them run on.
.bail on
PRAGMA busy_timeout = 10000;
BEGIN IMMEDIATE;

CREATE TEMP TABLE SQLOCK_UPGRADE (COLUMNS);
CREATE TEMP TRIGGER SQLOCK_UPGRADE_CHECK BEFORE INSERT ON SQLOCK_UPGRADE
WHEN NEW.COLUMNS IS NOT
    'CLIENT_ID CREATED_DATE EXPIRED_AFTER FENCE HOLDER LOCK_KEY LOCK_NAME REGION'
BEGIN
    SELECT RAISE(ABORT, 'nothing was changed: there is no table INT_LOCK of sqlock without the columns QUEUE, SHARERS and LEADER');
END;
INSERT INTO SQLOCK_UPGRADE
    SELECT group_concat(NAME, ' ') FROM (SELECT upper(name) AS NAME
    FROM pragma_table_info('INT_LOCK') ORDER BY 1);

ALTER TABLE INT_LOCK ADD COLUMN QUEUE TEXT;
ALTER TABLE INT_LOCK ADD COLUMN SHARERS TEXT;
ALTER TABLE INT_LOCK ADD COLUMN LEADER TEXT;

COMMIT;
