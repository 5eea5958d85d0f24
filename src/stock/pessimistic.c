/*
 * pessimistic.c - the strategy PESSIMISTIC: SELECT ... FOR UPDATE, compare,
 * UPDATE; the usual way, by which the other strategies are measured
 */
#include "stock/stock.h"

#include "base/error.h"

static int take(struct lk_stock_operation *op, struct lk_stock_line *line,
                sqlock_error *err)
{
    int64_t there = 0;
    int64_t left = 0;
    int rc;

    rc = lk_stock_ask(op, SQLOCK_STOCK_SQL_LOCK, line, &there, err);
    if (rc == 0)
        return lk_stock_no_item(line, err);
    if (rc == 1 && there < line->quantity)
        return lk_stock_insufficient(line, there, err);
    if (rc == 1)
        rc = lk_stock_ask(op, SQLOCK_STOCK_SQL_DEDUCT, line, &left, err);
    if (rc == 0)
        return lk_error(err, SQLOCK_ECONFLICT,
                        "%s has changed although it was locked", line->name);
    if (rc < 0)
        return rc;
    lk_stock_changed(line, -line->quantity, left);
    return 0;
}

const struct lk_stock_strategy lk_stock_pessimistic = {.take = take};
