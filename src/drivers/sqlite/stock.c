/*
 * stock.c - the statements about stock in SQLite's SQL.  One writer at a time:
 * what a transaction has read, nobody changes before it ends, so there is
 * nothing to lock; and an order is entered in a statement of its own.
 */
#include "drivers/sqlite/connection.h"

/* The build makes it of sql/sqlite. */
extern const char lk_sql_sqlite_stock[];

/* clang-format off */
#define THIS "ORDER_ID = {3} AND STOCK = {9}"
#define QUANTITY_OF_ITEM "SELECT {quantity} FROM {stock} WHERE {item} = {1}"
#define TOTAL(item)                                                            \
    "T.{quantity} + coalesce((SELECT sum(C.QUANTITY) FROM {bucket} AS C "      \
    "WHERE C.ITEM = " item "), 0)"
#define UPDATE_STOCK "UPDATE {stock} SET {quantity} = "
/* Where a page begins, of rows by a time and their order. */
#define BEHIND(time, more)                                                     \
    time " >= {8} AND (" time " > {8} OR ORDER_ID > {3}" more ")"
#define AGO(us) "sqlock_now() - " us
/* That stay when those are removed which have ended long ago. */
#define KEPT                                                                   \
    "EXISTS (SELECT 1 FROM {reservation} AS R WHERE R.ORDER_ID = E.ORDER_ID "  \
    "AND (R.STATE = 'R' OR R.STOCK <> {9} OR R.EXPIRES_AT > " AGO("{7}") "))"
#define OF_ORDERS                                                              \
    "ORDER_ID IN (SELECT J.value FROM json_each({4}) AS J) "
#define OF(name) "json_extract(J.value, '$." name "')"
#define NAMED(name) OF(name) " AS " name
#define ENTRIES                                                                \
    "(SELECT " NAMED("o") ", " NAMED("l") ", " NAMED("i") ", " NAMED("k") ", " \
    NAMED("q") ", " NAMED("d") ", " NAMED("s") ", " NAMED("b")                 \
    " FROM json_each({4}) AS J) AS J"

/* A column's type limits nothing. */
static const sqlock_integer_type integers[] = {{"*int*", INT64_MAX}, {NULL, 0}};

