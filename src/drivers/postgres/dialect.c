/*
 * dialect.c - the SQL that PostgreSQL gets
 *
 * The three layouts share their statements and differ in a few expressions:
 * where the lease ends, and what writes it.  "Now" is clock_timestamp(), read
 * when it is evaluated, also behind a wait for a row lock; now(), and what was
 * computed for EXCLUDED, would be stale (F9, F10).
 *
 * No parameter is ever cast to text: a LOCK_KEY of type text does not use the
 * primary key, which is CHAR.
 */
#include "drivers/postgres/session.h"

/* The build makes these of sql/postgres. */
extern const char lk_sql_postgres_schema[];
extern const char lk_sql_postgres_done[];
extern const char lk_sql_postgres_schema_spring7[];
extern const char lk_sql_postgres_schema_spring6[];

/* clang-format off */
#define NOW "(clock_timestamp() AT TIME ZONE 'UTC')"
#define US(number) "(" number ") * interval '1 microsecond'"
#define IN_US(value) "(extract(epoch FROM " value ") * 1000000)::bigint"
#define NOW_US IN_US("clock_timestamp()")

#define THE_ROW "LOCK_KEY = {1} AND REGION = {2}"

/* Losing a release in a crash leaves a row that runs out, so it need not wait
 * for the disk, nor for a standby.  The setting ends with the statement's own
 * transaction; inside a longer one it would hold until that one's end. */
#define NEED_NOT_BE_DURABLE "set_config('synchronous_commit', 'off', true)"

/* Those who listen for a key's doorbell share its lock with an odd number
 * (doorbell.c), so that a release notifies only where somebody does.  Taken for
 * an instant, it keeps others from beginning to listen until this release can be
 * seen: nobody looks before it and listens after it. */
#define RING_FOR(bell)                                                         \
    "CASE WHEN NOT pg_try_advisory_xact_lock(" bell " + 1) "                   \
    "THEN pg_notify('sqlock_' || to_hex(" bell "), '') IS NULL END"
#define RING RING_FOR("{0}")
/* Whether somebody else has the doorbell itself: who waits, and is next. */
#define WANTED "NOT pg_try_advisory_xact_lock({0})"

/* Many leases: {1} is JSON.  To lock rows in the order of their keys they are
 * sorted here; what is read of the clock per item is read behind the sort. */
#define ITEMS                                                                  \
    "json_to_recordset({1}::json) "                                            \
    "AS J (k char(36), c char(36), t bigint, n varchar, h varchar, b bigint)"
#define IS_ITEM(row) row ".LOCK_KEY = J.k AND " row ".REGION = {2}"

/* The rows that items own, locked in order: row by row, by the primary key.  A
 * plain join is in the planner's hands, who takes a table without statistics to
 * have one such row, and compares each of a thousand items with each row of it;
 * for the same reason the region is taken from the row that was found. */
#define OWN_ITEMS(condition, skip)                                             \
    "WITH J AS MATERIALIZED (SELECT J.k, J.c, J.t, J.b, T.REGION AS r FROM "   \
    "(SELECT * FROM " ITEMS " ORDER BY k) AS J, LATERAL "                      \
    "(SELECT T.REGION FROM {table} AS T WHERE " IS_ITEM("T")                   \
    " AND T.CLIENT_ID = J.c " condition "FOR NO KEY UPDATE" skip ") AS T) "
#define IS_OWN_ITEM(row)                                                       \
    row ".LOCK_KEY = J.k AND " row ".REGION = J.r AND " row ".CLIENT_ID = J.c"

/* ------------------------------------------------ what the layouts share -- */

#define CLAIM(columns)                                                         \
    "INSERT INTO {table} AS L (LOCK_KEY, REGION, CLIENT_ID, " columns ") "

/* Tokens rise because claims of a key take turns, from before a token is
 * computed until it is committed.  The lock of the row does not order them: what
 * is to be inserted is computed before that lock is waited for, and a Spring
 * peer deletes the row.  While a claim of ours waited behind such a DELETE,
 * others took a later token, and a second DELETE removed it with its row: then
 * the first claim inserted its own, which was older. */
#define TAKE_TURN(key)                                                         \
    "pg_advisory_xact_lock(hashtextextended({2}::varchar, "                    \
    "hashbpchar(" key ")::bigint))"
#define AT_TURN(key, value)                                                    \
    "CASE WHEN " TAKE_TURN(key) " IS NOT NULL THEN " value " END"
