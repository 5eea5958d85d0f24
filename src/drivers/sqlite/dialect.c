/*
 * dialect.c - the statements of sqlock_driver.h in SQLite's SQL, for the three
 * layouts.  Texts only.
 *
 * All times are INTEGER microseconds UTC; sqlock_now() is the same throughout a
 * statement (functions.c).  A single INSERT .. ON CONFLICT takes the file's
 * write lock before it reads anything, and SQLite begins it anew on the newest
 * state if it had to wait: no SQLITE_BUSY_SNAPSHOT without a transaction.
 */
#include "drivers/sqlite/sqlite.h"

extern const char lk_sql_sqlite_schema[];
extern const char lk_sql_sqlite_done[];
extern const char lk_sql_sqlite_schema_spring7[];
extern const char lk_sql_sqlite_schema_spring6[];

#define WHERE_ROW "WHERE LOCK_KEY = {1} AND REGION = {2} "
#define WHERE_REGION "WHERE REGION = {2} AND LOCK_KEY > {1} "

/* ----------------------------------------------------------------- ours -- */

/* In ON CONFLICT, t is the row there is, excluded the one that was to be; every
 * right side sees the row as it was. */
#define IS_OWN                                                                 \
    "t.CLIENT_ID = excluded.CLIENT_ID "                                        \
    "AND t.EXPIRED_AFTER >= excluded.CREATED_DATE"
#define WHERE_MAY_HAVE(over)                                                   \
    "WHERE t.CLIENT_ID IS NULL OR " over " OR t.CLIENT_ID = "                  \
    "excluded.CLIENT_ID "
#define OVER "t.EXPIRED_AFTER < excluded.CREATED_DATE"
#define OBSERVED "(" OVER " AND t.CLIENT_ID = {9} AND t.EXPIRED_AFTER = {8})"

#define INSERT_SQLOCK                                                          \
    "INSERT INTO {table} AS t (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, "    \
    "EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER) "

/* Ends before the columns that are returned. */
#define ON_CONFLICT_SQLOCK(over)                                               \
    "ON CONFLICT (LOCK_KEY, REGION) DO UPDATE SET "                            \
    "CREATED_DATE = CASE WHEN " IS_OWN " THEN t.CREATED_DATE "                 \
    "ELSE excluded.CREATED_DATE END, "                                         \
    "FENCE = CASE WHEN " IS_OWN " THEN t.FENCE "                               \
    "ELSE max(t.FENCE + 1, excluded.FENCE) END, "                              \
    "CLIENT_ID = excluded.CLIENT_ID, "                                         \
    "EXPIRED_AFTER = excluded.EXPIRED_AFTER, "                                 \
    "LOCK_NAME = excluded.LOCK_NAME, HOLDER = "                                \
    "excluded.HOLDER " WHERE_MAY_HAVE(over) "RETURNING "

#define CLAIM_SQLOCK(over)                                                     \
    INSERT_SQLOCK                                                              \
    "VALUES ({1}, {2}, {3}, sqlock_now(), sqlock_now() + {4}, sqlock_now(), "  \
    "{6}, {7}) " ON_CONFLICT_SQLOCK(over) "FENCE, sqlock_bell_take({0})"

#define HAND_OVER_SQLOCK                                                       \
    "UPDATE {table} SET CLIENT_ID = {3}, CREATED_DATE = sqlock_now(), "        \
    "EXPIRED_AFTER = sqlock_now() + {4}, "                                     \
    "FENCE = max(FENCE + 1, sqlock_now()), LOCK_NAME = {6}, HOLDER = "         \
    "{7} " WHERE_ROW "AND CLIENT_ID = {9} AND EXPIRED_AFTER >= sqlock_now() "  \
    "RETURNING FENCE"

#define RENEW_EXPIRED_AFTER                                                    \
    "UPDATE {table} SET EXPIRED_AFTER = sqlock_now() + {4} " WHERE_ROW         \
    "AND CLIENT_ID = {3} AND EXPIRED_AFTER >= sqlock_now()"

#define RELEASE_SQLOCK                                                         \
    "UPDATE {table} SET CLIENT_ID = NULL, HOLDER = sqlock_bell_ring({0}), "    \
    "EXPIRED_AFTER = sqlock_now() - 1 " WHERE_ROW "AND CLIENT_ID = {3}"

