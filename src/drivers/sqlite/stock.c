/*
 * stock.c - the SQL about stock of SQLite, where it differs from the shared SQL
 * (src/stock/sql/sql.c)
 *
 * SQLite has one writer at a time, so rows that a writing transaction has read
 * do not change before its end, and need not be locked.  The entries of an
 * order are recorded by a statement of their own: there is no COMBINE.
 */
#include "drivers/sqlite/connection.h"

/* clang-format off */
static const sqlock_fragment fragments[] = {
    {"time", "{it}"},
    {"locked", ""},
    {"of_row", "json_extract(J.value, '$.{it}')"},
    {"orders", "SELECT J.value FROM json_each({4}) AS J"},
    /* "WHERE true": without it, ON CONFLICT would be parsed as a join's ON. */
    {"entries",
     "(SELECT {of_row o} AS o, {of_row l} AS l, {of_row i} AS i, "
     "{of_row k} AS k, {of_row q} AS q, {of_row d} AS d, {of_row s} AS s, "
     "{of_row b} AS b FROM json_each({4}) AS J) AS J WHERE true"},
    {NULL, NULL},
};

/* An integer column holds 64 bits, however its type is called. */
static const sqlock_integer_type integers[] = {{"*int*", INT64_MAX}, {NULL, 0}};

const sqlock_stock_dialect lk_sqlite_stock = {
    .has_age_index = "SELECT 1 FROM pragma_index_list({1}) AS L, "
                     "pragma_index_info(L.name) AS I "
                     "WHERE I.seqno = 0 AND I.name = 'CREATED_AT' LIMIT 1",
    .add_age_index = "CREATE INDEX IF NOT EXISTS INT_STOCK_ENTRY_AGE "
                     "ON INT_STOCK_ENTRY (CREATED_AT, ORDER_ID, LINE);\n",
    .fragments = fragments,
    .integers = integers,
    .statements = {
        [SQLOCK_STOCK_SQL_SPREAD] = {.text =
            "INSERT INTO {bucket} (ITEM, BUCKET, QUANTITY) "
            "SELECT {5}, {of_row b}, {of_row q} FROM json_each({4}) AS J "
            "WHERE true ON CONFLICT (ITEM, BUCKET) "
            "DO UPDATE SET QUANTITY = excluded.QUANTITY"},
    },
};
/* clang-format on */
