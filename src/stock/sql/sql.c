/*
 * sql.c - the statements about stock, as templates
 *
 * A statement that has waited for a locked row reads the newest version of that
 * row, but all other rows as they were when the statement began.  So an order
 * that another session recorded meanwhile is found only by a conflict with the
 * primary key of the entries, never by a query within the statement.  The
 * rendered statements are in sql/DATABASE/statements.sql.
 */
#include "stock/sql/sql.h"

#include <stddef.h>

/* clang-format off */
const char *const lk_stock_templates[SQLOCK_STOCK_KINDS] = {
    [SQLOCK_STOCK_SQL_READ] = "{quantity_of_item}",
    [SQLOCK_STOCK_SQL_LOCK] = "{quantity_of_item}{locked}",
    [SQLOCK_STOCK_SQL_READ_VERSION] =
        "SELECT {quantity}, {version} FROM {stock} WHERE {this_item}",
    [SQLOCK_STOCK_SQL_DEDUCT] = "{deduct}",
    /* WHERE sees the row as it was before SET. */
    [SQLOCK_STOCK_SQL_SWAP] =
        "UPDATE {stock} SET {quantity} = {quantity} - {2}{bump} "
        "WHERE {this_item} AND {version} = {8} AND {quantity} >= {2}",
    [SQLOCK_STOCK_SQL_RESTORE] =
        "UPDATE {stock} SET {quantity} = {answer {quantity} + {2}}{bump} "
        "WHERE {this_item} AND {quantity} <= {most} - {2} - {in_buckets}"
        "{returning {quantity}}",
    [SQLOCK_STOCK_SQL_ASSIGN] =
        "UPDATE {stock} SET {quantity} = {2}{bump} WHERE {this_item}",
    [SQLOCK_STOCK_SQL_MAKE] =
        "INSERT INTO {stock} ({item}, {quantity}) VALUES ({1}, 0) "
        "{or_nothing {item}}",
    [SQLOCK_STOCK_SQL_TOTAL] = "{total_of_item}",
    [SQLOCK_STOCK_SQL_LIST] =
        "SELECT {item}, {quantity} FROM {stock} ORDER BY {item}",
    [SQLOCK_STOCK_SQL_LIST_TOTAL] =
        "SELECT T.{item}, T.{quantity} + {sum_in_buckets T.{item}} "
        "FROM {stock} AS T ORDER BY T.{item}",

    [SQLOCK_STOCK_SQL_RECORD] =
        "{insert_entries}J.b, {once {now}} FROM {entries}{by_order} "
        "{or_nothing LINE}",
    [SQLOCK_STOCK_SQL_ENTRIES] =
        "SELECT ORDER_ID, LINE, ITEM, KIND, QUANTITY, STATUS, BALANCE "
        "FROM {entries_of_orders} ORDER BY ORDER_ID, LINE{shared}",
    [SQLOCK_STOCK_SQL_UNDO] =
        "UPDATE {entry} SET STATUS = 'U', DELTA = 0 WHERE ORDER_ID = {3}",
    [SQLOCK_STOCK_SQL_OLD] =
        "SELECT E.ORDER_ID, {in_us E.CREATED_AT}, E.LINE, "
        "{as_number {is_kept}} FROM {entry} AS E "
        "WHERE E.CREATED_AT <= {once {ago {7}}} AND "
        "CREATED_AT >= {time {8}} AND (CREATED_AT > {time {8}} "
        "OR ORDER_ID > {3} OR (ORDER_ID = {3} AND LINE > {6})) "
        "ORDER BY E.CREATED_AT, E.ORDER_ID, E.LINE LIMIT {2}",
    [SQLOCK_STOCK_SQL_FORGET_ENTRIES] =
        "{delete_of_orders {entry}}CREATED_AT <= {once {ago {7}}}",

    [SQLOCK_STOCK_SQL_RESERVE] =
        "INSERT INTO {reservation} (ORDER_ID, STOCK, STATE, EXPIRES_AT, "
        "CREATED_AT) VALUES ({3}, {9}, 'R', {later {7}}, {now})",
    [SQLOCK_STOCK_SQL_CLAIM] = "{end_as 'C'} AND EXPIRES_AT > {now}",
    [SQLOCK_STOCK_SQL_CANCEL] = "{end_as 'X'}",
    [SQLOCK_STOCK_SQL_LAPSE] = "{end_as 'E'} AND EXPIRES_AT <= {now}",
    [SQLOCK_STOCK_SQL_STATUS] =
        "SELECT STATE, {us_until EXPIRES_AT} FROM {reservation} WHERE {this}",
    [SQLOCK_STOCK_SQL_DUE] =
        "SELECT ORDER_ID, {in_us EXPIRES_AT} FROM {reservation} "
        "WHERE STOCK = {9} AND STATE = {5} AND EXPIRES_AT <= {once {ago {7}}} "
        "AND EXPIRES_AT >= {time {8}} AND (EXPIRES_AT > {time {8}} "
        "OR ORDER_ID > {3}) ORDER BY EXPIRES_AT, ORDER_ID LIMIT {2}",
    [SQLOCK_STOCK_SQL_FORGET_RESERVATIONS] =
        "{delete_of_orders {reservation}}STOCK = {9} AND STATE <> 'R' "
        "AND EXPIRES_AT <= {once {ago {7}}}",

    [SQLOCK_STOCK_SQL_BUCKET_DEDUCT] = "{bucket_deduct}{left_in_buckets}",
    [SQLOCK_STOCK_SQL_BUCKETS] =
        "SELECT BUCKET, QUANTITY FROM {bucket} WHERE ITEM = {5} "
        "ORDER BY BUCKET{locked}",
};

