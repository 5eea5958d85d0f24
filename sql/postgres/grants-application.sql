-- The least rights of an application and of `sqlock run`: take, renew, release
-- and break locks, record what was done once, sell, restore and reserve stock.
--
-- Run it as the owner of the tables.  Tables that are not there are passed
-- over: run it again once there are more.  It reads settings of its session:
--     sqlock.role    an existing role; by default sqlock_app
--     sqlock.prefix  of the tables; by default INT_, while app.INT_ names a
--                    schema: SET sqlock.prefix = 'app.INT_';
DO $grants$
DECLARE
    login    text := COALESCE(
        NULLIF(current_setting('sqlock.role', true), ''), 'sqlock_app');
    prefix   text := COALESCE(
        NULLIF(current_setting('sqlock.prefix', true), ''), 'INT_');
    given    record;
    relation regclass;
    home     regnamespace;
BEGIN
    FOR given IN SELECT * FROM (VALUES
        ('LOCK', 'SELECT, INSERT, UPDATE'),
        ('LOCK_SERVER', 'SELECT, UPDATE'),
        ('LOCK_MARK', 'SELECT, INSERT, UPDATE'),
        ('DONE', 'SELECT, INSERT'),
        ('STOCK', 'SELECT, INSERT, UPDATE'),
        ('STOCK_ENTRY', 'SELECT, INSERT, UPDATE'),
        ('STOCK_RESERVATION', 'SELECT, INSERT, UPDATE')
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

    -- On Spring's layouts a release deletes the row.  A Spring service needs
    -- DELETE on every layout: GRANT DELETE ON INT_LOCK TO the_service.
    relation := to_regclass(prefix || 'LOCK');
    IF relation IS NOT NULL AND NOT EXISTS (SELECT 1 FROM pg_attribute
            WHERE attrelid = relation AND attname = 'fence') THEN
        EXECUTE format('GRANT DELETE ON %s TO %I', relation, login);
    END IF;
END
$grants$;