/* A condition without a column is evaluated once, before the row is locked: as
 * in a claim, so the two cannot wait for each other crosswise. */
#define IN_TURN " AND (SELECT " TAKE_TURN("{1}") ") IS NOT NULL"

/* `born` is the clock, read once per item, just before it is inserted. */
#define ONE(values) "VALUES ({1}, {2}, {3}, " values ")"
#define EACH(values, born)                                                     \
    "SELECT J.k, {2}::varchar, J.c, " values " FROM "                          \
    "(SELECT J.k, J.c, J.t, J.n, J.h, " born " AS born FROM " ITEMS            \
    " ORDER BY J.k) AS J"

#define OR_TAKE_OVER(over, set)                                                \
    " ON CONFLICT (LOCK_KEY, REGION) DO UPDATE SET "                           \
    "CLIENT_ID = EXCLUDED.CLIENT_ID, " set " WHERE L.CLIENT_ID IS NULL "       \
    "OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR " over " RETURNING "
#define OVER(ends) "L." ends " < " NOW
#define OBSERVED(ends)                                                         \
    "(" OVER(ends) " AND L.CLIENT_ID = {9} AND " IN_US("(L." ends ")") " = {8})"

#define FROM_HOLDER(ends)                                                      \
    " WHERE " THE_ROW " AND CLIENT_ID = {9} AND " ends " >= " NOW

#define RENEW(ends, lease)                                                     \
    "UPDATE {table} SET " lease " WHERE " THE_ROW                              \
    " AND CLIENT_ID = {3} AND " ends " >= " NOW

/* A row that somebody has locked is passed over. */
#define RENEW_MANY(ends, lease)                                                \
    OWN_ITEMS("AND T." ends " >= " NOW " ", " SKIP LOCKED")                    \
    "UPDATE {table} AS T SET " lease " FROM J WHERE " IS_OWN_ITEM("T")         \
    " AND T." ends " >= " NOW " RETURNING T.LOCK_KEY, " NOW_US

#define RELEASE_MANY(verb, set)                                                \
    OWN_ITEMS("", "") verb " {table} AS T " set " J WHERE " IS_OWN_ITEM("T")   \
    " RETURNING CASE WHEN " NEED_NOT_BE_DURABLE " = 'off' "                    \
    "THEN T.LOCK_KEY END, " RING_FOR("J.b")

#define INFO(token, ends, names)                                               \
    "SELECT LOCK_KEY, CLIENT_ID, " token ", "                                  \
    "CASE WHEN CLIENT_ID IS NULL THEN least(-1, " IN_US(ends " - " NOW) ") "   \
    "ELSE " IN_US(ends " - " NOW) " END, " IN_US("CREATED_DATE") ", "          \
    IN_US(ends) ", " names " FROM {table}"

#define READ(info) info " WHERE " THE_ROW
#define READ_MANY(info)                                                        \
    info " WHERE REGION = {2} "                                                \
    "AND LOCK_KEY = ANY (ARRAY(SELECT J.k FROM " ITEMS "))"
#define LIST(info)                                                             \
    info " WHERE REGION = {2} AND LOCK_KEY > {1} ORDER BY LOCK_KEY LIMIT {4}"

#define REAP_BOUND                                                             \
    "SELECT max(LOCK_KEY) FROM (SELECT LOCK_KEY FROM {table} "                 \
    "WHERE REGION = {2} AND LOCK_KEY > {1} ORDER BY LOCK_KEY LIMIT {4}) AS B"

#define REAP(ends)                                                             \
    "DELETE FROM {table} WHERE REGION = {2} AND LOCK_KEY > {1} "               \
    "AND LOCK_KEY <= {9} AND " ends " < " NOW " - " US("{4}")

/* ------------------------------------------------------------ our layout -- */

#define ENDS "EXPIRED_AFTER"
#define LEASE(ttl) "EXPIRED_AFTER = " NOW " + " ttl
#define STILL_ITS_OWN                                                          \
    "L.CLIENT_ID = EXCLUDED.CLIENT_ID AND L.EXPIRED_AFTER >= " NOW
#define BORN_UNLESS_OWN                                                        \
    "CREATED_DATE = CASE WHEN " STILL_ITS_OWN " THEN L.CREATED_DATE "          \
    "ELSE " NOW " END"
