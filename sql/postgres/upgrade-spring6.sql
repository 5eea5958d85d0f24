-- From the four columns of Spring Integration 5.4 to 6.5 to sqlock's own, with
-- PostgreSQL 12 and later.  No Spring before 7 may use the table from now on.
--
--     psql -v ON_ERROR_STOP=1 -v ttl="'10 seconds'" -f upgrade-spring6.sql DB
--
-- ttl is the TTL that all who share the table have agreed on.  Leases that have
-- not run out stay as long as they were meant to be.  A program that still has
-- the table open with four columns can release what it holds, but neither take
-- nor renew a lock: the triggers refuse it, because the others would not see its
-- lease.  Drop them when every program has been started anew.
--
-- All is one statement: it is done, or nothing is, also by a client that goes on
-- after an error.  It gets the table within 2 s or not at all; then run it again.
SELECT set_config('sqlock.ttl', '', false);
SELECT set_config('sqlock.ttl', :ttl, false);

DO $upgrade$
DECLARE
    ttl     interval := NULLIF(current_setting('sqlock.ttl', true), '');
    columns text;
BEGIN
    PERFORM set_config('lock_timeout', '2s', true);
    SELECT string_agg(attname, ' ' ORDER BY attname) INTO columns
        FROM pg_attribute WHERE attrelid = to_regclass('INT_LOCK')
        AND attnum > 0 AND NOT attisdropped;
    IF columns IS DISTINCT FROM 'client_id created_date lock_key region' THEN
        RAISE EXCEPTION 'nothing was changed: there is no table INT_LOCK with '
            'the four columns of Spring';
    ELSIF ttl IS NULL OR ttl <= interval '0' THEN
        RAISE EXCEPTION 'nothing was changed: the TTL is missing'
            USING HINT = $$psql -v ttl="'10 seconds'"$$;
    END IF;

    ALTER TABLE INT_LOCK ADD COLUMN EXPIRED_AFTER TIMESTAMP;
    UPDATE INT_LOCK SET EXPIRED_AFTER = CREATED_DATE + ttl;
    ALTER TABLE INT_LOCK
        ALTER COLUMN EXPIRED_AFTER SET NOT NULL,
        ALTER COLUMN CLIENT_ID DROP NOT NULL,
        ADD COLUMN FENCE     BIGINT DEFAULT 0 NOT NULL,
        ADD COLUMN LOCK_NAME VARCHAR(255),
        ADD COLUMN HOLDER    VARCHAR(255),
        ADD COLUMN QUEUE     TEXT,
        ADD COLUMN SHARERS   TEXT,
        ADD COLUMN LEADER    TEXT,
        ADD CHECK (CLIENT_ID IS NULL OR EXPIRED_AFTER > CREATED_DATE);
    ALTER TABLE INT_LOCK SET (fillfactor = 70,
        autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

    CREATE FUNCTION INT_LOCK_FOUR_COLUMNS() RETURNS trigger LANGUAGE plpgsql
    AS $$
    BEGIN
        RAISE EXCEPTION 'INT_LOCK has a new layout: start this program anew';
    END $$;
    CREATE TRIGGER INT_LOCK_FOUR_COLUMNS_INSERT BEFORE INSERT ON INT_LOCK
        FOR EACH ROW WHEN (NEW.EXPIRED_AFTER IS NULL)
        EXECUTE FUNCTION INT_LOCK_FOUR_COLUMNS();
    CREATE TRIGGER INT_LOCK_FOUR_COLUMNS_UPDATE BEFORE UPDATE ON INT_LOCK
        FOR EACH ROW
        WHEN (NEW.CREATED_DATE <> OLD.CREATED_DATE
              AND NEW.EXPIRED_AFTER = OLD.EXPIRED_AFTER
              AND NEW.SHARERS IS NOT DISTINCT FROM OLD.SHARERS)
        EXECUTE FUNCTION INT_LOCK_FOUR_COLUMNS();
END
$upgrade$;
