/*
 * stock.c - PostgreSQL's SQL about stock (sql/postgres)
 */
#include "drivers/postgres/session.h"

/* The build makes it of sql/postgres. */
extern const struct lk_sql lk_sql_postgres_stock_statements[];

static const sqlock_integer_type integers[] = {
    {"smallint", 32767},
    {"integer", 2147483647},
    {"bigint", INT64_MAX},
    {NULL, 0},
};

const sqlock_stock_dialect lk_pg_stock = {
    .add_age_index =
        "CREATE INDEX ON INT_STOCK_ENTRY (CREATED_AT, ORDER_ID, LINE);\n",
    .integers = integers,
    .statements = lk_sql_postgres_stock_statements,
};