const sqlock_stock_dialect lk_sqlite_stock = {
    .size = sizeof(sqlock_stock_dialect),
    .schema = lk_sql_sqlite_stock,
    .bump = ", {version} = {version} + 1",
    .in_buckets = "coalesce((SELECT sum(C.QUANTITY) FROM {bucket} AS C "
                  "WHERE C.ITEM = {5}), 0)",
    .integers = integers,
    .statements = {
        [SQLOCK_STOCK_SQL_READ] = { .text = QUANTITY_OF_ITEM },
        [SQLOCK_STOCK_SQL_LOCK] = { .text = QUANTITY_OF_ITEM },
        [SQLOCK_STOCK_SQL_READ_VERSION] = { .text =
            "SELECT {quantity}, {version} FROM {stock} WHERE {item} = {1}" },
        [SQLOCK_STOCK_SQL_DEDUCT] = { .text =
            UPDATE_STOCK "{quantity} - {2}{bump} "
            "WHERE {item} = {1} AND {quantity} >= {2} RETURNING {quantity}" },
        [SQLOCK_STOCK_SQL_SWAP] = { .text =
            UPDATE_STOCK "{quantity} - {2}{bump} "
            "WHERE {item} = {1} AND {version} = {8} AND {quantity} >= {2}" },
        [SQLOCK_STOCK_SQL_RESTORE] = { .text =
            UPDATE_STOCK "{quantity} + {2}{bump} WHERE {item} = {1} "
            "AND {quantity} <= {most} - {2} - {in_buckets} "
            "RETURNING {quantity}" },
        [SQLOCK_STOCK_SQL_ASSIGN] = { .text =
            UPDATE_STOCK "{2}{bump} WHERE {item} = {1}" },
        [SQLOCK_STOCK_SQL_MAKE] = { .text =
            "INSERT INTO {stock} ({item}, {quantity}) VALUES ({1}, 0) "
            "ON CONFLICT DO NOTHING" },
        [SQLOCK_STOCK_SQL_TOTAL] = { .text =
            "SELECT " TOTAL("{5}") " FROM {stock} AS T WHERE T.{item} = {1}" },
        [SQLOCK_STOCK_SQL_LIST] = { .text =
            "SELECT {item}, {quantity} FROM {stock} ORDER BY {item}" },
        [SQLOCK_STOCK_SQL_LIST_TOTAL] = { .text =
            "SELECT T.{item}, " TOTAL("T.{item}") " FROM {stock} AS T "
            "ORDER BY T.{item}" },

        [SQLOCK_STOCK_SQL_RECORD] = { .text =
            "INSERT INTO {entry} (ORDER_ID, LINE, ITEM, KIND, QUANTITY, "
            "DELTA, STATUS, BALANCE, CREATED_AT) SELECT J.o, J.l, J.i, J.k, "
            "J.q, J.d, J.s, J.b, sqlock_now() FROM " ENTRIES " WHERE true "
            "ON CONFLICT DO NOTHING" },
        [SQLOCK_STOCK_SQL_ENTRIES] = { .text =
            "SELECT ORDER_ID, LINE, ITEM, KIND, QUANTITY, STATUS, BALANCE "
            "FROM {entry} WHERE ORDER_ID IN "
            "(SELECT J.value FROM json_each({4}) AS J) "
            "ORDER BY ORDER_ID, LINE" },
        [SQLOCK_STOCK_SQL_UNDO] = { .text =
            "UPDATE {entry} SET STATUS = 'U', DELTA = 0 WHERE ORDER_ID = {3}" },
        [SQLOCK_STOCK_SQL_OLD] = { .text =
            "SELECT E.ORDER_ID, E.CREATED_AT, E.LINE, " KEPT
            " FROM {entry} AS E WHERE E.CREATED_AT <= " AGO("{7}") " AND "
            BEHIND("CREATED_AT", " OR (ORDER_ID = {3} AND LINE > {6})")
            " ORDER BY E.CREATED_AT, E.ORDER_ID, E.LINE LIMIT {2}" },
        [SQLOCK_STOCK_SQL_FORGET_ENTRIES] = { .text =
            "DELETE FROM {entry} WHERE " OF_ORDERS
            "AND CREATED_AT <= " AGO("{7}") },

        [SQLOCK_STOCK_SQL_RESERVE] = { .text =
            "INSERT INTO {reservation} (ORDER_ID, STOCK, STATE, EXPIRES_AT, "
            "CREATED_AT) VALUES ({3}, {9}, 'R', sqlock_now() + {7}, "
            "sqlock_now())" },
        [SQLOCK_STOCK_SQL_CLAIM] = { .text =
            "UPDATE {reservation} SET STATE = 'C', "
            "EXPIRES_AT = sqlock_now() WHERE " THIS
            " AND STATE = 'R' AND EXPIRES_AT > sqlock_now()" },
        [SQLOCK_STOCK_SQL_CANCEL] = { .text =
            "UPDATE {reservation} SET STATE = 'X', "
            "EXPIRES_AT = sqlock_now() WHERE " THIS
            " AND STATE = 'R'" },
        [SQLOCK_STOCK_SQL_LAPSE] = { .text =
            "UPDATE {reservation} SET STATE = 'E', "
            "EXPIRES_AT = sqlock_now() WHERE " THIS
            " AND STATE = 'R' AND EXPIRES_AT <= sqlock_now()" },
        [SQLOCK_STOCK_SQL_LOOK] = { .text =
            "SELECT STATE, EXPIRES_AT - sqlock_now() FROM {reservation} "
            "WHERE " THIS },
        [SQLOCK_STOCK_SQL_DUE] = { .text =
            "SELECT ORDER_ID, EXPIRES_AT FROM {reservation} WHERE STOCK = {9} "
            "AND STATE = {5} AND EXPIRES_AT <= " AGO("{7}")
            " AND " BEHIND("EXPIRES_AT", "")
            " ORDER BY EXPIRES_AT, ORDER_ID LIMIT {2}" },
        [SQLOCK_STOCK_SQL_FORGET_RESERVATIONS] = { .text =
            "DELETE FROM {reservation} WHERE " OF_ORDERS
            "AND STOCK = {9} AND STATE <> 'R' "
            "AND EXPIRES_AT <= " AGO("{7}") },

        [SQLOCK_STOCK_SQL_BUCKET_DEDUCT] = { .text =
            "UPDATE {bucket} SET QUANTITY = QUANTITY - {2} WHERE ITEM = {5} "
            "AND BUCKET = {6} AND QUANTITY >= {2}" },
        [SQLOCK_STOCK_SQL_BUCKETS] = { .text =
            "SELECT BUCKET, QUANTITY FROM {bucket} WHERE ITEM = {5} "
            "ORDER BY BUCKET" },
        [SQLOCK_STOCK_SQL_SPREAD] = { .text =
            "INSERT INTO {bucket} (ITEM, BUCKET, QUANTITY) "
            "SELECT {5}, " OF("b") ", " OF("q") " FROM json_each({4}) AS J "
            "WHERE true ON CONFLICT (ITEM, BUCKET) "
            "DO UPDATE SET QUANTITY = excluded.QUANTITY" },
    },
};
/* clang-format on */
