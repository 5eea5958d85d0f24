/*
 * stock.c - the SQL about stock of MySQL and MariaDB (sql/mysql)
 */
#include "drivers/mysql/connection.h"

/* The build makes it of sql/mysql. */
extern const struct lk_sql lk_sql_mysql_stock_statements[];

/* clang-format off */
/* The greatest value of each type.  A server without a strict sql_mode stores
   that instead of a greater one, with a warning only. */
static const sqlock_integer_type integers[] = {
    {"tinyint*unsigned*", 255},        {"tinyint*", 127},
    {"smallint*unsigned*", 65535},     {"smallint*", 32767},
    {"mediumint*unsigned*", 16777215}, {"mediumint*", 8388607},
    {"int*unsigned*", 4294967295},     {"int*", 2147483647},
    {"bigint*", INT64_MAX},            {NULL, 0},
};
/* clang-format on */

const sqlock_stock_dialect lk_mysql_stock = {
    .add_age_index = "ALTER TABLE INT_STOCK_ENTRY "
                     "ADD KEY (CREATED_AT, ORDER_ID, LINE);\n",
    .integers = integers,
    .statements = lk_sql_mysql_stock_statements,
};
