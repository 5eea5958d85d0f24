-- The settings that `sqlock doctor` asks MySQL or MariaDB for, and what each should
-- be.  The library is built with this file.
--
-- Each statement returns names of settings and their values.  One whose table is
-- missing, or may not be read, is skipped.  `local` says whether client and server
-- are on one machine, `grace` whether nothing is granted after a crash until the
-- leases that it may have forgotten are over.

-- SHOW, because MariaDB has these tables in information_schema, and MySQL in
-- performance_schema.
SHOW VARIABLES WHERE Variable_name IN (
  'innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'log_bin', 'sync_binlog',
  'binlog_format', 'read_only', 'super_read_only', 'innodb_read_only',
  'tx_isolation', 'transaction_isolation', 'wait_timeout',
  'idle_transaction_timeout', 'wsrep_on', 'group_replication_group_name',
  'group_replication_single_primary_mode', 'group_replication_consistency',
  'rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled');

SHOW STATUS WHERE Variable_name IN ('Slaves_connected',
  'Rpl_semi_sync_master_clients', 'Rpl_semi_sync_master_status',
  'Rpl_semi_sync_source_clients', 'Rpl_semi_sync_source_status');

SELECT 'engine', CASE WHEN VERSION() LIKE '%TiDB%' THEN 'TiDB'
  WHEN VERSION() LIKE '%MariaDB%' THEN 'MariaDB' ELSE 'MySQL' END
UNION ALL SELECT 'local', IF(SUBSTRING_INDEX(USER(), '@', -1) IN
  ('localhost', '127.0.0.1', '::1'), 'yes', 'no');

-- The group's tables are missing on MariaDB and need a privilege on MySQL, so that
-- this one is skipped there.  An unknown @@server_uuid would be an error instead, so
-- a table is read for it.
SELECT 'group_member_state', COALESCE(MAX(IF(CAST(MEMBER_ID AS BINARY) =
  (SELECT CAST(VARIABLE_VALUE AS BINARY) FROM performance_schema.global_variables
    WHERE VARIABLE_NAME = 'server_uuid'), MEMBER_STATE, NULL)), 'OFFLINE')
  FROM performance_schema.replication_group_members
UNION ALL SELECT 'group_majority',
  IF(2 * SUM(MEMBER_STATE <> 'UNREACHABLE') > COUNT(*), 'YES', 'NO')
  FROM performance_schema.replication_group_members
UNION ALL SELECT 'group_members_online',
  CAST(COALESCE(SUM(MEMBER_STATE = 'ONLINE'), 0) AS CHAR)
  FROM performance_schema.replication_group_members;

-- A rule gives a setting's good values, which are patterns as of a shell with `|`
-- between them, or the least one besides 0, which stands for no limit; and below it,
-- what to do otherwise.  An `if` is for the next rule only.  A rule is skipped where
-- the server lacks the setting.

-- connection: engine = MariaDB|MySQL, else warning
--     sqlock is not tested with it: its SKIP LOCKED locks nothing; rely on leases
--     and tokens alone
-- if grace = no
-- durability: innodb_flush_log_at_trx_commit = 1, else failure
--     set innodb_flush_log_at_trx_commit = 1, or make the table INT_LOCK_SERVER: a
--     crash forgets up to a second of locks that were granted, and grants them again
-- if grace = yes
-- durability: innodb_flush_log_at_trx_commit = *, else failure
--     after a crash nothing is granted until what it may have forgotten is over
-- durability: innodb_doublewrite = ON|DETECT_*, else warning
--     set innodb_doublewrite = ON, unless the file system writes pages as a whole: a
--     crash may damage the table
-- if log_bin = ON
-- durability: sync_binlog = 1, else warning
--     set sync_binlog = 1: after a crash of the machine, replicas may lack locks
--     that were granted
-- if log_bin = ON
-- isolation: binlog_format = ROW|MIXED, else failure
--     set binlog_format = ROW: InnoDB refuses writes under READ COMMITTED with
--     STATEMENT
-- isolation: tx_isolation = READ-COMMITTED, else failure
--     our sessions set READ COMMITTED: something in between has undone it
-- isolation: transaction_isolation = READ-COMMITTED, else failure
--     our sessions set READ COMMITTED: something in between has undone it
-- failover: read_only = OFF|0, else failure
--     this is a replica, or closed for writes: connect to the primary
-- failover: super_read_only = OFF|0, else failure
--     this is a replica, or closed for writes: connect to the primary
-- failover: innodb_read_only = OFF|0, else failure
--     this is a replica, or closed for writes: connect to the primary
-- failover: wsrep_on = OFF|0, else warning
--     Galera: a commit may be lost in a healthy cluster; write to one node only,
--     with innodb_flush_log_at_trx_commit = 1, and check tokens at what you protect;
--     FOR UPDATE excludes nobody on other nodes
-- if group_replication_group_name = ?*
-- failover: group_replication_single_primary_mode = ON|1, else warning
--     Group Replication with several primaries: FOR UPDATE excludes nobody on other
--     members; set group_replication_single_primary_mode = ON
-- if group_replication_group_name = ?*
-- failover: group_member_state = ONLINE, else failure
--     let the server join its group (START GROUP_REPLICATION), or connect to another
--     member
-- if group_replication_group_name = ?*
-- failover: group_majority = YES, else failure
--     connect to a member that reaches the majority of the group
-- if group_replication_group_name = ?*
-- failover: group_members_online = [3-9], else warning
--     have three members ONLINE: with fewer the group stops when another one is lost
-- if group_replication_group_name = ?*
-- failover: group_replication_consistency = BEFORE_ON_PRIMARY_FAILOVER|BEFORE|AFTER|BEFORE_AND_AFTER, else warning
--     set group_replication_consistency = BEFORE_ON_PRIMARY_FAILOVER: a new primary
--     may answer before it has got all that the old one granted
-- if Slaves_connected = [1-9]*
-- failover: rpl_semi_sync_master_enabled = ON|1, else warning
--     there are replicas, and none is waited for: a failover may forget locks and
--     give tokens again; use semi-synchronous replication, or fail over by hand and
--     run `sqlock doctor --after-restore`
-- if rpl_semi_sync_master_enabled = ON
-- failover: rpl_semi_sync_master_status = ON, else warning
--     semi-synchronous replication has fallen back to asynchronous: a failover may
--     forget locks; see to the replica, and raise its timeout
-- if rpl_semi_sync_source_enabled = ON
-- failover: rpl_semi_sync_source_status = ON, else warning
--     semi-synchronous replication has fallen back to asynchronous: a failover may
--     forget locks; see to the replica, and raise its timeout
-- timeouts: wait_timeout >= 60, else warning
--     raise it to a minute or more: idle connections are closed, and renewals begin
--     with connecting anew
-- if idle_transaction_timeout = 0
-- timeouts: idle_transaction_timeout = never, else fine
--     for connections that applications lend (sqlock_tx_adopt), set it there: a
--     client that vanishes during a transaction keeps its row locks; our own
--     connections set it
-- if idle_transaction_timeout = [1-9]*
-- timeouts: idle_transaction_timeout >= 10, else warning
--     raise it above the longest guarded transaction: the server ends those that
--     pause for longer