const sqlock_fragment lk_stock_fragments[] = {
    {"quantity_of_item", "SELECT {quantity} FROM {stock} WHERE {this_item}"},
    {"locked", " FOR UPDATE"},
    {"deduct",
     "UPDATE {stock} SET {quantity} = {answer {quantity} - {2}}{bump} "
     "WHERE {this_item} AND {quantity} >= {2}{returning {quantity}}"},
    {"or_nothing", "ON CONFLICT DO NOTHING"},

    {"sum_in_buckets", "coalesce((SELECT sum(C.QUANTITY) FROM {bucket} AS C "
                       "WHERE C.ITEM = {it}), 0)"},
    {"total_of_item", "SELECT T.{quantity} + {sum_in_buckets {5}} "
                      "FROM {stock} AS T WHERE {this_item}"},
    {"bucket_deduct", "UPDATE {bucket} SET QUANTITY = QUANTITY - {2} "
                      "WHERE ITEM = {5} AND BUCKET = {6} AND QUANTITY >= {2}"},
    {"left_in_buckets", ""}, /* further part of BUCKET_DEDUCT */

    {"insert_entries",
     "INSERT INTO {entry} (ORDER_ID, LINE, ITEM, KIND, QUANTITY, DELTA, "
     "STATUS, BALANCE, CREATED_AT) SELECT J.o, J.l, J.i, J.k, J.q, J.d, J.s, "},
    {"by_order", ""}, /* further part of a SELECT from `entries` */
    {"entries_of_orders", "{entry} WHERE ORDER_ID IN ({orders})"},
    {"delete_of_orders", "DELETE FROM {it} WHERE ORDER_ID IN ({orders}) AND "},
    /* Further part of a SELECT of entries: wait for those being inserted. */
    {"shared", ""},
    /* Whether a reservation keeps the entry E: an open one, one of another
     * stock, or one that ended no longer than {7} ago. */
    {"is_kept",
     "EXISTS (SELECT 1 FROM {reservation} AS R WHERE R.ORDER_ID = E.ORDER_ID "
     "AND (R.STATE = 'R' OR R.STOCK <> {9} OR "
     "R.EXPIRES_AT > {once {ago {7}}}))"},
    {"as_number", "{it}"},
    {"once", "{it}"}, /* a time, computed once for all rows */

    {"this", "ORDER_ID = {3} AND STOCK = {9}"},
    {"end_as", "UPDATE {reservation} SET STATE = {it}, EXPIRES_AT = {now} "
               "WHERE {this} AND STATE = 'R'"},
    {NULL, NULL},
};
/* clang-format on */
