/*
 * stock.c - the SQL about stock that PostgreSQL gets
 *
 * A statement that waits for a row reads its newest version afterwards, but
 * everything else as it was when it began: so an order that another session has
 * entered meanwhile is found by the primary key of the entries alone, never by a
 * look at them in the same statement.
 */
#include "drivers/postgres/session.h"

/* The build makes it of sql/postgres. */
extern const char lk_sql_postgres_stock[];

/* clang-format off */
#define THIS "ORDER_ID = {3} AND STOCK = {9}"
#define NOW "(clock_timestamp() AT TIME ZONE 'UTC')"
#define SINCE_EPOCH(time) "(extract(epoch FROM " time ") * 1000000)::bigint"
#define AT(us) "timestamp 'epoch' + (" us ") * interval '1 microsecond'"
/* Read once: for all rows of an order, and so that an index can be used. */
#define ONCE "(SELECT " NOW ")"
#define AGO(us) "(SELECT " NOW " - (" us ") * interval '1 microsecond')"
/* Where a page begins, of rows by a time and their order. */
#define BEHIND(time, more)                                                     \
    time " >= " AT("{8}") " AND (" time " > " AT("{8}") " OR ORDER_ID > {3}"   \
    more ")"
/* That stay when those are removed which have ended long ago. */
#define KEPT                                                                   \
    "EXISTS (SELECT 1 FROM {reservation} AS R WHERE R.ORDER_ID = E.ORDER_ID "  \
    "AND (R.STATE = 'R' OR R.STOCK <> {9} OR R.EXPIRES_AT > " AGO("{7}") "))"  \
    "::int"
#define OF_ORDERS "ORDER_ID IN (SELECT json_array_elements_text({4}::json)) "
#define LATER(us) NOW " + (" us ") * interval '1 microsecond'"
#define REMAINING "(extract(epoch FROM EXPIRES_AT - " NOW ") * 1000000)::bigint"

#define QUANTITY_OF_ITEM "SELECT {quantity} FROM {stock} WHERE {item} = {1}"
/* Foreign keys may refer to the item meanwhile. */
#define LOCKED " FOR NO KEY UPDATE"

#define ENOUGH "{quantity} >= {2}"
#define TAKE                                                                   \
    "UPDATE {stock} SET {quantity} = {quantity} - {2}{bump}"                   \
    " WHERE {item} = {1} AND " ENOUGH " RETURNING {quantity}"

#define ENTRY_COLUMNS                                                          \
    "INSERT INTO {entry} (ORDER_ID, LINE, ITEM, KIND, QUANTITY, DELTA, "       \
    "STATUS, BALANCE, CREATED_AT) SELECT J.o, J.l, J.i, J.k, J.q, J.d, J.s, "
#define ENTRIES                                                                \
    "json_to_recordset({4}::json) AS J (o varchar, l int, i varchar, "         \
    "k varchar, q bigint, d bigint, s varchar, b bigint)"
#define ENTER                                                                  \
    "E AS (" ENTRY_COLUMNS "U.remains + J.b, " NOW " FROM U, " ENTRIES ") "    \
    "SELECT remains FROM U"

#define IN_BUCKETS(item)                                                       \
    "coalesce((SELECT sum(C.QUANTITY) FROM {bucket} AS C "                     \
    "WHERE C.ITEM = " item "), 0)::bigint"
#define TOTAL                                                                  \
    "SELECT T.{quantity} + " IN_BUCKETS("{5}") " FROM {stock} AS T "        \
    "WHERE T.{item} = {1}"
#define TAKE_FROM_BUCKET                                                       \
    "UPDATE {bucket} SET QUANTITY = QUANTITY - {2} WHERE ITEM = {5} "          \
    "AND BUCKET = {6} AND QUANTITY >= {2} "                                    \
    "RETURNING (" TOTAL ") - {2}"

static const sqlock_integer_type integers[] = {
    {"smallint", 32767}, {"integer", 2147483647}, {"bigint", INT64_MAX},
    {NULL, 0},
};