#define REMAINING                                                              \
    "CASE WHEN CLIENT_ID IS NULL THEN min(EXPIRED_AFTER - sqlock_now(), -1) "  \
    "ELSE EXPIRED_AFTER - sqlock_now() END"

#define INFO_SQLOCK                                                            \
    "SELECT LOCK_KEY, CLIENT_ID, FENCE, " REMAINING ", CREATED_DATE, "         \
    "EXPIRED_AFTER, LOCK_NAME, HOLDER FROM {table} "

#define AFTER_RESTORE_SQLOCK                                                   \
    "UPDATE {table} SET CLIENT_ID = NULL, HOLDER = NULL, "                     \
    "EXPIRED_AFTER = sqlock_now() - 1, FENCE = max(FENCE + 1, sqlock_now())"
#define AFTER_RESTORE_SPRING "DELETE FROM {table}"

#define BREAK_SQLOCK                                                           \
    "UPDATE {table} SET CLIENT_ID = {3}, HOLDER = {7}, "                       \
    "FENCE = max(FENCE + 1, sqlock_now()) " WHERE_ROW                          \
    "AND CLIENT_ID = {9} AND EXPIRED_AFTER >= sqlock_now()"

#define BREAK_NOW_SQLOCK                                                       \
    "UPDATE {table} SET CLIENT_ID = NULL, HOLDER = {7}, "                      \
    "EXPIRED_AFTER = sqlock_now() - 1, "                                       \
    "FENCE = max(FENCE + 1, sqlock_now()) " WHERE_ROW                          \
    "AND CLIENT_ID = {9} AND EXPIRED_AFTER >= sqlock_now()"

#define REAP_SQLOCK                                                            \
    "DELETE FROM {table} " WHERE_REGION "AND LOCK_KEY <= {9} "                 \
    "AND EXPIRED_AFTER < sqlock_now() - {4} "                                  \
    "AND FENCE < sqlock_now() - {4}"

/* --------------------------------------------------- Spring, five columns -- */

/* The token of an acquisition is its CREATED_DATE. */
#define INSERT_SPRING7                                                         \
    "INSERT INTO {table} AS t "                                                \
    "(LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER) "

#define ON_CONFLICT_SPRING7(over)                                              \
    "ON CONFLICT (LOCK_KEY, REGION) DO UPDATE SET "                            \
    "CREATED_DATE = CASE WHEN " IS_OWN " THEN t.CREATED_DATE "                 \
    "ELSE excluded.CREATED_DATE END, "                                         \
    "CLIENT_ID = excluded.CLIENT_ID, "                                         \
    "EXPIRED_AFTER = excluded.EXPIRED_AFTER " WHERE_MAY_HAVE(                  \
        over) "RETURNING "

#define CLAIM_SPRING7(over)                                                    \
    INSERT_SPRING7                                                             \
    "VALUES ({1}, {2}, {3}, sqlock_now(), sqlock_now() + "                     \
    "{4}) " ON_CONFLICT_SPRING7(over) "CREATED_DATE"

#define HAND_OVER_SPRING7                                                      \
    "UPDATE {table} SET CLIENT_ID = {3}, "                                     \
    "CREATED_DATE = max(CREATED_DATE + 1, sqlock_now()), "                     \
    "EXPIRED_AFTER = sqlock_now() + {4} " WHERE_ROW                            \
    "AND CLIENT_ID = {9} AND EXPIRED_AFTER >= sqlock_now() "                   \
    "RETURNING CREATED_DATE"

#define INFO_SPRING7                                                           \
    "SELECT LOCK_KEY, CLIENT_ID, CREATED_DATE, " REMAINING ", CREATED_DATE, "  \
    "EXPIRED_AFTER, NULL, NULL FROM {table} "

#define BREAK_SPRING7                                                          \
    "UPDATE {table} SET CLIENT_ID = {3}, CREATED_DATE = "                      \
    "sqlock_now() " WHERE_ROW "AND CLIENT_ID = {9} "                           \
    "AND EXPIRED_AFTER >= sqlock_now()"

