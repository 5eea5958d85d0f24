-- The settings that `sqlock doctor` asks PostgreSQL for, and what each should
-- be.  The library is built with this file.
--
-- Each statement returns names of settings and their values.  One whose table is
-- missing, or may not be read, is skipped.  `local` says whether client and server
-- are on one machine.

SELECT name::text, setting FROM pg_settings
  WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit',
    'synchronous_standby_names', 'transaction_isolation',
    'default_transaction_read_only', 'idle_session_timeout',
    'idle_in_transaction_session_timeout')
-- Replicas are only counted: an unprivileged role does not see their state.
UNION ALL SELECT 'replicas', count(*)::text FROM pg_stat_replication
UNION ALL SELECT 'in_recovery',
  CASE WHEN pg_is_in_recovery() THEN 'on' ELSE 'off' END
-- A server that speaks PostgreSQL's protocol may be another product.
UNION ALL SELECT 'engine', CASE
  WHEN version() ILIKE '%cockroach%' THEN 'CockroachDB'
  WHEN version() ILIKE '%-yb-%' THEN 'YugabyteDB'
  ELSE split_part(version(), ' ', 1) END
UNION ALL SELECT 'local', CASE WHEN inet_client_addr() IS NULL
  OR inet_client_addr() <<= '127.0.0.0/8' OR inet_client_addr() = '::1'
  THEN 'yes' ELSE 'no' END;

-- A rule gives a setting's good values, which are patterns as of a shell with `|`
-- between them, or the least one besides 0, which stands for no limit; and below it,
-- what to do otherwise.  An `if` is for the next rule only.  A rule is skipped where
-- the server lacks the setting.

-- connection: engine = PostgreSQL, else warning
--     sqlock is not tested with it: rely on leases, tokens and guards, not on FOR
--     UPDATE or on waking up
-- durability: fsync = on, else failure
--     set fsync = on: after a crash of the machine, locks that were granted may be
--     granted again, or the table be damaged
-- durability: full_page_writes = on, else failure
--     set full_page_writes = on: a crash of the machine may damage the table
-- durability: synchronous_commit = on|local|remote_write|remote_apply, else failure
--     our sessions raise it: something in between has undone it, and a crash of the
--     server forgets locks that were just granted
-- if synchronous_standby_names = ?*
-- failover: synchronous_commit = on|remote_write|remote_apply, else warning
--     set synchronous_commit = on: grants do not wait for the synchronous standby,
--     and a failover forgets them
-- failover: in_recovery = off, else failure
--     this is a standby: connect to the primary, with several hosts and
--     target_session_attrs=read-write in the URL
-- failover: default_transaction_read_only = off, else failure
--     set default_transaction_read_only = off for the role or the database
-- if replicas = [1-9]*
-- failover: synchronous_standby_names = ?*, else warning
--     there are replicas, and none is synchronous: a failover may forget locks and
--     give tokens again; set synchronous_standby_names, or fail over by hand and run
--     `sqlock doctor --after-restore`
-- isolation: transaction_isolation = read committed, else failure
--     our sessions set READ COMMITTED: something in between has undone it
-- timeouts: idle_session_timeout >= 60000, else warning
--     raise it to a minute or more for the role: idle connections are closed, and
--     renewals begin with connecting anew
-- if idle_in_transaction_session_timeout = 0
-- timeouts: idle_in_transaction_session_timeout = never, else fine
--     for connections that applications lend (sqlock_tx_adopt), set it for their
--     role: a client that vanishes during a transaction keeps its row locks; our own
--     connections set it
-- if idle_in_transaction_session_timeout = [1-9]*
-- timeouts: idle_in_transaction_session_timeout >= 10000, else warning
--     raise it above the longest guarded transaction: the server ends those that
--     pause for longer
