/*
 * advisory.c - callers queue for an advisory lock of the item before they touch
 * its row, and are served as they came.  The statement's snapshot is older than
 * its wait, so it still has to follow the row's versions to the last: with 64
 * callers it was measured no faster than the bare UPDATE.
 */
#include "stock/stock.h"

static int take(struct lk_stock_operation *op, struct lk_stock_line *line,
                sqlock_error *err)
{
    return lk_conditional_take(op, line, SQLOCK_STOCK_SQL_DEDUCT_QUEUED, err);
}

static int alone(struct lk_stock_operation *op, sqlock_error *err)
{
    return lk_conditional_alone(op, SQLOCK_STOCK_SQL_DEDUCT_QUEUED,
                                SQLOCK_STOCK_SQL_FOLD_QUEUED, err);
}

const struct lk_stock_strategy lk_stock_advisory = {
    .take = take,
    .alone = alone,
};