/* What an item's TTL was: both are computed from one reading of the clock. */
#define TTL_OF_ITEM "(EXCLUDED.EXPIRED_AFTER - EXCLUDED.CREATED_DATE)"
/* What a release writes: its time less 50 years (of 365.25 days), so that a peer
 * whose clock is behind sees the row free at once. */
#define LONG_PAST "interval '18262 days 12 hours'"
#define FREED "EXPIRED_AFTER = " NOW " - " LONG_PAST
#define TRUE_END                                                               \
    "CASE WHEN EXPIRED_AFTER < '2000-01-01' THEN EXPIRED_AFTER + " LONG_PAST  \
    " ELSE EXPIRED_AFTER END"
#define RAISED(fence) "greatest(" fence " + 1, " NOW_US ")"

#define OURS_INFO INFO("FENCE", "(" TRUE_END ")", "LOCK_NAME, HOLDER")
#define OURS_INTO CLAIM("CREATED_DATE, EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER")
#define OURS_TAKE_OVER(over, ttl)                                              \
    OR_TAKE_OVER(over, BORN_UNLESS_OWN ", " LEASE(ttl) ", "                    \
        "FENCE = CASE WHEN " STILL_ITS_OWN " THEN L.FENCE "                    \
        "ELSE " RAISED("L.FENCE") " END, "                                     \
        "LOCK_NAME = EXCLUDED.LOCK_NAME, HOLDER = EXCLUDED.HOLDER")

/* Whether the row was inserted: one that was there was locked before it was
 * updated, and its new version still says by whom. */
#define IS_NEW "L.xmax = 0"
#define OURS_CLAIM_OF(over)                                                    \
    OURS_INTO ONE(NOW ", " NOW " + " US("{4}") ", " AT_TURN("{1}", NOW_US)     \
                  ", {6}, {7}")                                                \
    OURS_TAKE_OVER(over, US("{4}")) "L.FENCE, " WANTED ", " IS_NEW
#define OURS_CLAIM OURS_CLAIM_OF(OVER(ENDS))
#define OURS_CLAIM_MANY                                                        \
    OURS_INTO                                                                  \
    EACH("J.born, J.born + " US("J.t") ", " AT_TURN("J.k", NOW_US)             \
         ", J.n, J.h", NOW)                                                    \
    OURS_TAKE_OVER(OVER(ENDS), TTL_OF_ITEM) "L.LOCK_KEY, L.FENCE"

#define OURS_TAKE                                                              \
    "UPDATE {table} SET CLIENT_ID = {3}, CREATED_DATE = " NOW ", "             \
    LEASE(US("{4}")) ", FENCE = " RAISED("FENCE") ", LOCK_NAME = {6}, "        \
    "HOLDER = {7} WHERE " THE_ROW " AND (CLIENT_ID IS NULL OR "                \
    ENDS " < " NOW ")" IN_TURN " RETURNING FENCE, " WANTED

#define OURS_HAND_OVER                                                         \
    "UPDATE {table} SET CLIENT_ID = {3}, CREATED_DATE = " NOW ", "             \
    LEASE(US("{4}")) ", FENCE = " RAISED("FENCE") ", LOCK_NAME = {6}, "        \
    "HOLDER = {7}" FROM_HOLDER(ENDS) IN_TURN " RETURNING FENCE"

#define OURS_FREE "SET CLIENT_ID = NULL, HOLDER = NULL, " FREED
/* What it does besides is done in computing the null that HOLDER becomes: rows
 * to return, and their description, would be a good part of what it costs. */
#define NOBODY                                                                 \
    "CASE WHEN " NEED_NOT_BE_DURABLE " = 'off' "                               \
    "THEN CASE WHEN " RING " THEN NULL END END"
#define OURS_RELEASE                                                           \
    "UPDATE {table} SET CLIENT_ID = NULL, HOLDER = " NOBODY ", " FREED     \
    " WHERE " THE_ROW " AND CLIENT_ID = {3}"
#define OURS_RELEASE_BELL                                                      \
    OURS_RELEASE " RETURNING pg_advisory_unlock_all() IS NULL"

#define OURS_AFTER_RESTORE                                                     \
    "UPDATE {table} " OURS_FREE ", FENCE = " RAISED("FENCE")

#define OURS_BREAK(set)                                                        \
    "UPDATE {table} SET " set ", HOLDER = {7}, FENCE = " RAISED("FENCE")       \
    FROM_HOLDER(ENDS)

