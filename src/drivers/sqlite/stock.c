/*
 * stock.c - SQLite's SQL about stock (sql/sqlite)
 */
#include "drivers/sqlite/connection.h"

/* The build makes it of sql/sqlite. */
extern const struct lk_sql lk_sql_sqlite_stock_statements[];

/* An integer column holds 64 bits, however its type is called. */
static const sqlock_integer_type integers[] = {{"*int*", INT64_MAX}, {NULL, 0}};

const sqlock_stock_dialect lk_sqlite_stock = {
    .add_age_index = "CREATE INDEX IF NOT EXISTS INT_STOCK_ENTRY_AGE "
                     "ON INT_STOCK_ENTRY (CREATED_AT, ORDER_ID, LINE);\n",
    .integers = integers,
    .statements = lk_sql_sqlite_stock_statements,
};
