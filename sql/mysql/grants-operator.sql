-- The least rights of an operator: `sqlock doctor`, `break`, `permits`, `reap`
-- of locks, `doctor --after-restore`, and forgetting what was done once, to do
-- it again.
--
-- Run it in the database of the tables, with an account that may grant.  Tables
-- that are not there are passed over: run it again once there are more.  It
-- reads variables of its session:
--     @sqlock_account  who gets them; by default sqlock_operator, of any host:
--                      SET @sqlock_account = 'shop@''10.%''';
--     @sqlock_prefix   of the tables; by default INT_, while app.INT_ names a
--                      database: SET @sqlock_prefix = 'app.INT_';

SET @sqlock_account = COALESCE(@sqlock_account, 'sqlock_operator');
SET @sqlock_prefix = COALESCE(@sqlock_prefix, 'INT_');
SET @sqlock_schema = IF(LOCATE('.', @sqlock_prefix) > 0,
    SUBSTRING_INDEX(@sqlock_prefix, '.', 1), DATABASE());
SET @sqlock_begin = SUBSTRING_INDEX(@sqlock_prefix, '.', -1);

SET @sqlock_grant = COALESCE((
    SELECT CONCAT('GRANT SELECT, INSERT, UPDATE, DELETE ON `', table_schema,
        '`.`', table_name, '` TO ', @sqlock_account)
    FROM information_schema.tables WHERE table_schema = @sqlock_schema
    AND table_name = CONCAT(@sqlock_begin, 'LOCK')), 'DO 0');
PREPARE sqlock_grant FROM @sqlock_grant;
EXECUTE sqlock_grant;

SET @sqlock_grant = COALESCE((
    SELECT CONCAT('GRANT SELECT ON `', table_schema,
        '`.`', table_name, '` TO ', @sqlock_account)
    FROM information_schema.tables WHERE table_schema = @sqlock_schema
    AND table_name = CONCAT(@sqlock_begin, 'LOCK_NOW')), 'DO 0');
PREPARE sqlock_grant FROM @sqlock_grant;
EXECUTE sqlock_grant;

SET @sqlock_grant = COALESCE((
    SELECT CONCAT('GRANT SELECT, UPDATE ON `', table_schema,
        '`.`', table_name, '` TO ', @sqlock_account)
    FROM information_schema.tables WHERE table_schema = @sqlock_schema
    AND table_name = CONCAT(@sqlock_begin, 'LOCK_SERVER')), 'DO 0');
PREPARE sqlock_grant FROM @sqlock_grant;
EXECUTE sqlock_grant;

SET @sqlock_grant = COALESCE((
    SELECT CONCAT('GRANT SELECT, DELETE ON `', table_schema,
        '`.`', table_name, '` TO ', @sqlock_account)
    FROM information_schema.tables WHERE table_schema = @sqlock_schema
    AND table_name = CONCAT(@sqlock_begin, 'DONE')), 'DO 0');
PREPARE sqlock_grant FROM @sqlock_grant;
EXECUTE sqlock_grant;

SET @sqlock_grant = COALESCE((
    SELECT CONCAT('GRANT SELECT ON `', table_schema,
        '`.`', table_name, '` TO ', @sqlock_account)
    FROM information_schema.tables WHERE table_schema = @sqlock_schema
    AND table_name = CONCAT(@sqlock_begin, 'STOCK')), 'DO 0');
PREPARE sqlock_grant FROM @sqlock_grant;
EXECUTE sqlock_grant;

SET @sqlock_grant = COALESCE((
    SELECT CONCAT('GRANT SELECT ON `', table_schema,
        '`.`', table_name, '` TO ', @sqlock_account)
    FROM information_schema.tables WHERE table_schema = @sqlock_schema
    AND table_name = CONCAT(@sqlock_begin, 'STOCK_ENTRY')), 'DO 0');
PREPARE sqlock_grant FROM @sqlock_grant;
EXECUTE sqlock_grant;

SET @sqlock_grant = COALESCE((
    SELECT CONCAT('GRANT SELECT ON `', table_schema,
        '`.`', table_name, '` TO ', @sqlock_account)
    FROM information_schema.tables WHERE table_schema = @sqlock_schema
    AND table_name = CONCAT(@sqlock_begin, 'STOCK_RESERVATION')), 'DO 0');
PREPARE sqlock_grant FROM @sqlock_grant;
EXECUTE sqlock_grant;

-- A member of a group is used only while it is seen to be in its majority.
SET @sqlock_grant = COALESCE((
    SELECT CONCAT('GRANT SELECT ON performance_schema.',
        'replication_group_members TO ', @sqlock_account)
    FROM information_schema.plugins WHERE plugin_name = 'group_replication'
    AND plugin_status = 'ACTIVE'), 'DO 0');
PREPARE sqlock_grant FROM @sqlock_grant;
EXECUTE sqlock_grant;
