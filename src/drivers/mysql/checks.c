/*
 * checks.c - the settings of MySQL and MariaDB that locks depend on, and why
 *
 * Settings are read with SHOW, because MariaDB has their tables in
 * information_schema, and MySQL in performance_schema.
 */
#include "drivers/mysql/dialect.h"

#define GROUP_MEMBERS "performance_schema.replication_group_members"

static const char *const settings[] = {
    "SHOW VARIABLES WHERE Variable_name IN ("
    "'innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'log_bin', "
    "'sync_binlog', 'binlog_format', 'read_only', 'super_read_only', "
    "'innodb_read_only', 'tx_isolation', 'transaction_isolation', "
    "'wait_timeout', 'idle_transaction_timeout', 'wsrep_on', "
    "'group_replication_group_name', "
    "'group_replication_single_primary_mode', "
    "'group_replication_consistency', "
    "'rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled')",
    "SHOW STATUS WHERE Variable_name IN ('Slaves_connected', "
    "'Rpl_semi_sync_master_clients', 'Rpl_semi_sync_master_status', "
    "'Rpl_semi_sync_source_clients', 'Rpl_semi_sync_source_status')",
    "SELECT 'engine', CASE WHEN VERSION() LIKE '%TiDB%' THEN 'TiDB' "
    "WHEN VERSION() LIKE '%MariaDB%' THEN 'MariaDB' ELSE 'MySQL' END "
    "UNION ALL SELECT 'local', IF(SUBSTRING_INDEX(USER(), '@', -1) IN "
    "('localhost', '127.0.0.1', '::1'), 'yes', 'no')",
    /* This statement is skipped where the table is missing, as on MariaDB, or
     * not readable, so without a group no privilege is needed.  An unknown
     * @@server_uuid would be an error instead, so a table is read for it. */
    "SELECT 'group_member_state', "
    "COALESCE(MAX(IF(CAST(MEMBER_ID AS BINARY) = (SELECT CAST(VARIABLE_VALUE "
    "AS BINARY) FROM performance_schema.global_variables WHERE VARIABLE_NAME = "
    "'server_uuid'), MEMBER_STATE, NULL)), 'OFFLINE') FROM " GROUP_MEMBERS
    " UNION ALL SELECT 'group_majority', "
    "IF(2 * SUM(MEMBER_STATE <> 'UNREACHABLE') > COUNT(*), 'YES', 'NO') "
    "FROM " GROUP_MEMBERS " UNION ALL SELECT 'group_members_online', "
    "CAST(COALESCE(SUM(MEMBER_STATE = 'ONLINE'), 0) AS CHAR) "
    "FROM " GROUP_MEMBERS,
    NULL,
};

#define ASYNCHRONOUS                                                           \
    "there are replicas, and none is waited for: a failover may forget locks " \
    "and give tokens again; use semi-synchronous replication, or fail over "   \
    "by "                                                                      \
    "hand and run `sqlock doctor --after-restore`"
#define FELL_BACK                                                              \
    "semi-synchronous replication has fallen back to asynchronous: a "         \
    "failover "                                                                \
    "may forget locks; see to the replica, and raise its timeout"
#define READ_ONLY                                                              \
    "this is a replica, or closed for writes: connect to the primary"
#define SET_ISOLATION                                                          \
    "our sessions set READ COMMITTED: something in between has undone it"

