-- The least rights to read only: `sqlock ls`, `show`, `stock ls`.
--
-- Run it as the owner of the tables.  Tables that are not there are passed
-- over: run it again once there are more.  It reads settings of its session:
--     sqlock.role    an existing role; by default sqlock_observer
--     sqlock.prefix  of the tables; by default INT_, while app.INT_ names a
--                    schema: SET sqlock.prefix = 'app.INT_';
DO $grants$
DECLARE
    login    text := COALESCE(
        NULLIF(current_setting('sqlock.role', true), ''), 'sqlock_observer');
    prefix   text := COALESCE(
        NULLIF(current_setting('sqlock.prefix', true), ''), 'INT_');
    given    record;
    relation regclass;
    home     regnamespace;
BEGIN
    FOR given IN SELECT * FROM (VALUES
        ('LOCK', 'SELECT'),
        ('LOCK_SERVER', 'SELECT'),
        ('LOCK_MARK', 'SELECT'),
        ('LOCK_NOW', 'SELECT'),
        ('DONE', 'SELECT'),
        ('STOCK', 'SELECT'),
        ('STOCK_ENTRY', 'SELECT'),
        ('STOCK_RESERVATION', 'SELECT')
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
