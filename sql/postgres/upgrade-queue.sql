-- From sqlock's table without the columns QUEUE, SHARERS and LEADER to one with
-- them, with PostgreSQL 12 and later.
--
--     psql -v ON_ERROR_STOP=1 -f upgrade-queue.sql DATABASE
--
-- Locks may be held and taken meanwhile: the columns are added without touching
-- a row, under a lock that is had within 2 s or not at all (then run it again).
-- Programs of a version that does not know QUEUE overtake those that wait in it:
-- let none of them run on.
DO $upgrade$
DECLARE
    columns text;
BEGIN
    PERFORM set_config('lock_timeout', '2s', true);
    SELECT string_agg(attname, ' ' ORDER BY attname) INTO columns
        FROM pg_attribute WHERE attrelid = to_regclass('INT_LOCK')
        AND attnum > 0 AND NOT attisdropped;
    IF columns IS DISTINCT FROM 'client_id created_date expired_after fence '
            'holder lock_key lock_name region' THEN
        RAISE EXCEPTION 'nothing was changed: there is no table INT_LOCK of '
            'sqlock without the columns QUEUE, SHARERS and LEADER';
    END IF;

    ALTER TABLE INT_LOCK ADD COLUMN QUEUE TEXT, ADD COLUMN SHARERS TEXT,
        ADD COLUMN LEADER TEXT;
END
$upgrade$;