static const sqlock_rule rules[] = {
    {.setting = "engine",
     .check = "connection",
     .good = "MariaDB|MySQL",
     .otherwise = SQLOCK_WARNING,
     .advice = "sqlock is not tested with it: its SKIP LOCKED locks nothing; "
               "rely on leases and tokens alone"},
    {.setting = "innodb_flush_log_at_trx_commit",
     .check = "durability",
     .good = "1",
     .otherwise = SQLOCK_FAILURE,
     .advice = "set innodb_flush_log_at_trx_commit = 1: a crash forgets up to "
               "a second of locks that were granted, and grants them again"},
    {.setting = "innodb_doublewrite",
     .check = "durability",
     .good = "ON|DETECT_*",
     .otherwise = SQLOCK_WARNING,
     .advice = "set innodb_doublewrite = ON, unless the file system writes "
               "pages as a whole: a crash may damage the table"},
    {.setting = "sync_binlog",
     .when = "log_bin=ON",
     .check = "durability",
     .good = "1",
     .otherwise = SQLOCK_WARNING,
     .advice = "set sync_binlog = 1: after a crash of the machine, replicas "
               "may lack locks that were granted"},
    {.setting = "binlog_format",
     .when = "log_bin=ON",
     .check = "isolation",
     .good = "ROW|MIXED",
     .otherwise = SQLOCK_FAILURE,
     .advice = "set binlog_format = ROW: InnoDB refuses writes under READ "
               "COMMITTED with STATEMENT"},
    {.setting = "tx_isolation",
     .check = "isolation",
     .good = "READ-COMMITTED",
     .otherwise = SQLOCK_FAILURE,
     .advice = SET_ISOLATION},
    {.setting = "transaction_isolation",
     .when = NULL,
     .check = "isolation",
     .good = "READ-COMMITTED",
     .otherwise = SQLOCK_FAILURE,
     .advice = SET_ISOLATION},
    {.setting = "read_only",
     .check = "failover",
     .good = "OFF|0",
     .otherwise = SQLOCK_FAILURE,
     .advice = READ_ONLY},
    {.setting = "super_read_only",
     .check = "failover",
     .good = "OFF|0",
     .otherwise = SQLOCK_FAILURE,
     .advice = READ_ONLY},
    {.setting = "innodb_read_only",
     .check = "failover",
     .good = "OFF|0",
     .otherwise = SQLOCK_FAILURE,
     .advice = READ_ONLY},
    {.setting = "wsrep_on",
     .check = "failover",
     .good = "OFF|0",
     .otherwise = SQLOCK_WARNING,
     .advice = "Galera: a commit may be lost in a healthy cluster; write to "
               "one node only, with innodb_flush_log_at_trx_commit = 1, and "
               "check tokens at what you protect; FOR UPDATE excludes nobody "
               "on other nodes"},
    {.setting = "group_replication_single_primary_mode",
     .when = "group_replication_group_name=?*",
     .check = "failover",
     .good = "ON|1",
     .otherwise = SQLOCK_WARNING,
     .advice = "Group Replication with several primaries: FOR UPDATE excludes "
               "nobody on other members; set "
               "group_replication_single_primary_mode = ON"},
    {.setting = "group_member_state",
     .when = "group_replication_group_name=?*",
     .check = "failover",
     .good = "ONLINE",
     .otherwise = SQLOCK_FAILURE,
     .advice = "let the server join its group (START GROUP_REPLICATION), or "
               "connect to another member"},
    {.setting = "group_majority",
     .when = "group_replication_group_name=?*",
     .check = "failover",
     .good = "YES",
     .otherwise = SQLOCK_FAILURE,
     .advice = "connect to a member that reaches the majority of the group"},
    {.setting = "group_members_online",
     .when = "group_replication_group_name=?*",
     .check = "failover",
     .good = "[3-9]",
     .otherwise = SQLOCK_WARNING,
     .advice = "have three members ONLINE: with fewer the group stops when "
               "another one is lost"},
    {.setting = "group_replication_consistency",
     .when = "group_replication_group_name=?*",
     .check = "failover",
     .good = "BEFORE_ON_PRIMARY_FAILOVER|BEFORE|AFTER|BEFORE_AND_AFTER",
     .otherwise = SQLOCK_WARNING,
     .advice = "set group_replication_consistency = "
               "BEFORE_ON_PRIMARY_FAILOVER: a new primary may answer before it "
               "has got all that the old one granted"},
    {.setting = "rpl_semi_sync_master_enabled",
     .when = "Slaves_connected=[1-9]*",
     .check = "failover",
     .good = "ON|1",
     .otherwise = SQLOCK_WARNING,
     .advice = ASYNCHRONOUS},
    {.setting = "rpl_semi_sync_master_status",
     .when = "rpl_semi_sync_master_enabled=ON",
     .check = "failover",
     .good = "ON",
     .otherwise = SQLOCK_WARNING,
     .advice = FELL_BACK},
    {.setting = "rpl_semi_sync_source_status",
     .when = "rpl_semi_sync_source_enabled=ON",
     .check = "failover",
     .good = "ON",
     .otherwise = SQLOCK_WARNING,
     .advice = FELL_BACK},
    {.setting = "wait_timeout", /* s */
     .check = "timeouts",
     .least = 60,
     .otherwise = SQLOCK_WARNING,
     .advice = "raise it to a minute or more: idle connections are closed, "
               "and renewals begin with connecting anew"},
    {.setting = "idle_transaction_timeout",
     .when = "idle_transaction_timeout=0",
     .check = "timeouts",
     .good = "",
     .otherwise = SQLOCK_FINE,
     .advice = "for connections that applications lend (sqlock_tx_adopt), set "
               "it there: a client that vanishes during a transaction keeps "
               "its row locks; our own connections set it"},
    {.setting = "idle_transaction_timeout", /* s */
     .when = "idle_transaction_timeout=[1-9]*",
     .check = "timeouts",
     .least = 10,
     .otherwise = SQLOCK_WARNING,
     .advice = "raise it above the longest guarded transaction: the server "
               "ends those that pause for longer"},
    {.setting = NULL},
};

const sqlock_checks lk_mysql_checks = {
    .settings = settings,
    .rules = rules,
    .session = "SELECT CAST(CONNECTION_ID() AS SIGNED)",
    .compare_bytes = "MODIFY {column} {type} CHARACTER SET utf8mb4 COLLATE "
                     "utf8mb4_bin{null}",
};
