-- The least rights, on the one table.  Run it in the database of the table,
-- after schema.sql; put your own names in place of these two, which must exist.
--
-- Locks of our own layout are taken, renewed, released and broken by INSERT and
-- UPDATE; a released row stays and keeps the last fencing token.

GRANT SELECT, INSERT, UPDATE ON INT_LOCK TO 'app'@'%';

-- Removing rows that have been free for long: whoever runs `sqlock reap`.

GRANT SELECT, DELETE ON INT_LOCK TO 'operator'@'%';

-- On Spring's layouts a release deletes the row, so the application needs
-- DELETE as well.  Creating the table needs CREATE, once; nothing else does.

-- Stock (stock.sql): selling, restoring, reserving, expiring.  Entries are never
-- deleted by sqlock; a DBA may delete those whose order cannot come again.

GRANT SELECT, INSERT, UPDATE ON INT_STOCK TO 'app'@'%';
GRANT SELECT, INSERT, UPDATE ON INT_STOCK_ENTRY TO 'app'@'%';
GRANT SELECT, INSERT, UPDATE ON INT_STOCK_RESERVATION TO 'app'@'%';
GRANT SELECT, INSERT, UPDATE ON INT_STOCK_BUCKET TO 'app'@'%';
