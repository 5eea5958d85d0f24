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
#define LATER(us) "TIMESTAMPADD(MICROSECOND, " us ", " NOW ")"

#define BINARY "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
#define QUANTITY_OF_ITEM "SELECT {quantity} FROM {stock} WHERE {item} = {1}"
#define TOTAL(item)                                                           \
    "CAST(T.{quantity} + COALESCE((SELECT SUM(C.QUANTITY) FROM {bucket} C "   \
    "WHERE C.ITEM = " item "), 0) AS SIGNED)"
#define UPDATE_STOCK "UPDATE {stock} SET {quantity} = "

#define ENTRIES                                                               \
    "JSON_TABLE({4}, '$[*]' COLUMNS (o VARCHAR(190) " BINARY " PATH '$.o', "  \
    "l INTEGER PATH '$.l', i VARCHAR(190) " BINARY " PATH '$.i', "            \
    "k VARCHAR(1) " BINARY " PATH '$.k', q BIGINT PATH '$.q', "               \
    "d BIGINT PATH '$.d', s VARCHAR(1) " BINARY " PATH '$.s', "               \
    "b BIGINT PATH '$.b')) J"
#define ORDERS                                                                \
    "JSON_TABLE({4}, '$[*]' COLUMNS (o VARCHAR(190) " BINARY " PATH '$')) J"
#define BUCKETS                                                               \
    "JSON_TABLE({4}, '$[*]' COLUMNS (b INTEGER PATH '$.b', "                  \
    "q BIGINT PATH '$.q')) J"

/* MySQL must be told not to lock `J`, and MariaDB knows no such clause: it
   passes over comments for that version. */
#define SHARED "/*M! LOCK IN SHARE MODE */ /*!80001 FOR SHARE OF E */"

const sqlock_stock_dialect lk_mysql_stock = {
    .size = sizeof(sqlock_stock_dialect),
    .schema = lk_sql_mysql_stock,
    .bump = ", {version} = {version} + 1",
    .integers = "tinyint*|smallint*|mediumint*|int*|bigint*",
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
            "WHERE {item} = {1} AND {quantity} <= 9223372036854775807 - {2}",
            .insert_id = SQLOCK_INSERT_ID_ROW},
        [SQLOCK_STOCK_SQL_ASSIGN] = {.text =
            UPDATE_STOCK "{2}{bump} WHERE {item} = {1}"},
        [SQLOCK_STOCK_SQL_MAKE] = {.text =
            "INSERT INTO {stock} ({item}, {quantity}) VALUES ({1}, 0) "
            "ON DUPLICATE KEY UPDATE {item} = {item}"},
        [SQLOCK_STOCK_SQL_TOTAL] = {.text =
            "SELECT " TOTAL("{5}") " FROM {stock} T WHERE T.{item} = {1}"},
        [SQLOCK_STOCK_SQL_LIST] = {.text =
            "SELECT {item}, {quantity} FROM {stock} ORDER BY {item}"},
        [SQLOCK_STOCK_SQL_LIST_TOTAL] = {.text =
            "SELECT T.{item}, " TOTAL("T.{item}") " FROM {stock} T "
            "ORDER BY T.{item}"},

        [SQLOCK_STOCK_SQL_RECORD] = {.text =
            "INSERT INTO {entry} (ORDER_ID, LINE, ITEM, KIND, QUANTITY, "
            "DELTA, STATUS, BALANCE, CREATED_AT) SELECT J.o, J.l, J.i, J.k, "
            "J.q, J.d, J.s, J.b, " NOW " FROM " ENTRIES
            " ON DUPLICATE KEY UPDATE LINE = LINE"},
        [SQLOCK_STOCK_SQL_ENTRIES] = {.text =
            "SELECT E.ORDER_ID, E.LINE, E.ITEM, E.KIND, E.QUANTITY, E.STATUS, "
            "E.BALANCE FROM " ORDERS " STRAIGHT_JOIN {entry} E "
            "FORCE INDEX (PRIMARY) "
            "ON E.ORDER_ID = JSON_UNQUOTE(JSON_QUOTE(J.o)) "
            "ORDER BY E.ORDER_ID, E.LINE " SHARED},
        [SQLOCK_STOCK_SQL_UNDO] = {.text =
            "UPDATE {entry} SET STATUS = 'U', DELTA = 0 WHERE ORDER_ID = {3}"},

        [SQLOCK_STOCK_SQL_RESERVE] = {.text =
            "INSERT INTO {reservation} (ORDER_ID, STOCK, STATE, EXPIRES_AT, "
            "CREATED_AT) VALUES ({3}, {9}, 'R', " LATER("{7}") ", " NOW ")"},
        [SQLOCK_STOCK_SQL_CLAIM] = {.text =
            "UPDATE {reservation} SET STATE = 'C' WHERE " THIS
            " AND STATE = 'R' AND EXPIRES_AT > " NOW},
        [SQLOCK_STOCK_SQL_CANCEL] = {.text =
            "UPDATE {reservation} SET STATE = 'X' WHERE " THIS
            " AND STATE = 'R'"},
        [SQLOCK_STOCK_SQL_LAPSE] = {.text =
            "UPDATE {reservation} SET STATE = 'E' WHERE " THIS
            " AND STATE = 'R' AND EXPIRES_AT <= " NOW},
        [SQLOCK_STOCK_SQL_LOOK] = {.text =
            "SELECT STATE, TIMESTAMPDIFF(MICROSECOND, " NOW ", EXPIRES_AT) "
            "FROM {reservation} WHERE " THIS},
        [SQLOCK_STOCK_SQL_DUE] = {.text =
            "SELECT ORDER_ID FROM {reservation} WHERE STOCK = {9} "
            "AND STATE = 'R' AND EXPIRES_AT <= " NOW
            " ORDER BY EXPIRES_AT, ORDER_ID LIMIT {2}"},

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