#define REAP_SPRING7                                                           \
    "DELETE FROM {table} " WHERE_REGION "AND LOCK_KEY <= {9} "                 \
    "AND EXPIRED_AFTER < sqlock_now() - {4} "                                  \
    "AND CREATED_DATE < sqlock_now() - {4}"

/* --------------------------------------------------- Spring, four columns -- */

/* A lease ends at CREATED_DATE + {5}: CREATED_DATE is written so that this is
 * now + {4}, as far in the future as it may be. */
#define INSERT_SPRING6                                                         \
    "INSERT INTO {table} AS t (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE) "

#define SPRING6_OVER "t.CREATED_DATE + {5} < sqlock_now()"
#define SPRING6_OBSERVED                                                       \
    "(" SPRING6_OVER " AND t.CLIENT_ID = {9} AND t.CREATED_DATE + {5} = {8})"
#define ON_CONFLICT_SPRING6(over)                                              \
    "ON CONFLICT (LOCK_KEY, REGION) DO UPDATE SET "                            \
    "CLIENT_ID = excluded.CLIENT_ID, CREATED_DATE = "                          \
    "excluded.CREATED_DATE " WHERE_MAY_HAVE(over) "RETURNING "

#define CLAIM_SPRING6(over)                                                    \
    INSERT_SPRING6 "VALUES ({1}, {2}, {3}, sqlock_now() + {4} - "              \
                   "{5}) " ON_CONFLICT_SPRING6(over) "sqlock_now()"

#define RENEW_SPRING6                                                          \
    "UPDATE {table} SET CREATED_DATE = sqlock_now() + {4} - {5} " WHERE_ROW    \
    "AND CLIENT_ID = {3} AND CREATED_DATE + {5} >= sqlock_now()"

#define HAND_OVER_SPRING6                                                      \
    "UPDATE {table} SET CLIENT_ID = {3}, CREATED_DATE = sqlock_now() + {4} - " \
    "{5} " WHERE_ROW "AND CLIENT_ID = {9} "                                    \
    "AND CREATED_DATE + {5} >= sqlock_now() RETURNING sqlock_now()"

#define INFO_SPRING6                                                           \
    "SELECT LOCK_KEY, CLIENT_ID, NULL, CASE WHEN CLIENT_ID IS NULL "           \
    "THEN min(CREATED_DATE + {5} - sqlock_now(), -1) "                         \
    "ELSE CREATED_DATE + {5} - sqlock_now() END, CREATED_DATE, "               \
    "CREATED_DATE + {5}, NULL, NULL FROM {table} "

#define BREAK_SPRING6                                                          \
    "UPDATE {table} SET CLIENT_ID = {3} " WHERE_ROW "AND CLIENT_ID = {9} "     \
    "AND CREATED_DATE + {5} >= sqlock_now()"

#define REAP_SPRING6                                                           \
    "DELETE FROM {table} " WHERE_REGION "AND LOCK_KEY <= {9} "                 \
    "AND CREATED_DATE + {5} < sqlock_now() - {4}"

/* ------------------------------------------------- many leases at once -- */

/* {1} is an array of objects; each row is found by the primary key. */
#define ITEMS "json_each({1}) AS j"
#define ITEM_KEY "json_extract(j.value, '$.k')"
#define ITEM_CLIENT "json_extract(j.value, '$.c')"
#define ITEM_TTL "json_extract(j.value, '$.t')"
#define ITEM_NAME "json_extract(j.value, '$.n')"
#define ITEM_HOLDER "json_extract(j.value, '$.h')"

#define WHERE_ITEM "WHERE t.LOCK_KEY = " ITEM_KEY " AND t.REGION = {2} "
#define WHERE_ITEM_OWN WHERE_ITEM "AND t.CLIENT_ID = " ITEM_CLIENT " "

/* "WHERE true": without it, ON would be read as a join's. */
#define CLAIM_MANY_SQLOCK                                                      \
    INSERT_SQLOCK "SELECT " ITEM_KEY ", {2}, " ITEM_CLIENT ", sqlock_now(), "  \
                  "sqlock_now() + " ITEM_TTL ", sqlock_now(), " ITEM_NAME      \
                  ", " ITEM_HOLDER " FROM " ITEMS                              \
                  " WHERE true " ON_CONFLICT_SQLOCK(OVER) "LOCK_KEY, FENCE"

