/*
 * stock.c - the SQL about stock of PostgreSQL, where it differs from the shared
 * SQL (src/stock/sql/sql.c)
 */
#include "drivers/postgres/session.h"

/* clang-format off */
static const sqlock_fragment fragments[] = {
    {"time", "timestamp 'epoch' + {us {it}}"}, /* of us since 1970 */
    /* A subquery is evaluated once, so an index can be used. */
    {"once", "(SELECT {it})"},
    {"as_number", "{it}::int"},
    /* Lets others insert rows whose foreign key refers to the item. */
    {"locked", " FOR NO KEY UPDATE"},
    {"orders", "SELECT json_array_elements_text({4}::json)"},
    {"entries", "json_to_recordset({4}::json) AS J (o varchar, l int, "
                "i varchar, k varchar, q bigint, d bigint, s varchar, "
                "b bigint)"},
    {"by_order", " ORDER BY J.o, J.l"},
    {"sum_in_buckets", "coalesce((SELECT sum(C.QUANTITY) FROM {bucket} AS C "
                       "WHERE C.ITEM = {it}), 0)::bigint"},
    {"left_in_buckets", " RETURNING ({total_of_item}) - {2}"},
    /* A deduction, and the insertion of entries with what remains. */
    {"and_record",
     "WITH U AS ({it} AS remains), E AS ({insert_entries}U.remains + J.b, "
     "{now} FROM U, {entries}) SELECT remains FROM U"},
    {NULL, NULL},
};

static const sqlock_integer_type integers[] = {
    {"smallint", 32767}, {"integer", 2147483647}, {"bigint", INT64_MAX},
    {NULL, 0},
};

const sqlock_stock_dialect lk_pg_stock = {
    .has_age_index =
        "SELECT 1 FROM pg_catalog.pg_index I "
        "JOIN pg_catalog.pg_class C ON C.oid = I.indrelid "
        "JOIN pg_catalog.pg_attribute A ON A.attrelid = C.oid "
        "AND A.attnum = I.indkey[0] AND A.attname = 'created_at' "
        "WHERE I.indisvalid AND C.relname = {1}::varchar AND CASE "
        "WHEN {2}::varchar IS NULL THEN pg_catalog.pg_table_is_visible(C.oid) "
        "ELSE C.relnamespace = (SELECT N.oid FROM pg_catalog.pg_namespace N "
        "WHERE N.nspname = {2}::varchar) END LIMIT 1",
    .add_age_index =
        "CREATE INDEX ON INT_STOCK_ENTRY (CREATED_AT, ORDER_ID, LINE);\n",
    .fragments = fragments,
    .integers = integers,
    .statements = {
        [SQLOCK_STOCK_SQL_COMBINE] = {.text = "{and_record {deduct}}"},
        [SQLOCK_STOCK_SQL_BUCKET_COMBINE] = {.text =
            "{and_record {bucket_deduct}{left_in_buckets}}"},
        [SQLOCK_STOCK_SQL_SPREAD] = {.text =
            "INSERT INTO {bucket} (ITEM, BUCKET, QUANTITY) "
            "SELECT {text {5}}, J.b, J.q "
            "FROM json_to_recordset({4}::json) AS J (b int, q bigint) "
            "ORDER BY J.b ON CONFLICT (ITEM, BUCKET) "
            "DO UPDATE SET QUANTITY = EXCLUDED.QUANTITY"},
    },
};
/* clang-format on */
