/*
 * dialect.c - the SQL of PostgreSQL, where it differs from that of all
 * databases (src/db/lock_sql.c)
 *
 * "Now" is clock_timestamp(), which is read at the moment of its evaluation,
 * even after a wait for a row lock.  The values of now() and of columns of
 * EXCLUDED would then be too old (F9, F10).
 *
 * No parameter is ever cast to text: a LOCK_KEY of type text does not use the
 * primary key, which is CHAR.
 */
#include "drivers/postgres/session.h"

/* The build makes these of sql/postgres. */
extern const char lk_sql_postgres_schema[];
extern const char lk_sql_postgres_doctor[];
extern const char lk_sql_postgres_once[];
extern const char lk_sql_postgres_stock[];
extern const char lk_sql_postgres_schema_spring7[];
extern const char lk_sql_postgres_schema_spring6[];

/* clang-format off */
static const sqlock_fragment fragments[] = {
    {"now", "(clock_timestamp() AT TIME ZONE 'UTC')"},
    {"now_us", "{in_us clock_timestamp()}"},
    {"us", "({it}) * interval '1 microsecond'"},
    {"in_us", "(extract(epoch FROM {it}) * 1000000)::bigint"},
    {"peer_ttl", "CASE WHEN substr({it}CLIENT_ID, 15, 1) = '8' "
                 "AND substr({it}CLIENT_ID, 28) ~ '^[0-9]+$' "
                 "THEN substr({it}CLIENT_ID, 28)::bigint * 1000 "
                 "ELSE {number {5}} END"},
    {"text", "{it}::varchar"},
    {"number", "{it}::bigint"},
    {"by_bytes", "{it} COLLATE \"C\""},

    /* A release that a crash loses leaves a lease that expires: so the commit
     * of a release need not wait for the disk or a standby.  The setting ends
     * with the transaction, which should be the statement's own: it would hold
     * until the end of a longer transaction. */
    {"need_not_be_durable", "set_config('synchronous_commit', 'off', true)"},
    {"released", " RETURNING {need_not_be_durable}"},

    /* A session that listens to the queue lock {it} shares the advisory lock
     * {it} + 1 (queue.c).  A release notifies only if it cannot take that lock
     * for itself, since then somebody listens.  Otherwise it has the lock until
     * its commit, and no session can begin to listen: so none reads the row
     * before the release and listens after it. */
    {"notify", "CASE WHEN NOT pg_try_advisory_xact_lock({it} + 1) "
             "THEN pg_notify('sqlock_' || to_hex({it}), '') IS NULL END"},
    /* Whether another session, which waits and is next, has the queue lock
     * itself. */
    {"is_wanted", "NOT pg_try_advisory_xact_lock({0})"},

    /* Tokens rise because this advisory lock lets only one claim of a key run
     * at a time, from before its token is computed until its commit.  The row
     * lock does not suffice, because the values to insert are computed before
     * the wait for it, and a Spring peer deletes the row.  Suppose claim A
     * waits for such a DELETE, claim B takes a later token, and a second DELETE
     * removes B's row: then A would insert its token, which is older. */
    {"turn", "pg_advisory_xact_lock(hashtextextended({2}::varchar, "
             "hashbpchar({key})::bigint))"},
    {"at_turn", "CASE WHEN {turn} IS NOT NULL THEN {it} END"},
    /* A condition without a column is evaluated once, before the row is locked.
     * A claim takes the advisory lock before the row lock, too, so this
     * statement and a claim cannot deadlock. */
    {"in_turn", " AND (SELECT {turn}) IS NOT NULL"},

    /* Many leases: {1} is JSON.  The items are sorted here, so that rows are
     * locked in the order of their keys; {born}, which reads the clock for each
     * item, is evaluated after the sort. */
    {"items", "json_to_recordset({1}::json) "
              "AS J (k char(36), c char(36), t bigint, n varchar, h varchar, "
              "b bigint)"},
    {"born_items", "(SELECT J.k, J.c, J.t, J.n, J.h, {born} AS born "
                   "FROM {items} ORDER BY J.k) AS J"},
    /* The rows whose lease is an item's, looked up one by one by the primary
     * key, and locked in the order of keys.  In a plain join the planner would
     * assume that a table without statistics has one matching row, and compare
     * each of a thousand items with each row.  For the same reason
     * {is_own_item} takes the region from the row that was found. */
    {"own_items",
     "WITH J AS MATERIALIZED (SELECT J.k, J.c, J.t, J.b, T.REGION AS r FROM "
     "(SELECT * FROM {items} ORDER BY k) AS J, LATERAL "
     "(SELECT T.REGION FROM {table} AS T WHERE T.LOCK_KEY = J.k "
     "AND T.REGION = {2} AND T.CLIENT_ID = J.c {it}) AS T)"},
    {"is_own_item",
     "T.LOCK_KEY = J.k AND T.REGION = J.r AND T.CLIENT_ID = J.c"},

    {"unless_there", "ON CONFLICT (LOCK_KEY, REGION) DO NOTHING"},
    {"share_free", LK_PG_SHARE_FREE},
    {"guarded_row", "(SELECT 1 FROM {table} WHERE {is_guarded} FOR SHARE) "
                    "AS LEASE"},
    {"guard_failure", "CAST('sqlock: the lease is over, rows: ' || count(*) "
                      "AS integer)"},
    /* The reaper goes from page to page, and its bounds are page numbers: in
     * the order of keys, nearly each row would be on another page, to be read
     * and written for that row.  Other statements lock rows in the order of
     * keys, so the reaper must not wait for a row lock.  The condition is
     * tested twice, since in a partitioned table a ctid alone does not identify
     * a row. */
    {"page_number", "coalesce(nullif({it}::text, ''), '0')"},
    {"page", "('(' || {page_number {it}} || ',0)')::tid"},
    {"pages_of",
     "pg_relation_size({it}) / current_setting('block_size')::bigint"},
    {"delete_unlocked",
     "DELETE FROM {table} WHERE REGION = {2} AND {it} "
     "AND ctid = ANY (ARRAY(SELECT ctid FROM {table} "
     "WHERE ctid >= {page {1}} AND ctid < {page {9}} AND REGION = {2} "
     "AND {it} FOR UPDATE SKIP LOCKED))"},
    {"delete_between", "{delete_unlocked {it}}"},
    {NULL, NULL},
};

