-- From sqlock's table without the column LEADER to one with it, with PostgreSQL 12
-- and later.
--
--     psql -v ON_ERROR_STOP=1 -f upgrade-leader.sql DATABASE
--
-- Locks may be held and taken meanwhile: the column is added without touching a
-- row, under a lock that is had within 2 s or not at all (then run it again).
-- Programs of the version before have the texts of leaders in SHARERS: they and
-- newer ones do not see each other's, and agree on all else.
DO $upgrade$
DECLARE
    columns text;
BEGIN
    PERFORM set_config('lock_timeout', '2s', true);
    SELECT string_agg(attname, ' ' ORDER BY attname) INTO columns
        FROM pg_attribute WHERE attrelid = to_regclass('INT_LOCK')
        AND attnum > 0 AND NOT attisdropped;
    IF columns IS DISTINCT FROM 'client_id created_date expired_after fence '
            'holder lock_key lock_name queue region sharers' THEN
        RAISE EXCEPTION 'nothing was changed: there is no table INT_LOCK of '
            'sqlock without the column LEADER';
    END IF;

    ALTER TABLE INT_LOCK ADD COLUMN LEADER TEXT;
END
$upgrade$;
