/*
 * dialect.c - the SQL that PostgreSQL gets
 *
 * The three layouts share their statements and differ in a few expressions:
 * where the lease ends (ENDS), and what writes it.  "Now" is clock_timestamp(),
 * which is read when it is evaluated, after a wait for a row lock too; now() and
 * what was computed for EXCLUDED would be stale (F9, F10).
 *
 * No parameter is ever cast to text: a LOCK_KEY of type text does not use the
 * primary key, which is CHAR.
 */
#include "drivers/postgres/session.h"

/* The build makes these of sql/postgres. */
extern const char lk_sql_postgres_schema[];
extern const char lk_sql_postgres_schema_spring7[];
extern const char lk_sql_postgres_schema_spring6[];

#define NOW "(clock_timestamp() AT TIME ZONE 'UTC')"
#define US(number) "(" number ") * interval '1 microsecond'"
#define IN_US(value) "(extract(epoch FROM " value ") * 1000000)::bigint"
#define NOW_US IN_US("clock_timestamp()")

#define THE_ROW "LOCK_KEY = {1} AND REGION = {2}"
#define NOT_OVER(ends) "CLIENT_ID IS NOT NULL AND " ends " >= " NOW

/* Losing a release in a crash leaves a row that runs out, so it need not wait
 * for the disk, nor for a standby.  The setting ends with the statement's own transaction; inside
 * a longer one it would hold until that one's end. */
#define NEED_NOT_BE_DURABLE                                                    \
    " RETURNING set_config('synchronous_commit', 'off', true)"

/* ------------------------------------------------- what the layouts share -- */

#define RENEW(ends, lease)                                                     \
    "UPDATE {table} SET " lease " WHERE " THE_ROW                              \
    " AND CLIENT_ID = {3} AND " ends " >= " NOW

/* clang-format off */
#define INFO(token, ends, names)                                               \
    "SELECT LOCK_KEY, CLIENT_ID, " token ", "                                  \
    "CASE WHEN CLIENT_ID IS NULL THEN least(-1, " IN_US(ends " - " NOW) ") "   \
    "ELSE " IN_US(ends " - " NOW) " END, " IN_US("CREATED_DATE") ", "          \
    IN_US(ends) ", " names " FROM {table}"
/* clang-format on */

#define READ(info) info " WHERE " THE_ROW
#define LIST(info)                                                             \
    info " WHERE REGION = {2} AND LOCK_KEY > {1} ORDER BY LOCK_KEY LIMIT {4}"

#define REAP_BOUND                                                             \
    "SELECT max(LOCK_KEY) FROM (SELECT LOCK_KEY FROM {table} "                 \
    "WHERE REGION = {2} AND LOCK_KEY > {1} ORDER BY LOCK_KEY LIMIT {4}) AS B"

#define REAP(ends)                                                             \
    "DELETE FROM {table} WHERE REGION = {2} AND LOCK_KEY > {1} "               \
    "AND LOCK_KEY <= {9} AND " ends " < " NOW " - " US("{4}")

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

/* ------------------------------------------------------------- our layout -- */

#define OURS_LEASE "EXPIRED_AFTER = " NOW " + " US("{4}")
#define OURS_INFO INFO("FENCE", "EXPIRED_AFTER", "LOCK_NAME, HOLDER")
#define NEXT_TOKEN(fence) "greatest(" fence " + 1, " NOW_US ")"
#define STILL_ITS_OWN                                                          \
    "L.CLIENT_ID = EXCLUDED.CLIENT_ID AND L.EXPIRED_AFTER >= " NOW
#define JUST_PAST "EXPIRED_AFTER = " NOW " - " US("1")
#define OURS_BROKEN                                                            \
    " WHERE " THE_ROW " AND FENCE = {8} AND " NOT_OVER("EXPIRED_AFTER")