static const sqlock_fragment ours[] = {
    /* A release writes now less 50 years (of 365.25 days), so that a peer whose
     * clock is behind sees at once that the row is free. */
    {"long_past", "interval '18262 days 12 hours'"},
    {"freed", "EXPIRED_AFTER = {now} - {long_past}"},
    {"last_end", "(CASE WHEN EXPIRED_AFTER < '2000-01-01' "
                 "THEN EXPIRED_AFTER + {long_past} ELSE EXPIRED_AFTER END)"},
    /* The last column is whether the row was inserted: a row that existed was
     * locked before its update, and the xmax of its new version still shows
     * that lock. */
    {"granted", ", {is_wanted}, L.xmax = 0"},
    /* A release calls its functions in the expression for HOLDER, which stays
     * as it is, since the condition is never true.  With RETURNING, the rows
     * and their description would be much of the cost of a release. */
    {"last_holder", "CASE WHEN {need_not_be_durable} <> 'off' OR "
                    "{notify {0}} THEN NULL ELSE HOLDER END"},
    {"released", ""},
    {"broken_now", " RETURNING {notify {0}}"},
    {"release_and_leave", "{release} WHERE {row} AND CLIENT_ID = {3} "
                          "RETURNING pg_advisory_unlock_all() IS NULL"},
    {"release_items", "UPDATE {table} AS T SET CLIENT_ID = NULL, "
                      "{freed} FROM J"},
    {NULL, NULL},
};

static const sqlock_fragment spring7[] = {
    {"release_items", "DELETE FROM {table} AS T USING J"},
    {NULL, NULL},
};

static const sqlock_fragment spring6[] = {
    {"token_read", "NULL::bigint"},
    {"in_turn", ""}, /* the token is kept nowhere */
    {"release_items", "DELETE FROM {table} AS T USING J"},
    {NULL, NULL},
};

/* For waiting=poll: no advisory lock and no notification.  Only the row lock
 * makes tokens rise, as long as the row exists. */
const sqlock_fragment lk_pg_polling[] = {
    {"at_turn", "{it}"},
    {"in_turn", ""},
    {"granted", ""},
    {"is_wanted", "false"},
    {"notify", "NULL"},
    {"release_and_leave", ""},
    {NULL, NULL},
};

/* ---------------------------------------------- the server and the table -- */

#define SERVER                                                                 \
    "SELECT CASE WHEN pg_is_in_recovery() "                                    \
    "OR current_setting('transaction_read_only') = 'on' THEN 1 ELSE 0 "        \
    "END, {now_us}, 'PostgreSQL ' || "                                       \
    "split_part(current_setting('server_version'), ' ', 1)"

