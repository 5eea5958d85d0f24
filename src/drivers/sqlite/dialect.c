/*
 * dialect.c - SQLite's SQL for the lock table, where it differs from the shared
 * SQL (src/db/lock_sql.c)
 *
 * All times are INTEGER microseconds UTC; sqlock_now() (functions.c) is the
 * same throughout a statement.  Outside a transaction, an INSERT .. ON CONFLICT
 * takes the file's write lock before it reads anything; if the statement had to
 * wait, SQLite starts it again on the newest state.  So the statement never
 * fails with SQLITE_BUSY_SNAPSHOT.
 */
#include "drivers/sqlite/sqlite.h"

extern const char lk_sql_sqlite_schema[];
extern const char lk_sql_sqlite_doctor[];
extern const char lk_sql_sqlite_once[];
extern const char lk_sql_sqlite_stock[];
extern const char lk_sql_sqlite_schema_spring7[];
extern const char lk_sql_sqlite_schema_spring6[];

/* clang-format off */
static const sqlock_fragment fragments[] = {
    {"now", "sqlock_now()"},
    {"peer_ttl", "CASE WHEN substr({it}CLIENT_ID, 15, 1) = '8' "
                 "AND substr({it}CLIENT_ID, 28) NOT GLOB '*[^0-9]*' "
                 "THEN substr({it}CLIENT_ID, 28) * 1000 ELSE {5} END"},
    {"us", "{it}"},
    {"in_us", "{it}"},
    {"greatest", "max"},
    {"least", "min"},
    {"freed", "EXPIRED_AFTER = {now} - 1"},

    /* For statements about many locks: {1} is a JSON array of objects.  Each
     * row is found by the primary key. */
    {"items", "json_each({1}) AS j"},
    {"of_item", "json_extract(j.value, '$.{it}')"},
    {"is_own_item",
     "t.LOCK_KEY = {of_item k} AND t.REGION = {2} "
     "AND t.CLIENT_ID = {of_item c}"},
    /* "WHERE true": without it, ON CONFLICT would be parsed as a join's ON. */
    {"born_items",
     "(SELECT {of_item k} AS k, {of_item c} AS c, {of_item t} AS t, "
     "{of_item n} AS n, {of_item h} AS h, {born} AS born FROM {items}) AS J "
     "WHERE true"},
    {NULL, NULL},
};

static const sqlock_fragment ours[] = {
    {"granted", ", sqlock_enqueue({0})"},
    {"last_holder", "coalesce(sqlock_notify({0}), HOLDER)"},
    {"release_items",
     "UPDATE {table} AS t SET CLIENT_ID = NULL, {freed} "
     "FROM {items} WHERE {is_own_item}"},
    {NULL, NULL},
};

static const sqlock_fragment spring[] = {
    {"release_items",
     "DELETE FROM {table} WHERE (LOCK_KEY, REGION, CLIENT_ID) IN "
     "(SELECT {of_item k}, {2}, {of_item c} FROM {items})"},
    {NULL, NULL},
};
/* clang-format on */

#define SERVER                                                                 \
    "SELECT sqlock_readonly(), {now_us}, 'SQLite ' || sqlite_version()"

/* The present time, for programs that lack sqlock_now().  'now' is truncated to
 * ms.  One ms is added, so that no expired lease seems to be running. */
#define PLAIN_NOW                                                              \
    "(CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) "    \
    "* 1000 + 1000)"

/* Only the schema "main" is searched: the driver attaches no other database. */
#define DESCRIBE                                                               \
    "SELECT upper(c.name), lower(c.type), "                                    \
    "CASE WHEN c.\"notnull\" THEN 0 ELSE 1 END, c.pk, "                        \
    "CASE WHEN s.type = 'view' THEN 'a view' "                                 \
    "WHEN upper(s.sql) LIKE 'CREATE VIRTUAL %' THEN 'a virtual table' END, "   \
    "nullif(sqlock_collation(s.name, c.name), 'BINARY'), 'main' "              \
    "FROM main.sqlite_schema AS s "                                            \
    "JOIN pragma_table_xinfo(s.name, 'main') AS c "                            \
    "WHERE s.type IN ('table', 'view') AND lower(s.name) = lower({1}) "        \
    "AND lower(coalesce({2}, 'main')) = 'main' ORDER BY c.cid"

/* A column may have any type's name in SQLite, so the names that Spring's and
 * our own schemas for other databases use for text are accepted, too.  Times
 * must be integers: the name TIMESTAMP does not say what a column holds. */
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
    .schema =
        {
            [SQLOCK_LAYOUT_SQLOCK] = lk_sql_sqlite_schema,
            [SQLOCK_LAYOUT_SPRING7] = lk_sql_sqlite_schema_spring7,
            [SQLOCK_LAYOUT_SPRING6] = lk_sql_sqlite_schema_spring6,
            [SQLOCK_SCHEMA_DONE] = lk_sql_sqlite_once,
            [SQLOCK_SCHEMA_STOCK] = lk_sql_sqlite_stock,
        },
    .fragments = fragments,
    .layout_fragments =
        {
            [SQLOCK_LAYOUT_SQLOCK] = ours,
            [SQLOCK_LAYOUT_SPRING7] = spring,
            [SQLOCK_LAYOUT_SPRING6] = spring,
        },
    /* No SQLOCK_SQL_LOCK_MANY: SQLite locks the whole file, not rows. */
    .statements =
        {
            [SQLOCK_SQL_SERVER] = {.text = SERVER},
            [SQLOCK_SQL_DESCRIBE] = {.text = DESCRIBE},
            /* A session waits for the byte of a queue, whose number is even,
             * or for the byte after it (queue.c). */
            [SQLOCK_SQL_WAITERS] =
                {.text =
                     "SELECT value & ~1, NULL FROM json_each(sqlock_waiters())",
                 .layouts = 1 << SQLOCK_LAYOUT_SQLOCK},
            /* An INSERT has the file's write lock from its start.  The text is
             * no JSON path: json_extract() fails, and its error shows it. */
            [SQLOCK_SQL_GUARD] =
                {.text = "INSERT INTO {table} (LOCK_KEY) SELECT "
                         "json_extract('[]', 'sqlock: the lease is over') "
                         "WHERE NOT EXISTS "
                         "(SELECT 1 FROM {table} WHERE {is_guarded})",
                 .with = (const sqlock_fragment[]){{"now", PLAIN_NOW},
                                                   {NULL, NULL}}},
            [SQLOCK_SQL_RENEW_MANY] =
                {.text = "UPDATE {table} AS t SET {renew {of_item t}} "
                         "FROM {items} WHERE {is_own_item} "
                         "AND {ends t.} >= {now} RETURNING LOCK_KEY, {now_us}"},
            [SQLOCK_SQL_RELEASE_MANY] = {.text = "{release_items} "
                                                 "RETURNING LOCK_KEY"},
            [SQLOCK_SQL_READ_MANY] =
                {.text = "{info} FROM {table} WHERE REGION = {2} AND LOCK_KEY "
                         "IN (SELECT {of_item k} FROM {items})"},
        },
    .doctor = lk_sql_sqlite_doctor,
};