/* ------------------------------------------------------ Spring's layouts -- */

#define NO_NAMES "NULL, NULL"

#define SPRING_RELEASE                                                         \
    "DELETE FROM {table} WHERE " THE_ROW " AND CLIENT_ID = {3}"                \
    " RETURNING " NEED_NOT_BE_DURABLE

#define SPRING_AFTER_RESTORE "DELETE FROM {table}"

/* Five columns: CREATED_DATE is the token. */
#define FIVE_TOKEN IN_US("CREATED_DATE")
#define FIVE_INFO INFO(FIVE_TOKEN, ENDS, NO_NAMES)
#define FIVE_INTO CLAIM("CREATED_DATE, EXPIRED_AFTER")
#define FIVE_TAKE_OVER(over, ttl)                                              \
    OR_TAKE_OVER(over, BORN_UNLESS_OWN ", " LEASE(ttl))
#define FIVE_CLAIM_OF(over)                                                    \
    FIVE_INTO ONE(AT_TURN("{1}", NOW) ", " NOW " + " US("{4}"))                 \
    FIVE_TAKE_OVER(over, US("{4}")) IN_US("L.CREATED_DATE")
#define FIVE_CLAIM FIVE_CLAIM_OF(OVER(ENDS))
#define FIVE_CLAIM_MANY                                                        \
    FIVE_INTO EACH("J.born, J.born + " US("J.t"), AT_TURN("J.k", NOW))          \
    FIVE_TAKE_OVER(OVER(ENDS), TTL_OF_ITEM) "L.LOCK_KEY, " IN_US("L.CREATED_DATE")

#define FIVE_HAND_OVER                                                         \
    "UPDATE {table} SET CLIENT_ID = {3}, CREATED_DATE = "                      \
    "greatest(CREATED_DATE + " US("1") ", " NOW "), " LEASE(US("{4}"))         \
    FROM_HOLDER(ENDS) IN_TURN " RETURNING " FIVE_TOKEN

/* Four columns: the contender's TTL decides, so a lease of another length is
 * written as one that began at another time.  Of many, that time is computed
 * before a wait for the row, but after the statement was sent, so the holder
 * does not believe longer. */
#define FOUR_ENDS "CREATED_DATE + " US("{5}")
#define FOUR_LEASE(ttl) "CREATED_DATE = " NOW " + " US(ttl " - {5}")
#define FOUR_INFO INFO("NULL::bigint", "(" FOUR_ENDS ")", NO_NAMES)
#define FOUR_CLAIM_OF(over)                                                    \
    CLAIM("CREATED_DATE") ONE(NOW " + " US("{4} - {5}"))                       \
    OR_TAKE_OVER(over, FOUR_LEASE("{4}")) NOW_US
#define FOUR_CLAIM FOUR_CLAIM_OF(OVER(FOUR_ENDS))
#define FOUR_CLAIM_MANY                                                        \
    CLAIM("CREATED_DATE") EACH("J.born + " US("J.t - {5}"), NOW)               \
    OR_TAKE_OVER(OVER(FOUR_ENDS), "CREATED_DATE = EXCLUDED.CREATED_DATE")            \
    "L.LOCK_KEY, " NOW_US

#define FOUR_HAND_OVER                                                         \
    "UPDATE {table} SET CLIENT_ID = {3}, " FOUR_LEASE("{4}")                   \
    FROM_HOLDER(FOUR_ENDS) " RETURNING " NOW_US

/* ---------------------------------------------- the server and the table -- */

#define SERVER                                                                 \
    "SELECT CASE WHEN pg_is_in_recovery() "                                    \
    "OR current_setting('transaction_read_only') = 'on' THEN 1 ELSE 0 "        \
    "END, " NOW_US ", 'PostgreSQL ' || "                                       \
    "split_part(current_setting('server_version'), ' ', 1)"

/* A name without a schema means the first table of that name in the search
 * path, as in every statement.  Of the primary key only columns count by which
 * ON CONFLICT can find a row. */
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
    "WHEN C.relpersistence = 't' THEN 'a temporary table' END "                \
    "FROM pg_class AS C JOIN pg_namespace AS N ON N.oid = C.relnamespace "     \
    "JOIN pg_attribute AS A ON A.attrelid = C.oid "                            \
    "WHERE C.relname = {1}::name AND A.attnum > 0 AND NOT A.attisdropped "     \
    "AND CASE WHEN {2}::name IS NULL THEN pg_table_is_visible(C.oid) "         \
    "ELSE N.nspname = {2}::name END ORDER BY A.attnum"