const sqlock_stock_dialect lk_pg_stock = {
    .size = sizeof(sqlock_stock_dialect),
    .schema = lk_sql_postgres_stock,
    .bump = ", {version} = {version} + 1",
    .in_buckets = IN_BUCKETS("{5}"),
    .integers = integers,
    .statements = {
        [SQLOCK_STOCK_SQL_READ] = { .text = QUANTITY_OF_ITEM },
        [SQLOCK_STOCK_SQL_LOCK] = { .text = QUANTITY_OF_ITEM LOCKED },
        [SQLOCK_STOCK_SQL_READ_VERSION] = { .text =
            "SELECT {quantity}, {version} FROM {stock} "
            "WHERE {item} = {1}" },
        [SQLOCK_STOCK_SQL_DEDUCT] = { .text = TAKE },
        [SQLOCK_STOCK_SQL_SWAP] = { .text =
            "UPDATE {stock} SET {quantity} = {quantity} - {2}{bump} "
            "WHERE {item} = {1} AND {version} = {8} AND " ENOUGH },
        [SQLOCK_STOCK_SQL_RESTORE] = { .text =
            "UPDATE {stock} SET {quantity} = {quantity} + {2}{bump} "
            "WHERE {item} = {1} "
            "AND {quantity} <= {most} - {2} - {in_buckets} "
            "RETURNING {quantity}" },
        [SQLOCK_STOCK_SQL_ASSIGN] = { .text =
            "UPDATE {stock} SET {quantity} = {2}{bump} "
            "WHERE {item} = {1}" },
        [SQLOCK_STOCK_SQL_MAKE] = { .text =
            "INSERT INTO {stock} ({item}, {quantity}) VALUES ({1}, 0) "
            "ON CONFLICT DO NOTHING" },
        [SQLOCK_STOCK_SQL_TOTAL] = { .text = TOTAL },
        [SQLOCK_STOCK_SQL_LIST] = { .text =
            "SELECT {item}, {quantity} FROM {stock} "
            "ORDER BY {item}" },
        [SQLOCK_STOCK_SQL_LIST_TOTAL] = { .text =
            "SELECT T.{item}, T.{quantity} + " IN_BUCKETS("T.{item}")
            " FROM {stock} AS T ORDER BY T.{item}" },

        [SQLOCK_STOCK_SQL_RECORD] = { .text =
            ENTRY_COLUMNS "J.b, " ONCE " FROM " ENTRIES
            " ORDER BY J.o, J.l ON CONFLICT DO NOTHING" },
        [SQLOCK_STOCK_SQL_FOLD] = { .text =
            "WITH U AS (" TAKE " AS remains), " ENTER },
        [SQLOCK_STOCK_SQL_ENTRIES] = { .text =
            "SELECT ORDER_ID, LINE, ITEM, KIND, QUANTITY, STATUS, BALANCE "
            "FROM {entry} WHERE ORDER_ID IN "
            "(SELECT json_array_elements_text({4}::json)) "
            "ORDER BY ORDER_ID, LINE" },
        [SQLOCK_STOCK_SQL_UNDO] = { .text =
            "UPDATE {entry} SET STATUS = 'U', DELTA = 0 WHERE ORDER_ID = {3}" },
        [SQLOCK_STOCK_SQL_OLD] = { .text =
            "SELECT E.ORDER_ID, " SINCE_EPOCH("E.CREATED_AT") ", E.LINE, " KEPT
            " FROM {entry} AS E WHERE E.CREATED_AT <= " AGO("{7}") " AND "
            BEHIND("CREATED_AT", " OR (ORDER_ID = {3} AND LINE > {6})")
            " ORDER BY E.CREATED_AT, E.ORDER_ID, E.LINE LIMIT {2}" },
        [SQLOCK_STOCK_SQL_FORGET_ENTRIES] = { .text =
            "DELETE FROM {entry} WHERE " OF_ORDERS
            "AND CREATED_AT <= " AGO("{7}") },

        [SQLOCK_STOCK_SQL_RESERVE] = { .text =
            "INSERT INTO {reservation} (ORDER_ID, STOCK, STATE, EXPIRES_AT, "
            "CREATED_AT) VALUES ({3}, {9}, 'R', " LATER("{7}") ", " NOW ")" },
        [SQLOCK_STOCK_SQL_CLAIM] = { .text =
            "UPDATE {reservation} SET STATE = 'C', EXPIRES_AT = " NOW
            " WHERE " THIS
            " AND STATE = 'R' AND EXPIRES_AT > " NOW },
        [SQLOCK_STOCK_SQL_CANCEL] = { .text =
            "UPDATE {reservation} SET STATE = 'X', EXPIRES_AT = " NOW
            " WHERE " THIS
            " AND STATE = 'R'" },
        [SQLOCK_STOCK_SQL_LAPSE] = { .text =
            "UPDATE {reservation} SET STATE = 'E', EXPIRES_AT = " NOW
            " WHERE " THIS
            " AND STATE = 'R' AND EXPIRES_AT <= " NOW },
        [SQLOCK_STOCK_SQL_LOOK] = { .text =
            "SELECT STATE, " REMAINING " FROM {reservation} "
            "WHERE " THIS },
        [SQLOCK_STOCK_SQL_DUE] = { .text =
            "SELECT ORDER_ID, " SINCE_EPOCH("EXPIRES_AT") " FROM {reservation} "
            "WHERE STOCK = {9} AND STATE = {5} AND EXPIRES_AT <= " AGO("{7}")
            " AND " BEHIND("EXPIRES_AT", "")
            " ORDER BY EXPIRES_AT, ORDER_ID LIMIT {2}" },
        [SQLOCK_STOCK_SQL_FORGET_RESERVATIONS] = { .text =
            "DELETE FROM {reservation} WHERE " OF_ORDERS
            "AND STOCK = {9} AND STATE <> 'R' "
            "AND EXPIRES_AT <= " AGO("{7}") },

        [SQLOCK_STOCK_SQL_BUCKET_DEDUCT] = { .text = TAKE_FROM_BUCKET },
        [SQLOCK_STOCK_SQL_BUCKET_FOLD] = { .text =
            "WITH U AS (" TAKE_FROM_BUCKET " AS remains), " ENTER },
        [SQLOCK_STOCK_SQL_BUCKETS] = { .text =
            "SELECT BUCKET, QUANTITY FROM {bucket} WHERE ITEM = {5} "
            "ORDER BY BUCKET" LOCKED },
        [SQLOCK_STOCK_SQL_SPREAD] = { .text =
            "INSERT INTO {bucket} (ITEM, BUCKET, QUANTITY) "
            "SELECT {5}::varchar, J.b, J.q "
            "FROM json_to_recordset({4}::json) AS J (b int, q bigint) "
            "ORDER BY J.b ON CONFLICT (ITEM, BUCKET) "
            "DO UPDATE SET QUANTITY = EXCLUDED.QUANTITY" },
    },
};
/* clang-format on */
