/*
 * stock.c - the SQL about stock of MySQL and MariaDB
 *
 * Only what both understand: no RETURNING, so that what is left travels in the
 * insert id; and no statement that writes to two tables, so that orders are
 * entered in one of their own.
 */
#include "drivers/mysql/connection.h"

/* The build makes it of sql/mysql. */
extern const char lk_sql_mysql_stock[];

/* clang-format off */
#define THIS "ORDER_ID = {3} AND STOCK = {9}"
#define NOW "UTC_TIMESTAMP(6)"
#define EPOCH "TIMESTAMP'1970-01-01 00:00:00'"
#define SINCE_EPOCH(time) "TIMESTAMPDIFF(MICROSECOND, " EPOCH ", " time ")"
#define AT(us) "TIMESTAMPADD(MICROSECOND, " us ", " EPOCH ")"
#define AGO(us) "TIMESTAMPADD(MICROSECOND, -" us ", " NOW ")"
/* Where a page begins, of rows by a time and their order. */
#define BEHIND(time, more)                                                    \
    time " >= " AT("{8}") " AND (" time " > " AT("{8}") " OR ORDER_ID > {3}"  \
    more ")"
/* That stay when those are removed which have ended long ago. */
#define KEPT                                                                  \
    "EXISTS (SELECT 1 FROM {reservation} AS R WHERE R.ORDER_ID = E.ORDER_ID "    \
    "AND (R.STATE = 'R' OR R.STOCK <> {9} OR R.EXPIRES_AT > " AGO("{7}") "))"
#define LATER(us) "TIMESTAMPADD(MICROSECOND, " us ", " NOW ")"

#define BINARY "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
#define QUANTITY_OF_ITEM "SELECT {quantity} FROM {stock} WHERE {item} = {1}"
#define SUM_OF_BUCKETS(item)                                                   \
    "CAST(coalesce((SELECT sum(C.QUANTITY) FROM {bucket} AS C "               \
    "WHERE C.ITEM = " item "), 0) AS SIGNED)"
#define TOTAL(item)                                                           \
    "T.{quantity} + " SUM_OF_BUCKETS(item)
#define IN_BUCKETS SUM_OF_BUCKETS("{5}")
#define UPDATE_STOCK "UPDATE {stock} SET {quantity} = "

#define ENTRIES                                                               \
    "JSON_TABLE({4}, '$[*]' COLUMNS (o VARCHAR(190) " BINARY " PATH '$.o', "  \
    "l INTEGER PATH '$.l', i VARCHAR(190) " BINARY " PATH '$.i', "            \
    "k VARCHAR(1) " BINARY " PATH '$.k', q BIGINT PATH '$.q', "               \
    "d BIGINT PATH '$.d', s VARCHAR(1) " BINARY " PATH '$.s', "               \
    "b BIGINT PATH '$.b')) J"
#define ORDERS                                                                \
    "JSON_TABLE({4}, '$[*]' COLUMNS (o VARCHAR(190) " BINARY " PATH '$')) J"
/* Of the table of that name, the rows of these orders. */
#define OF_ORDERS(table)                                                      \
    "DELETE T FROM " ORDERS " STRAIGHT_JOIN " table " AS T FORCE INDEX "      \
    "(PRIMARY) ON ORDER_ID = JSON_UNQUOTE(JSON_QUOTE(J.o)) WHERE "
#define BUCKETS                                                               \
    "JSON_TABLE({4}, '$[*]' COLUMNS (b INTEGER PATH '$.b', "                  \
    "q BIGINT PATH '$.q')) J"

/* MySQL must be told not to lock `J`, and MariaDB knows no such clause: it
   passes over comments for that version. */
#define SHARED " /*M! LOCK IN SHARE MODE */ /*!80001 FOR SHARE OF E */"

/* A server that is not strict cuts off what is more, and says only in a warning
   that it did. */
