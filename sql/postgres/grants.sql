-- The least rights on the lock table.  Replace, before running it:
--     INT_LOCK      the table, with its schema where that is not in the
--                   search path; there, grant USAGE on the schema too
--     lock_user     the role that applications and `sqlock run` log in as
--     lock_reaper   the role that runs `sqlock reap`
-- Only the owner creates and alters the table.
REVOKE ALL ON INT_LOCK FROM PUBLIC;

-- Acquire, renew, release, show, break.
GRANT SELECT, INSERT, UPDATE ON INT_LOCK TO lock_user;

-- Spring's layouts delete the row on release, so there applications need this
-- as well; a Spring service needs it on every layout:
--     GRANT DELETE ON INT_LOCK TO lock_user;

-- Reap: remove rows that were free or expired for long.
GRANT SELECT, DELETE ON INT_LOCK TO lock_reaper;

-- Stock (stock.sql): selling, restoring, reserving, expiring.  Entries are never
-- deleted by sqlock; a DBA may delete those whose order cannot come again.
REVOKE ALL ON INT_STOCK, INT_STOCK_ENTRY, INT_STOCK_RESERVATION,
    INT_STOCK_BUCKET FROM PUBLIC;
GRANT SELECT, INSERT, UPDATE ON INT_STOCK, INT_STOCK_ENTRY,
    INT_STOCK_RESERVATION, INT_STOCK_BUCKET TO lock_user;
