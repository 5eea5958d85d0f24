/*
 * checks.c - the settings of PostgreSQL that locks depend on, and why
 */
#include "drivers/postgres/session.h"

#define WANTED                                                                 \
    "'fsync', 'full_page_writes', 'synchronous_commit', "                      \
    "'synchronous_standby_names', 'transaction_isolation', "                   \
    "'default_transaction_read_only', 'idle_session_timeout', "                \
    "'idle_in_transaction_session_timeout'"

/* Replicas are only counted: an unprivileged role does not see their state.
 * 'engine': a server that speaks PostgreSQL's protocol may be another product.
 * */
static const char *const settings[] = {
    "SELECT name::text, setting FROM pg_settings WHERE name IN (" WANTED ") "
    "UNION ALL SELECT 'replicas', count(*)::text FROM pg_stat_replication "
    "UNION ALL SELECT 'in_recovery', "
    "CASE WHEN pg_is_in_recovery() THEN 'on' ELSE 'off' END "
    "UNION ALL SELECT 'engine', CASE "
    "WHEN version() ILIKE '%cockroach%' THEN 'CockroachDB' "
    "WHEN version() ILIKE '%-yb-%' THEN 'YugabyteDB' "
    "ELSE split_part(version(), ' ', 1) END "
    "UNION ALL SELECT 'local', CASE WHEN inet_client_addr() IS NULL "
    "OR inet_client_addr() <<= '127.0.0.0/8' OR inet_client_addr() = '::1' "
    "THEN 'yes' ELSE 'no' END",
    NULL,
};

static const sqlock_rule rules[] = {
    {.setting = "engine",
     .check = "connection",
     .good = "PostgreSQL",
     .otherwise = SQLOCK_WARNING,
     .advice = "sqlock is not tested with it: rely on leases, tokens and "
               "guards, not on FOR UPDATE or on waking up"},
    {.setting = "fsync",
     .check = "durability",
     .good = "on",
     .otherwise = SQLOCK_FAILURE,
     .advice = "set fsync = on: after a crash of the machine, locks that were "
               "granted may be granted again, or the table be damaged"},
    {.setting = "full_page_writes",
     .check = "durability",
     .good = "on",
     .otherwise = SQLOCK_FAILURE,
     .advice = "set full_page_writes = on: a crash of the machine may damage "
               "the table"},
    {.setting = "synchronous_commit",
     .check = "durability",
     .good = "on|local|remote_write|remote_apply",
     .otherwise = SQLOCK_FAILURE,
     .advice = "our sessions raise it: something in between has undone it, "
               "and a crash of the server forgets locks that were just "
               "granted"},
    {.setting = "synchronous_commit",
     .when = "synchronous_standby_names=?*",
     .check = "failover",
     .good = "on|remote_write|remote_apply",
     .otherwise = SQLOCK_WARNING,
     .advice = "set synchronous_commit = on: grants do not wait for the "
               "synchronous standby, and a failover forgets them"},
    {.setting = "in_recovery",
     .check = "failover",
     .good = "off",
     .otherwise = SQLOCK_FAILURE,
     .advice = "this is a standby: connect to the primary, with several hosts "
               "and target_session_attrs=read-write in the URL"},
    {.setting = "default_transaction_read_only",
     .check = "failover",
     .good = "off",
     .otherwise = SQLOCK_FAILURE,
     .advice = "set default_transaction_read_only = off for the role or the "
               "database"},
    {.setting = "synchronous_standby_names",
     .when = "replicas=[1-9]*",
     .check = "failover",
     .good = "?*",
     .otherwise = SQLOCK_WARNING,
     .advice =
         "there are replicas, and none is synchronous: a failover may "
         "forget locks and give tokens again; set "
         "synchronous_standby_names, or fail over by hand and run `sqlock "
         "doctor --after-restore`"},
    {.setting = "transaction_isolation",
     .check = "isolation",
     .good = "read committed",
     .otherwise = SQLOCK_FAILURE,
     .advice = "our sessions set READ COMMITTED: something in between has "
               "undone it"},
    {.setting = "idle_session_timeout", /* ms */
     .check = "timeouts",
     .least = 60000,
     .otherwise = SQLOCK_WARNING,
     .advice = "raise it to a minute or more for the role: idle connections "
               "are closed, and renewals begin with connecting anew"},
    {.setting = "idle_in_transaction_session_timeout",
     .when = "idle_in_transaction_session_timeout=0",
     .check = "timeouts",
     .good = "",
     .otherwise = SQLOCK_FINE,
     .advice = "for connections that applications lend (sqlock_tx_adopt), set "
               "it for their role: a client that vanishes during a transaction "
               "keeps its row locks; our own connections set it"},
    {.setting = "idle_in_transaction_session_timeout",
     .when = "idle_in_transaction_session_timeout=[1-9]*",
     .check = "timeouts",
     .least = 10000,
     .otherwise = SQLOCK_WARNING,
     .advice = "raise it above the longest guarded transaction: the server "
               "ends those that pause for longer"},
    {.setting = NULL},
};

const sqlock_checks lk_pg_checks = {
    .settings = settings,
    .rules = rules,
    .session = "SELECT pg_backend_pid()::bigint",
    .compare_bytes = "ALTER COLUMN {column} TYPE {type} COLLATE \"C\"",
};