static const sqlock_integer_type integers[] = {
    {"tinyint*unsigned*", 255},        {"tinyint*", 127},
    {"smallint*unsigned*", 65535},     {"smallint*", 32767},
    {"mediumint*unsigned*", 16777215}, {"mediumint*", 8388607},
    {"int*unsigned*", 4294967295},     {"int*", 2147483647},
    {"bigint*", INT64_MAX},            {NULL, 0},
};

const sqlock_stock_dialect lk_mysql_stock = {
    .size = sizeof(sqlock_stock_dialect),
    .schema = lk_sql_mysql_stock,
    .bump = ", {version} = {version} + 1",
    .in_buckets = IN_BUCKETS,
    .integers = integers,
    .statements = {
        [SQLOCK_STOCK_SQL_READ] = {.text = QUANTITY_OF_ITEM},
        [SQLOCK_STOCK_SQL_LOCK] = {.text = QUANTITY_OF_ITEM " FOR UPDATE"},
        [SQLOCK_STOCK_SQL_READ_VERSION] = {.text =
            "SELECT {quantity}, {version} FROM {stock} WHERE {item} = {1}"},
        [SQLOCK_STOCK_SQL_DEDUCT] = {.text =
            UPDATE_STOCK "LAST_INSERT_ID({quantity} - {2}){bump} "
            "WHERE {item} = {1} AND {quantity} >= {2}",
            .insert_id = SQLOCK_INSERT_ID_ROW},
        [SQLOCK_STOCK_SQL_SWAP] = {.text =
            /* The condition is on the row as it was. */
            UPDATE_STOCK "{quantity} - {2}{bump} "
            "WHERE {item} = {1} AND {version} = {8} AND {quantity} >= {2}"},
        [SQLOCK_STOCK_SQL_RESTORE] = {.text =
            UPDATE_STOCK "LAST_INSERT_ID({quantity} + {2}){bump} "
            "WHERE {item} = {1} AND {quantity} <= {most} - {2} - {in_buckets}",
            .insert_id = SQLOCK_INSERT_ID_ROW},
        [SQLOCK_STOCK_SQL_ASSIGN] = {.text =
            UPDATE_STOCK "{2}{bump} WHERE {item} = {1}"},
        [SQLOCK_STOCK_SQL_MAKE] = {.text =
            "INSERT INTO {stock} ({item}, {quantity}) VALUES ({1}, 0) "
            "ON DUPLICATE KEY UPDATE {item} = {item}"},
        [SQLOCK_STOCK_SQL_TOTAL] = {.text =
            "SELECT " TOTAL("{5}") " FROM {stock} AS T WHERE T.{item} = {1}"},
        [SQLOCK_STOCK_SQL_LIST] = {.text =
            "SELECT {item}, {quantity} FROM {stock} ORDER BY {item}"},
        [SQLOCK_STOCK_SQL_LIST_TOTAL] = {.text =
            "SELECT T.{item}, " TOTAL("T.{item}") " FROM {stock} AS T "
            "ORDER BY T.{item}"},

        [SQLOCK_STOCK_SQL_RECORD] = {.text =
            "INSERT INTO {entry} (ORDER_ID, LINE, ITEM, KIND, QUANTITY, "
            "DELTA, STATUS, BALANCE, CREATED_AT) SELECT J.o, J.l, J.i, J.k, "
            "J.q, J.d, J.s, J.b, " NOW " FROM " ENTRIES
            " ON DUPLICATE KEY UPDATE LINE = LINE"},
        [SQLOCK_STOCK_SQL_ENTRIES] = {.text =
            "SELECT ORDER_ID, LINE, ITEM, KIND, QUANTITY, STATUS, BALANCE "
            "FROM " ORDERS " STRAIGHT_JOIN {entry} AS E "
            "FORCE INDEX (PRIMARY) "
            "ON ORDER_ID = JSON_UNQUOTE(JSON_QUOTE(J.o)) "
            "ORDER BY ORDER_ID, LINE" SHARED},
        [SQLOCK_STOCK_SQL_UNDO] = {.text =
            "UPDATE {entry} SET STATUS = 'U', DELTA = 0 WHERE ORDER_ID = {3}"},
        [SQLOCK_STOCK_SQL_OLD] = {.text =
            "SELECT E.ORDER_ID, " SINCE_EPOCH("E.CREATED_AT") ", E.LINE, " KEPT
            " FROM {entry} AS E WHERE E.CREATED_AT <= " AGO("{7}") " AND "
            BEHIND("CREATED_AT", " OR (ORDER_ID = {3} AND LINE > {6})")
            " ORDER BY E.CREATED_AT, E.ORDER_ID, E.LINE LIMIT {2}"},
        [SQLOCK_STOCK_SQL_FORGET_ENTRIES] = {.text =
            OF_ORDERS("{entry}") "CREATED_AT <= " AGO("{7}")},

        [SQLOCK_STOCK_SQL_RESERVE] = {.text =
            "INSERT INTO {reservation} (ORDER_ID, STOCK, STATE, EXPIRES_AT, "
            "CREATED_AT) VALUES ({3}, {9}, 'R', " LATER("{7}") ", " NOW ")"},
        [SQLOCK_STOCK_SQL_CLAIM] = {.text =
            "UPDATE {reservation} SET STATE = 'C', EXPIRES_AT = " NOW
            " WHERE " THIS
            " AND STATE = 'R' AND EXPIRES_AT > " NOW},
        [SQLOCK_STOCK_SQL_CANCEL] = {.text =
            "UPDATE {reservation} SET STATE = 'X', EXPIRES_AT = " NOW
            " WHERE " THIS
            " AND STATE = 'R'"},
        [SQLOCK_STOCK_SQL_LAPSE] = {.text =
            "UPDATE {reservation} SET STATE = 'E', EXPIRES_AT = " NOW
            " WHERE " THIS
            " AND STATE = 'R' AND EXPIRES_AT <= " NOW},
        [SQLOCK_STOCK_SQL_LOOK] = {.text =
            "SELECT STATE, TIMESTAMPDIFF(MICROSECOND, " NOW ", EXPIRES_AT) "
            "FROM {reservation} WHERE " THIS},
        [SQLOCK_STOCK_SQL_DUE] = {.text =
            "SELECT ORDER_ID, " SINCE_EPOCH("EXPIRES_AT") " FROM {reservation} "
            "WHERE STOCK = {9} AND STATE = {5} AND EXPIRES_AT <= " AGO("{7}")
            " AND " BEHIND("EXPIRES_AT", "")
            " ORDER BY EXPIRES_AT, ORDER_ID LIMIT {2}"},
        [SQLOCK_STOCK_SQL_FORGET_RESERVATIONS] = {.text =
            OF_ORDERS("{reservation}") "STOCK = {9} AND STATE <> 'R' "
            "AND EXPIRES_AT <= " AGO("{7}")},

        [SQLOCK_STOCK_SQL_BUCKET_DEDUCT] = {.text =
            "UPDATE {bucket} SET QUANTITY = QUANTITY - {2} WHERE ITEM = {5} "
            "AND BUCKET = {6} AND QUANTITY >= {2}"},
        [SQLOCK_STOCK_SQL_BUCKETS] = {.text =
            "SELECT BUCKET, QUANTITY FROM {bucket} WHERE ITEM = {5} "
            "ORDER BY BUCKET FOR UPDATE"},
        [SQLOCK_STOCK_SQL_SPREAD] = {.text =
            "INSERT INTO {bucket} (ITEM, BUCKET, QUANTITY) "
            "SELECT {5}, J.b, J.q FROM " BUCKETS
            " ON DUPLICATE KEY UPDATE QUANTITY = J.q"},
    },
};
/* clang-format on */