/* A name without a schema means the first table of that name in the search
 * path, as in every statement.  A primary key counts only as far as ON CONFLICT
 * can use it. */
#define DESCRIBE                                                               \
    "SELECT upper(A.attname), format_type(A.atttypid, A.atttypmod), "          \
    "CASE WHEN A.attnotnull THEN 0 ELSE 1 END, "                               \
    "coalesce((SELECT K.place FROM pg_index AS I, "                            \
    "unnest(I.indkey::int2[]) WITH ORDINALITY AS K (attnum, place) "           \
    "WHERE I.indrelid = C.oid AND I.indisprimary AND I.indimmediate "          \
    "AND I.indisvalid AND K.attnum = A.attnum "                                \
    "AND K.place <= I.indnkeyatts), 0), "                                      \
    "CASE WHEN C.relkind = 'v' THEN 'a view' "                                 \
    "WHEN C.relkind = 'm' THEN 'a materialized view' "                         \
    "WHEN C.relkind = 'f' THEN 'a foreign table' "                             \
    "WHEN C.relkind NOT IN ('r', 'p') THEN 'no table' "                        \
    "WHEN C.relpersistence = 'u' THEN 'an unlogged table' "                    \
    "WHEN C.relpersistence = 't' THEN 'a temporary table' END, "               \
    "CASE format_type(A.atttypid, NULL) WHEN 'citext' THEN 'citext' ELSE "     \
    "(SELECT O.collname::text FROM pg_collation AS O "                         \
    "WHERE O.oid = A.attcollation AND NOT O.collisdeterministic) END, "        \
    "N.nspname::text "                                                         \
    "FROM pg_class AS C JOIN pg_namespace AS N ON N.oid = C.relnamespace "     \
    "JOIN pg_attribute AS A ON A.attrelid = C.oid "                            \
    "WHERE C.relname = {1}::name AND A.attnum > 0 AND NOT A.attisdropped "     \
    "AND CASE WHEN {2}::name IS NULL THEN pg_table_is_visible(C.oid) "         \
    "ELSE N.nspname = {2}::name END ORDER BY A.attnum"

/* clang-format on */

/* CHAR(36) in our scripts; a table made by hand may have VARCHAR or TEXT. */
#define KEY_TYPES "character(36)|character varying|character varying(*)|text"
#define NAME_TYPES "character(*)|character varying|character varying(*)|text"
/* With microseconds, and no time zone: the session's would be applied. */
#define TIME_TYPES "timestamp without time zone|timestamp(6) without time zone"

static const sqlock_column columns[] = {
    {"LOCK_KEY", KEY_TYPES},
    {"REGION", NAME_TYPES},
    {"CLIENT_ID", KEY_TYPES},
    {"CREATED_DATE", TIME_TYPES},
    {"EXPIRED_AFTER", TIME_TYPES},
    {"FENCE", "bigint"},
    {"LOCK_NAME", NAME_TYPES},
    {"HOLDER", NAME_TYPES},
    {NULL, NULL},
};

/* clang-format off */
/* For lists, which spent much of their time on arithmetic with the numerics of
 * extract().  Doubles give the same microseconds until the year 2041. */
static const sqlock_fragment in_doubles[] = {
    {"in_us", "(date_part('epoch', {it}) * 1000000)::bigint"},
    {NULL, NULL}};