/* clang-format on */

/* CHAR(36) of the scripts; a table made by hand may say VARCHAR or TEXT. */
#define KEY_TYPES "character(36)|character varying|character varying(*)|text"
#define NAME_TYPES "character(*)|character varying|character varying(*)|text"
/* Of microseconds, and without a zone, which the session would apply. */
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
const sqlock_dialect lk_pg_dialect = {
    .placeholder = SQLOCK_PLACEHOLDER_DOLLAR,
    .quote = '"',
    .folds_to_lower = true,
    .identifier_max = 63,
    .columns = columns,
    .done = lk_sql_postgres_done,
    .schema = {
        [SQLOCK_LAYOUT_SQLOCK] = lk_sql_postgres_schema,
        [SQLOCK_LAYOUT_SPRING7] = lk_sql_postgres_schema_spring7,
        [SQLOCK_LAYOUT_SPRING6] = lk_sql_postgres_schema_spring6,
    },
    .statements = {
        [SQLOCK_LAYOUT_SQLOCK] = {
            [SQLOCK_SQL_CLAIM] = { .text = OURS_CLAIM },
            [SQLOCK_SQL_CLAIM_OBSERVED] = { .text =
                OURS_CLAIM_OF(OBSERVED(ENDS)) },
            [SQLOCK_SQL_RENEW] = { .text = RENEW(ENDS, LEASE(US("{4}"))) },
            [SQLOCK_SQL_RELEASE] = { .text = OURS_RELEASE },
            [SQLOCK_SQL_READ] = { .text = READ(OURS_INFO) },
            [SQLOCK_SQL_LIST] = { .text = LIST(OURS_INFO) },
            [SQLOCK_SQL_BREAK] = { .text = OURS_BREAK("CLIENT_ID = {3}") },
            [SQLOCK_SQL_BREAK_NOW] = { .text =
                OURS_BREAK("CLIENT_ID = NULL, " FREED)
                " RETURNING " RING },
            [SQLOCK_SQL_REAP_BOUND] = { .text = REAP_BOUND },
            [SQLOCK_SQL_REAP] = { .text = REAP(TRUE_END)
                                  " AND FENCE < " NOW_US " - {4}" },
            [SQLOCK_SQL_SERVER] = { .text = SERVER },
            [SQLOCK_SQL_DESCRIBE] = { .text = DESCRIBE },
            [SQLOCK_SQL_CLAIM_MANY] = { .text = OURS_CLAIM_MANY },
            [SQLOCK_SQL_RENEW_MANY] = { .text =
                RENEW_MANY(ENDS, LEASE(US("J.t"))),
                .is_planned_anew = true },
            [SQLOCK_SQL_RELEASE_MANY] = { .text =
                RELEASE_MANY("UPDATE", OURS_FREE " FROM"),
                .is_planned_anew = true },
            [SQLOCK_SQL_READ_MANY] = { .text = READ_MANY(OURS_INFO),
                .is_planned_anew = true },
            [SQLOCK_SQL_TAKE] = { .text = OURS_TAKE },
            [SQLOCK_SQL_HAND_OVER] = { .text = OURS_HAND_OVER },
            [SQLOCK_SQL_RELEASE_BELL] = { .text = OURS_RELEASE_BELL },
            [SQLOCK_SQL_AFTER_RESTORE] = { .text = OURS_AFTER_RESTORE },
        },
        [SQLOCK_LAYOUT_SPRING7] = {
            [SQLOCK_SQL_CLAIM] = { .text = FIVE_CLAIM },
            [SQLOCK_SQL_CLAIM_OBSERVED] = { .text =
                FIVE_CLAIM_OF(OBSERVED(ENDS)) },
            [SQLOCK_SQL_RENEW] = { .text = RENEW(ENDS, LEASE(US("{4}"))) },
            [SQLOCK_SQL_RELEASE] = { .text = SPRING_RELEASE },
            [SQLOCK_SQL_READ] = { .text = READ(FIVE_INFO) },
            [SQLOCK_SQL_LIST] = { .text = LIST(FIVE_INFO) },
            [SQLOCK_SQL_BREAK] = { .text =
                "UPDATE {table} SET CLIENT_ID = {3}, CREATED_DATE = "
                "greatest(CREATED_DATE + " US("1") ", " NOW ")"
                FROM_HOLDER(ENDS) },
            [SQLOCK_SQL_BREAK_NOW] = { .text =
                "DELETE FROM {table}" FROM_HOLDER(ENDS) },
            [SQLOCK_SQL_REAP_BOUND] = { .text = REAP_BOUND },
            [SQLOCK_SQL_REAP] = { .text = REAP(ENDS)
                                  " AND CREATED_DATE < " NOW " - " US("{4}") },
            [SQLOCK_SQL_SERVER] = { .text = SERVER },
            [SQLOCK_SQL_DESCRIBE] = { .text = DESCRIBE },
            [SQLOCK_SQL_CLAIM_MANY] = { .text = FIVE_CLAIM_MANY },
            [SQLOCK_SQL_RENEW_MANY] = { .text =
                RENEW_MANY(ENDS, LEASE(US("J.t"))),
                .is_planned_anew = true },
            [SQLOCK_SQL_RELEASE_MANY] = { .text =
                RELEASE_MANY("DELETE FROM", "USING"),
                .is_planned_anew = true },
            [SQLOCK_SQL_READ_MANY] = { .text = READ_MANY(FIVE_INFO),
                .is_planned_anew = true },
            [SQLOCK_SQL_HAND_OVER] = { .text = FIVE_HAND_OVER },
            [SQLOCK_SQL_AFTER_RESTORE] = { .text = SPRING_AFTER_RESTORE },
        },
        [SQLOCK_LAYOUT_SPRING6] = {
            [SQLOCK_SQL_CLAIM] = { .text = FOUR_CLAIM },
            [SQLOCK_SQL_CLAIM_OBSERVED] = { .text =
                FOUR_CLAIM_OF(OBSERVED(FOUR_ENDS)) },
            [SQLOCK_SQL_RENEW] = { .text =
                RENEW(FOUR_ENDS, FOUR_LEASE("{4}")) },
            [SQLOCK_SQL_RELEASE] = { .text = SPRING_RELEASE },
            [SQLOCK_SQL_READ] = { .text = READ(FOUR_INFO) },
            [SQLOCK_SQL_LIST] = { .text = LIST(FOUR_INFO) },
            [SQLOCK_SQL_BREAK] = { .text =
                "UPDATE {table} SET CLIENT_ID = {3}"
                FROM_HOLDER(FOUR_ENDS) },
            [SQLOCK_SQL_BREAK_NOW] = { .text =
                "DELETE FROM {table}" FROM_HOLDER(FOUR_ENDS) },
            [SQLOCK_SQL_REAP_BOUND] = { .text = REAP_BOUND },
            [SQLOCK_SQL_REAP] = { .text = REAP(FOUR_ENDS) },
            [SQLOCK_SQL_SERVER] = { .text = SERVER },
            [SQLOCK_SQL_DESCRIBE] = { .text = DESCRIBE },
            [SQLOCK_SQL_CLAIM_MANY] = { .text = FOUR_CLAIM_MANY },
            [SQLOCK_SQL_RENEW_MANY] = { .text =
                RENEW_MANY(FOUR_ENDS, FOUR_LEASE("J.t")),
                .is_planned_anew = true },
            [SQLOCK_SQL_RELEASE_MANY] = { .text =
                RELEASE_MANY("DELETE FROM", "USING"),
                .is_planned_anew = true },
            [SQLOCK_SQL_READ_MANY] = { .text = READ_MANY(FOUR_INFO),
                .is_planned_anew = true },
            [SQLOCK_SQL_HAND_OVER] = { .text = FOUR_HAND_OVER },
            [SQLOCK_SQL_AFTER_RESTORE] = { .text = SPRING_AFTER_RESTORE },
        },
    },
    .examination = &lk_pg_examination,
    /* pg_stat_activity hides the state of other roles' sessions, pg_locks does
     * not hide that they are in a transaction. */
    .orphans = { .text =
        "SELECT count(*) FROM pg_stat_activity a "
        "WHERE datname = current_database() "
        "AND starts_with(application_name, {6}) AND application_name <> {7} "
        "AND EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid "
        "AND l.locktype = 'virtualxid' AND l.granted "
        "AND l.mode = 'ExclusiveLock')" },
};
/* clang-format on */