#define OURS_CLAIM                                                             \
    "INSERT INTO {table} AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, "    \
    "EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER) VALUES ({1}, {2}, {3}, " NOW     \
    ", " NOW                                                                   \
    " + " US("{4}") ", " NOW_US ", {6}, {7}) "                                 \
                    "ON CONFLICT (LOCK_KEY, REGION) DO UPDATE SET "            \
                    "CLIENT_ID = EXCLUDED.CLIENT_ID, "                         \
                    "CREATED_DATE = CASE WHEN " STILL_ITS_OWN                  \
                    " THEN L.CREATED_DATE ELSE " NOW " END, " OURS_LEASE ", "  \
                    "FENCE = CASE WHEN " STILL_ITS_OWN                         \
                    " THEN L.FENCE ELSE " NEXT_TOKEN(                          \
                        "L.FENCE") " END, "                                    \
                                   "LOCK_NAME = EXCLUDED.LOCK_NAME, HOLDER = " \
                                   "EXCLUDED.HOLDER "                          \
                                   "WHERE L.CLIENT_ID IS NULL OR L.CLIENT_ID " \
                                   "= EXCLUDED.CLIENT_ID "                     \
                                   "OR L.EXPIRED_AFTER < " NOW                 \
                                   " RETURNING L.FENCE"

#define OURS_RELEASE                                                           \
    "UPDATE {table} SET CLIENT_ID = NULL, HOLDER = NULL, " JUST_PAST           \
    " WHERE " THE_ROW " AND CLIENT_ID = {3}" NEED_NOT_BE_DURABLE

#define OURS_BREAK                                                             \
    "UPDATE {table} SET CLIENT_ID = {3}, HOLDER = {7}, "                       \
    "FENCE = " NEXT_TOKEN("FENCE") OURS_BROKEN

#define OURS_BREAK_NOW                                                         \
    "UPDATE {table} SET CLIENT_ID = NULL, HOLDER = {7}, " JUST_PAST ", "       \
    "FENCE = " NEXT_TOKEN("FENCE") OURS_BROKEN

/* --------------------------------------------------------- Spring's layouts -- */

#define NO_NAMES "NULL, NULL"

#define SPRING_CLAIM(columns, values, over, set, token)                        \
    "INSERT INTO {table} AS L (LOCK_KEY, REGION, CLIENT_ID, " columns ") "     \
    "VALUES ({1}, {2}, {3}, " values ") "                                      \
    "ON CONFLICT (LOCK_KEY, REGION) DO UPDATE SET "                            \
    "CLIENT_ID = EXCLUDED.CLIENT_ID, " set " WHERE L.CLIENT_ID IS NULL "       \
    "OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR " over " RETURNING " token

#define SPRING_RELEASE                                                         \
    "DELETE FROM {table} WHERE " THE_ROW                                       \
    " AND CLIENT_ID = {3}" NEED_NOT_BE_DURABLE

#define SPRING_BROKEN(ends)                                                    \
    " WHERE " THE_ROW " AND CLIENT_ID = {9} AND " ends " >= " NOW

/* Five columns: CREATED_DATE is the token.
 *
 * What is to be inserted is computed once; when the insertion then waits for a
 * row that is being deleted, others can claim and release meanwhile, and their
 * tokens would be later ones.  So claims of a key take turns from before the
 * clock is read until they commit. */
#define TAKE_TURNS                                                             \
    "pg_advisory_xact_lock(hashtextextended({2}::varchar, "                    \
    "hashbpchar({1})::bigint))"
#define NOW_IN_TURN "CASE WHEN " TAKE_TURNS " IS NOT NULL THEN " NOW " END"

#define FIVE_TOKEN IN_US("CREATED_DATE")
#define FIVE_INFO INFO(FIVE_TOKEN, "EXPIRED_AFTER", NO_NAMES)
#define FIVE_CLAIM                                                             \
    SPRING_CLAIM("CREATED_DATE, EXPIRED_AFTER",                                \
                 NOW_IN_TURN ", " NOW " + " US("{4}"),                         \
                 "L.EXPIRED_AFTER < " NOW,                                     \
                 "CREATED_DATE = CASE WHEN " STILL_ITS_OWN                     \
                 " THEN L.CREATED_DATE ELSE " NOW " END, " OURS_LEASE,         \
                 IN_US("L.CREATED_DATE"))

/* Four columns: the contender's TTL decides, so a lease of another length is
 * written as one that began at another time. */
#define FOUR_ENDS "CREATED_DATE + " US("{5}")
#define FOUR_BEGINS NOW " + " US("{4} - {5}")
#define FOUR_LEASE "CREATED_DATE = " FOUR_BEGINS
#define FOUR_INFO INFO("NULL::bigint", "(" FOUR_ENDS ")", NO_NAMES)
#define FOUR_CLAIM                                                             \
    SPRING_CLAIM("CREATED_DATE", FOUR_BEGINS, "L." FOUR_ENDS " < " NOW,        \
                 FOUR_LEASE, NOW_US)

