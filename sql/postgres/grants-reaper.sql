-- The least rights of `sqlock reap` and `sqlock stock expire`: remove rows of
-- locks long out of use, let reservations of stock expire.
--
-- Run it as the owner of the tables.  Tables that are not there are passed
-- over: run it again once there are more.  It reads settings of its session:
--     sqlock.role    an existing role; by default sqlock_reaper
--     sqlock.prefix  of the tables; by default INT_, while app.INT_ names a
--                    schema: SET sqlock.prefix = 'app.INT_';
DO $grants$
DECLARE
    login    text := COALESCE(
        NULLIF(current_setting('sqlock.role', true), ''), 'sqlock_reaper');
    prefix   text := COALESCE(
        NULLIF(current_setting('sqlock.prefix', true), ''), 'INT_');
    given    record;
    relation regclass;
    home     regnamespace;
BEGIN
    FOR given IN SELECT * FROM (VALUES
        -- UPDATE of one column is what it takes to pass over locked rows.
        ('LOCK', 'SELECT, DELETE, UPDATE (LOCK_KEY)'),
        ('STOCK', 'SELECT, UPDATE'),
        ('STOCK_ENTRY', 'SELECT, UPDATE, DELETE'),
        ('STOCK_RESERVATION', 'SELECT, UPDATE, DELETE')
    ) AS least (name, rights)
    LOOP
        relation := to_regclass(prefix || given.name);
        CONTINUE WHEN relation IS NULL;
        SELECT relnamespace INTO home FROM pg_class WHERE oid = relation;
        IF NOT has_schema_privilege(login, home, 'USAGE') THEN
            EXECUTE format('GRANT USAGE ON SCHEMA %s TO %I', home, login);
        END IF;
        EXECUTE format('REVOKE ALL ON %s FROM PUBLIC', relation);
        EXECUTE format('GRANT %s ON %s TO %I', given.rights, relation, login);
    END LOOP;
END
$grants$;
