-- From Spring Integration 7's five columns to sqlock's own, with PostgreSQL 12
-- and later; Spring 7 goes on as before.
--
--     psql -v ON_ERROR_STOP=1 -f upgrade-spring7.sql DATABASE
--
-- Locks may be held and taken meanwhile: the columns are added without touching
-- a row, under a lock that is had within 2 s or not at all (then run it again).
-- All is one statement: it is done, or nothing is.
-- A program that has the table open goes on with five columns, and has tokens
-- and names when it opens it anew.
DO $upgrade$
DECLARE
    columns text;
BEGIN
    PERFORM set_config('lock_timeout', '2s', true);
    SELECT string_agg(attname, ' ' ORDER BY attname) INTO columns
        FROM pg_attribute WHERE attrelid = to_regclass('INT_LOCK')
        AND attnum > 0 AND NOT attisdropped;
    IF columns IS DISTINCT FROM
            'client_id created_date expired_after lock_key region' THEN
        RAISE EXCEPTION 'nothing was changed: there is no table INT_LOCK with '
            'the five columns of Spring 7';
    END IF;

    ALTER TABLE INT_LOCK
        ADD COLUMN FENCE     BIGINT DEFAULT 0 NOT NULL,
        ADD COLUMN LOCK_NAME VARCHAR(255),
        ADD COLUMN HOLDER    VARCHAR(255),
        ADD COLUMN QUEUE     TEXT,
        ADD COLUMN SHARERS   TEXT,
        ADD COLUMN LEADER    TEXT,
        ADD CHECK (CLIENT_ID IS NULL OR EXPIRED_AFTER > CREATED_DATE) NOT VALID;
    ALTER TABLE INT_LOCK ALTER COLUMN CLIENT_ID DROP NOT NULL;
    ALTER TABLE INT_LOCK SET (fillfactor = 70,
        autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
END
$upgrade$;