const sqlock_dialect lk_pg_dialect = {
    .placeholder = SQLOCK_PLACEHOLDER_DOLLAR,
    .quote = '"',
    .folds_to_lower = true,
    .identifier_max = 63,
    .columns = columns,
    .schema = {
        [SQLOCK_LAYOUT_SQLOCK] = lk_sql_postgres_schema,
        [SQLOCK_LAYOUT_SPRING7] = lk_sql_postgres_schema_spring7,
        [SQLOCK_LAYOUT_SPRING6] = lk_sql_postgres_schema_spring6,
        [SQLOCK_SCHEMA_DONE] = lk_sql_postgres_once,
        [SQLOCK_SCHEMA_STOCK] = lk_sql_postgres_stock,
    },
    .fragments = fragments,
    .layout_fragments = {
        [SQLOCK_LAYOUT_SQLOCK] = ours,
        [SQLOCK_LAYOUT_SPRING7] = spring7,
        [SQLOCK_LAYOUT_SPRING6] = spring6,
    },
    .statements = {
        [SQLOCK_SQL_SERVER] = {.text = SERVER},
        [SQLOCK_SQL_DESCRIBE] = {.text = DESCRIBE},
        /* The sessions that wait for a queue lock, whose number is even, or
         * listen to it, and so share the next number (queue.c). */
        [SQLOCK_SQL_WAITERS] = {.text =
            "SELECT ((L.classid::bigint << 32) | L.objid::bigint) "
            "- L.objid::bigint % 2, concat_ws(' ', "
            "coalesce(host(A.client_addr), 'local'), "
            "nullif(A.application_name, ''), 'pid ' || L.pid) "
            "FROM pg_locks AS L LEFT JOIN pg_stat_activity AS A "
            "ON A.pid = L.pid WHERE L.locktype = 'advisory' "
            "AND L.objsubid = 1 AND L.database = (SELECT oid FROM pg_database "
            "WHERE datname = current_database()) "
            "AND CASE L.objid::bigint % 2 WHEN 0 THEN NOT L.granted "
            "ELSE L.granted AND L.mode = 'ShareLock' END",
            .layouts = 1 << SQLOCK_LAYOUT_SQLOCK},
        /* Lists are read through a cursor, not by key: no row that moves
         * meanwhile is missed or returned twice. */
        [SQLOCK_SQL_LIST_BEGIN] = {.text =
            "DECLARE sqlock_list NO SCROLL CURSOR FOR {info} FROM {table} "
            "WHERE REGION = {2}", .is_planned_anew = true,
            .with = in_doubles},
        [SQLOCK_SQL_LIST] = {.text = "FETCH FORWARD 5000 FROM sqlock_list",
            .is_planned_anew = true},
        [SQLOCK_SQL_FIND_BEGIN] = {.text =
            "DECLARE sqlock_list NO SCROLL CURSOR FOR {found}",
            .is_planned_anew = true, .with = in_doubles},
        [SQLOCK_SQL_FIND_PAGE] = {.text =
            "FETCH FORWARD 5000 FROM sqlock_list", .is_planned_anew = true},
        /* A bound is a page number, and a page has about 32 rows.  The table
         * may be partitioned: then its largest partition counts. */
        [SQLOCK_SQL_REAP_BOUND] = {.text =
            "SELECT CASE WHEN P.first < P.pages "
            "THEN least(P.first + {4}::bigint / 32 + 1, P.pages)::text END "
            "FROM (SELECT {page_number {1}}::bigint AS first, coalesce("
            "(SELECT max({pages_of T.relid}) "
            "FROM pg_partition_tree('{table}'::regclass) AS T), "
            "{pages_of '{table}'::regclass}) AS pages) AS P"},
        [SQLOCK_SQL_RELEASE_NOTIFY] = {.text = "{release_and_leave}",
            .layouts = 1 << SQLOCK_LAYOUT_SQLOCK},
        /* Rows that another session has locked are skipped. */
        [SQLOCK_SQL_RENEW_MANY] = {.text =
            "{own_items AND {ends T.} >= {now} FOR NO KEY UPDATE SKIP LOCKED} "
            "UPDATE {table} AS T SET {renew J.t} FROM J WHERE {is_own_item} "
            "AND {ends T.} >= {now} RETURNING T.LOCK_KEY, {now_us}",
            .is_planned_anew = true},
        [SQLOCK_SQL_RELEASE_MANY] = {.text =
            "{own_items FOR NO KEY UPDATE} {release_items} WHERE {is_own_item} "
            "RETURNING CASE WHEN {need_not_be_durable} = 'off' "
            "THEN T.LOCK_KEY END, {notify J.b}",
            .is_planned_anew = true},
        [SQLOCK_SQL_READ_MANY] = {.text =
            "{info} FROM {table} WHERE REGION = {2} "
            "AND LOCK_KEY = ANY (ARRAY(SELECT J.k FROM {items}))",
            .is_planned_anew = true},
    },
    .doctor = lk_sql_postgres_doctor,
    .session = "SELECT pg_backend_pid()::bigint",
    .compare_bytes = "ALTER COLUMN {column} TYPE {type} COLLATE \"C\"",
    /* pg_stat_activity hides the state of other roles' sessions, but pg_locks
     * shows which of them are in a transaction. */
    .stale_sessions = { .text =
        "SELECT count(*) FROM pg_stat_activity a "
        "WHERE datname = current_database() "
        "AND starts_with(application_name, {6}) AND application_name <> {7} "
        "AND EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid "
        "AND l.locktype = 'virtualxid' AND l.granted "
        "AND l.mode = 'ExclusiveLock')" },
};
/* clang-format on */
