/*
 * stock.c - the SQL about stock of MySQL and MariaDB, where it differs from the
 * shared SQL (src/stock/sql/sql.c)
 *
 * Only SQL that both servers understand is used: no RETURNING, so the remaining
 * quantity is returned in the insert id; and no statement that writes to two
 * tables, so orders are inserted by a separate statement.
 */
#include "drivers/mysql/connection.h"

/* clang-format off */
#define BINARY "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"

static const sqlock_fragment fragments[] = {
    {"time", "{date {it}}"}, /* of us since 1970 */
    {"or_nothing", "ON DUPLICATE KEY UPDATE {it} = {it}"},
    {"orders",
     "JSON_TABLE({4}, '$[*]' COLUMNS (o VARCHAR(190) " BINARY " PATH '$')) J"},
    {"is_of_order", "ORDER_ID = JSON_UNQUOTE(JSON_QUOTE(J.o))"},
    {"entries",
     "JSON_TABLE({4}, '$[*]' COLUMNS (o VARCHAR(190) " BINARY " PATH '$.o', "
     "l INTEGER PATH '$.l', i VARCHAR(190) " BINARY " PATH '$.i', "
     "k VARCHAR(1) " BINARY " PATH '$.k', q BIGINT PATH '$.q', "
     "d BIGINT PATH '$.d', s VARCHAR(1) " BINARY " PATH '$.s', "
     "b BIGINT PATH '$.b')) J"},
    {"entries_of_orders", "{orders} STRAIGHT_JOIN {entry} AS E "
                          "FORCE INDEX (PRIMARY) ON {is_of_order}"},
    {"delete_of_orders", "DELETE T FROM {orders} STRAIGHT_JOIN {it} AS T "
                         "FORCE INDEX (PRIMARY) ON {is_of_order} WHERE "},
    /* With OF E, MySQL does not try to lock `J`.  MariaDB has no such clause,
       and skips comments for this version of MySQL. */
    {"shared", " /*M! LOCK IN SHARE MODE */ /*!80001 FOR SHARE OF E */"},
    {"sum_in_buckets",
     "CAST(coalesce((SELECT sum(C.QUANTITY) FROM {bucket} AS C "
     "WHERE C.ITEM = {it}), 0) AS SIGNED)"},
    {NULL, NULL},
};

/* The greatest value of each type.  A server without a strict sql_mode stores
   that instead of a greater one, with a warning only. */
static const sqlock_integer_type integers[] = {
    {"tinyint*unsigned*", 255},        {"tinyint*", 127},
    {"smallint*unsigned*", 65535},     {"smallint*", 32767},
    {"mediumint*unsigned*", 16777215}, {"mediumint*", 8388607},
    {"int*unsigned*", 4294967295},     {"int*", 2147483647},
    {"bigint*", INT64_MAX},            {NULL, 0},
};

const sqlock_stock_dialect lk_mysql_stock = {
    .has_age_index =
        "SELECT 1 FROM information_schema.STATISTICS "
        "WHERE TABLE_SCHEMA = COALESCE({2}, DATABASE()) AND TABLE_NAME = {1} "
        "AND COLUMN_NAME = 'CREATED_AT' AND SEQ_IN_INDEX = 1 LIMIT 1",
    .add_age_index = "ALTER TABLE INT_STOCK_ENTRY "
                     "ADD KEY (CREATED_AT, ORDER_ID, LINE);\n",
    .fragments = fragments,
    .integers = integers,
    .statements = {
        [SQLOCK_STOCK_SQL_DEDUCT] = {.insert_id = SQLOCK_INSERT_ID_ROW},
        [SQLOCK_STOCK_SQL_RESTORE] = {.insert_id = SQLOCK_INSERT_ID_ROW},
        [SQLOCK_STOCK_SQL_SPREAD] = {.text =
            "INSERT INTO {bucket} (ITEM, BUCKET, QUANTITY) "
            "SELECT {5}, J.b, J.q FROM JSON_TABLE({4}, '$[*]' COLUMNS "
            "(b INTEGER PATH '$.b', q BIGINT PATH '$.q')) J "
            "ON DUPLICATE KEY UPDATE QUANTITY = J.q"},
    },
};
/* clang-format on */
