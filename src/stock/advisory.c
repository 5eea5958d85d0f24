/*
 * advisory.c - callers queue for an advisory lock of the item before they touch
 * its row.  Whoever waits for a hot row looks at each new version of it in turn,
 * and the more wait the slower it gets; an advisory lock wakes one of them.
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