#define CLAIM_MANY_SPRING7                                                     \
    INSERT_SPRING7                                                             \
    "SELECT " ITEM_KEY ", {2}, " ITEM_CLIENT ", sqlock_now(), "                \
    "sqlock_now() + " ITEM_TTL " FROM " ITEMS                                  \
    " WHERE true " ON_CONFLICT_SPRING7(OVER) "LOCK_KEY, CREATED_DATE"

#define CLAIM_MANY_SPRING6                                                     \
    INSERT_SPRING6 "SELECT " ITEM_KEY ", {2}, " ITEM_CLIENT                    \
                   ", sqlock_now() + " ITEM_TTL " - {5} FROM " ITEMS           \
                   " WHERE true " ON_CONFLICT_SPRING6(                         \
                       SPRING6_OVER) "LOCK_KEY, sqlock_now()"

#define RENEW_MANY_EXPIRED_AFTER                                               \
    "UPDATE {table} AS t SET EXPIRED_AFTER = sqlock_now() + " ITEM_TTL         \
    " FROM " ITEMS " " WHERE_ITEM_OWN "AND t.EXPIRED_AFTER >= sqlock_now() "   \
    "RETURNING LOCK_KEY, sqlock_now()"

#define RENEW_MANY_SPRING6                                                     \
    "UPDATE {table} AS t SET CREATED_DATE = sqlock_now() + " ITEM_TTL          \
    " - {5} FROM " ITEMS " " WHERE_ITEM_OWN                                    \
    "AND t.CREATED_DATE + {5} >= sqlock_now() "                                \
    "RETURNING LOCK_KEY, sqlock_now()"

#define RELEASE_MANY_SQLOCK                                                    \
    "UPDATE {table} AS t SET CLIENT_ID = NULL, HOLDER = NULL, "                \
    "EXPIRED_AFTER = sqlock_now() - 1 FROM " ITEMS " " WHERE_ITEM_OWN          \
    "RETURNING LOCK_KEY"

#define RELEASE_MANY_SPRING                                                    \
    "DELETE FROM {table} WHERE (LOCK_KEY, REGION, CLIENT_ID) IN "              \
    "(SELECT " ITEM_KEY ", {2}, " ITEM_CLIENT " FROM " ITEMS ") "              \
    "RETURNING LOCK_KEY"

#define WHERE_MANY                                                             \
    "WHERE REGION = {2} AND LOCK_KEY IN (SELECT " ITEM_KEY " FROM " ITEMS ")"

/* --------------------------------------------------------------- several -- */

#define RELEASE_SPRING "DELETE FROM {table} " WHERE_ROW "AND CLIENT_ID = {3}"

#define BREAK_NOW_SPRING7                                                      \
    "DELETE FROM {table} " WHERE_ROW "AND CLIENT_ID = {9} "                    \
    "AND EXPIRED_AFTER >= sqlock_now()"
#define BREAK_NOW_SPRING6                                                      \
    "DELETE FROM {table} " WHERE_ROW "AND CLIENT_ID = {9} "                    \
    "AND CREATED_DATE + {5} >= sqlock_now()"

#define LIST_TAIL WHERE_REGION "ORDER BY LOCK_KEY LIMIT {4}"

#define REAP_BOUND                                                             \
    "SELECT max(LOCK_KEY) FROM (SELECT LOCK_KEY FROM {table} " WHERE_REGION    \
    "ORDER BY LOCK_KEY LIMIT {4})"

#define SERVER                                                                 \
    "SELECT sqlock_readonly(), sqlock_now(), 'SQLite ' || sqlite_version()"

/* Only the main database is ever looked at: nothing attaches another. */
#define DESCRIBE                                                               \
    "SELECT upper(c.name), lower(c.type), "                                    \
    "CASE WHEN c.\"notnull\" THEN 0 ELSE 1 END, c.pk, "                        \
    "CASE WHEN s.type = 'view' THEN 'a view' "                                 \
    "WHEN upper(s.sql) LIKE 'CREATE VIRTUAL %' THEN 'a virtual table' END "    \
    "FROM main.sqlite_schema AS s "                                            \
    "JOIN pragma_table_xinfo(s.name, 'main') AS c "                            \
    "WHERE s.type IN ('table', 'view') AND lower(s.name) = lower({1}) "        \
    "AND lower(coalesce({2}, 'main')) = 'main' ORDER BY c.cid"