/* ---------------------------------------------------------------- the table -- */

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
    .schema = {
        [SQLOCK_LAYOUT_SQLOCK] = lk_sql_postgres_schema,
        [SQLOCK_LAYOUT_SPRING7] = lk_sql_postgres_schema_spring7,
        [SQLOCK_LAYOUT_SPRING6] = lk_sql_postgres_schema_spring6,
    },
    .statements = {
        [SQLOCK_LAYOUT_SQLOCK] = {
            [SQLOCK_SQL_CLAIM] = { .text = OURS_CLAIM },
            [SQLOCK_SQL_RENEW] = { .text = RENEW("EXPIRED_AFTER", OURS_LEASE) },
            [SQLOCK_SQL_RELEASE] = { .text = OURS_RELEASE },
            [SQLOCK_SQL_READ] = { .text = READ(OURS_INFO) },
            [SQLOCK_SQL_LIST] = { .text = LIST(OURS_INFO) },
            [SQLOCK_SQL_BREAK] = { .text = OURS_BREAK },
            [SQLOCK_SQL_BREAK_NOW] = { .text = OURS_BREAK_NOW },
            [SQLOCK_SQL_REAP_BOUND] = { .text = REAP_BOUND },
            [SQLOCK_SQL_REAP] = { .text = REAP("EXPIRED_AFTER")
                                  " AND FENCE < " NOW_US " - {4}" },
            [SQLOCK_SQL_SERVER] = { .text = SERVER },
            [SQLOCK_SQL_DESCRIBE] = { .text = DESCRIBE },
        },
        [SQLOCK_LAYOUT_SPRING7] = {
            [SQLOCK_SQL_CLAIM] = { .text = FIVE_CLAIM },
            [SQLOCK_SQL_RENEW] = { .text = RENEW("EXPIRED_AFTER", OURS_LEASE) },
            [SQLOCK_SQL_RELEASE] = { .text = SPRING_RELEASE },
            [SQLOCK_SQL_READ] = { .text = READ(FIVE_INFO) },
            [SQLOCK_SQL_LIST] = { .text = LIST(FIVE_INFO) },
            [SQLOCK_SQL_BREAK] = { .text =
                "UPDATE {table} SET CLIENT_ID = {3}, CREATED_DATE = "
                "greatest(CREATED_DATE + " US("1") ", " NOW ")"
                SPRING_BROKEN("EXPIRED_AFTER") },
            [SQLOCK_SQL_BREAK_NOW] = { .text =
                "DELETE FROM {table}" SPRING_BROKEN("EXPIRED_AFTER") },
            [SQLOCK_SQL_REAP_BOUND] = { .text = REAP_BOUND },
            [SQLOCK_SQL_REAP] = { .text = REAP("EXPIRED_AFTER")
                                  " AND CREATED_DATE < " NOW " - " US("{4}") },
            [SQLOCK_SQL_SERVER] = { .text = SERVER },
            [SQLOCK_SQL_DESCRIBE] = { .text = DESCRIBE },
        },
        [SQLOCK_LAYOUT_SPRING6] = {
            [SQLOCK_SQL_CLAIM] = { .text = FOUR_CLAIM },
            [SQLOCK_SQL_RENEW] = { .text = RENEW(FOUR_ENDS, FOUR_LEASE) },
            [SQLOCK_SQL_RELEASE] = { .text = SPRING_RELEASE },
            [SQLOCK_SQL_READ] = { .text = READ(FOUR_INFO) },
            [SQLOCK_SQL_LIST] = { .text = LIST(FOUR_INFO) },
            [SQLOCK_SQL_BREAK] = { .text =
                "UPDATE {table} SET CLIENT_ID = {3}"
                SPRING_BROKEN(FOUR_ENDS) },
            [SQLOCK_SQL_BREAK_NOW] = { .text =
                "DELETE FROM {table}" SPRING_BROKEN(FOUR_ENDS) },
            [SQLOCK_SQL_REAP_BOUND] = { .text = REAP_BOUND },
            [SQLOCK_SQL_REAP] = { .text = REAP(FOUR_ENDS) },
            [SQLOCK_SQL_SERVER] = { .text = SERVER },
            [SQLOCK_SQL_DESCRIBE] = { .text = DESCRIBE },
        },
    },
};
/* clang-format on */