/* SQLite keeps any type's name: those that Spring's and our own schemas for the
 * other databases give to text are as good.  Times must be integers; what a
 * TIMESTAMP column holds is anybody's guess. */
#define TEXT_TYPES "text|char(*)|varchar(*)|character(*)|nvarchar(*)"
#define INTEGER_TYPES "integer|bigint|int|int8"

static const sqlock_column columns[] = {
    {"LOCK_KEY", TEXT_TYPES},
    {"REGION", TEXT_TYPES},
    {"CLIENT_ID", TEXT_TYPES},
    {"CREATED_DATE", INTEGER_TYPES},
    {"EXPIRED_AFTER", INTEGER_TYPES},
    {"FENCE", INTEGER_TYPES},
    {"LOCK_NAME", TEXT_TYPES},
    {"HOLDER", TEXT_TYPES},
    {NULL, NULL},
};

const sqlock_dialect lk_dialect_sqlite = {
    .placeholder = SQLOCK_PLACEHOLDER_QUESTION,
    .quote = '"',
    .folds_to_lower = false,
    .identifier_max = 200,
    .columns = columns,
    .done = lk_sql_sqlite_done,
    .schema =
        {
            [SQLOCK_LAYOUT_SQLOCK] = lk_sql_sqlite_schema,
            [SQLOCK_LAYOUT_SPRING7] = lk_sql_sqlite_schema_spring7,
            [SQLOCK_LAYOUT_SPRING6] = lk_sql_sqlite_schema_spring6,
        },
    .statements =
        {
            [SQLOCK_LAYOUT_SQLOCK] =
                {
                    [SQLOCK_SQL_CLAIM] = {.text = CLAIM_SQLOCK(OVER)},
                    [SQLOCK_SQL_CLAIM_OBSERVED] = {.text =
                                                       CLAIM_SQLOCK(OBSERVED)},
                    [SQLOCK_SQL_RENEW] = {.text = RENEW_EXPIRED_AFTER},
                    [SQLOCK_SQL_RELEASE] = {.text = RELEASE_SQLOCK},
                    [SQLOCK_SQL_READ] = {.text = INFO_SQLOCK WHERE_ROW},
                    [SQLOCK_SQL_LIST] = {.text = INFO_SQLOCK LIST_TAIL},
                    [SQLOCK_SQL_BREAK] = {.text = BREAK_SQLOCK},
                    [SQLOCK_SQL_BREAK_NOW] = {.text = BREAK_NOW_SQLOCK},
                    [SQLOCK_SQL_REAP_BOUND] = {.text = REAP_BOUND},
                    [SQLOCK_SQL_REAP] = {.text = REAP_SQLOCK},
                    [SQLOCK_SQL_SERVER] = {.text = SERVER},
                    [SQLOCK_SQL_DESCRIBE] = {.text = DESCRIBE},
                    [SQLOCK_SQL_CLAIM_MANY] = {.text = CLAIM_MANY_SQLOCK},
                    [SQLOCK_SQL_RENEW_MANY] = {.text =
                                                   RENEW_MANY_EXPIRED_AFTER},
                    [SQLOCK_SQL_RELEASE_MANY] = {.text = RELEASE_MANY_SQLOCK},
                    [SQLOCK_SQL_READ_MANY] = {.text = INFO_SQLOCK WHERE_MANY},
                    [SQLOCK_SQL_HAND_OVER] = {.text = HAND_OVER_SQLOCK},
                    [SQLOCK_SQL_AFTER_RESTORE] = {.text = AFTER_RESTORE_SQLOCK},
                    /* One lock for the whole file: there is no row to pass over. */
                    [SQLOCK_SQL_LOCK_MANY] = {.text = NULL},
                },
            [SQLOCK_LAYOUT_SPRING7] =
                {
                    [SQLOCK_SQL_CLAIM] = {.text = CLAIM_SPRING7(OVER)},
                    [SQLOCK_SQL_CLAIM_OBSERVED] = {.text =
                                                       CLAIM_SPRING7(OBSERVED)},
                    [SQLOCK_SQL_RENEW] = {.text = RENEW_EXPIRED_AFTER},
                    [SQLOCK_SQL_RELEASE] = {.text = RELEASE_SPRING},
                    [SQLOCK_SQL_READ] = {.text = INFO_SPRING7 WHERE_ROW},
                    [SQLOCK_SQL_LIST] = {.text = INFO_SPRING7 LIST_TAIL},
                    [SQLOCK_SQL_BREAK] = {.text = BREAK_SPRING7},
                    [SQLOCK_SQL_BREAK_NOW] = {.text = BREAK_NOW_SPRING7},
                    [SQLOCK_SQL_REAP_BOUND] = {.text = REAP_BOUND},
                    [SQLOCK_SQL_REAP] = {.text = REAP_SPRING7},
                    [SQLOCK_SQL_SERVER] = {.text = SERVER},
                    [SQLOCK_SQL_DESCRIBE] = {.text = DESCRIBE},
                    [SQLOCK_SQL_CLAIM_MANY] = {.text = CLAIM_MANY_SPRING7},
                    [SQLOCK_SQL_RENEW_MANY] = {.text =
                                                   RENEW_MANY_EXPIRED_AFTER},
                    [SQLOCK_SQL_RELEASE_MANY] = {.text = RELEASE_MANY_SPRING},
                    [SQLOCK_SQL_READ_MANY] = {.text = INFO_SPRING7 WHERE_MANY},
                    [SQLOCK_SQL_HAND_OVER] = {.text = HAND_OVER_SPRING7},
                    [SQLOCK_SQL_AFTER_RESTORE] = {.text = AFTER_RESTORE_SPRING},
                    /* One lock for the whole file: there is no row to pass over. */
                    [SQLOCK_SQL_LOCK_MANY] = {.text = NULL},
                },
            [SQLOCK_LAYOUT_SPRING6] =
                {
                    [SQLOCK_SQL_CLAIM] = {.text = CLAIM_SPRING6(SPRING6_OVER)},
                    [SQLOCK_SQL_CLAIM_OBSERVED] = {.text = CLAIM_SPRING6(
                                                       SPRING6_OBSERVED)},
                    [SQLOCK_SQL_RENEW] = {.text = RENEW_SPRING6},
                    [SQLOCK_SQL_RELEASE] = {.text = RELEASE_SPRING},
                    [SQLOCK_SQL_READ] = {.text = INFO_SPRING6 WHERE_ROW},
                    [SQLOCK_SQL_LIST] = {.text = INFO_SPRING6 LIST_TAIL},
                    [SQLOCK_SQL_BREAK] = {.text = BREAK_SPRING6},
                    [SQLOCK_SQL_BREAK_NOW] = {.text = BREAK_NOW_SPRING6},
                    [SQLOCK_SQL_REAP_BOUND] = {.text = REAP_BOUND},
                    [SQLOCK_SQL_REAP] = {.text = REAP_SPRING6},
                    [SQLOCK_SQL_SERVER] = {.text = SERVER},
                    [SQLOCK_SQL_DESCRIBE] = {.text = DESCRIBE},
                    [SQLOCK_SQL_CLAIM_MANY] = {.text = CLAIM_MANY_SPRING6},
                    [SQLOCK_SQL_RENEW_MANY] = {.text = RENEW_MANY_SPRING6},
                    [SQLOCK_SQL_RELEASE_MANY] = {.text = RELEASE_MANY_SPRING},
                    [SQLOCK_SQL_READ_MANY] = {.text = INFO_SPRING6 WHERE_MANY},
                    [SQLOCK_SQL_HAND_OVER] = {.text = HAND_OVER_SPRING6},
                    [SQLOCK_SQL_AFTER_RESTORE] = {.text = AFTER_RESTORE_SPRING},
                    /* One lock for the whole file: there is no row to pass over. */
                    [SQLOCK_SQL_LOCK_MANY] = {.text = NULL},
                },
        },
    .examination = &lk_examination_sqlite,
};
