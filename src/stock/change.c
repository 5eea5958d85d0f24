/*
 * change.c - what takes nothing away: adding to an item, and setting it
 */
#include "stock/stock.h"

#include <inttypes.h>

#include "base/error.h"

int lk_stock_add(struct lk_stock_operation *op, struct lk_stock_line *line,
                 sqlock_error *err)
{
    int64_t there = 0;
    int rc;

    rc = lk_stock_ask(op, SQLOCK_STOCK_SQL_RESTORE, line, &there, err);
    if (rc == 1) {
        line->left = there;
        line->delta = line->quantity;
        return 0;
    }
    if (rc == 0)
        rc = lk_stock_ask(op, SQLOCK_STOCK_SQL_READ, line, &there, err);
    if (rc == 0)
        return lk_stock_no_item(line, err);
    if (rc < 0)
        return rc;
    line->left = there;
    line->result = SQLOCK_EINVAL;
    return lk_error(err, SQLOCK_EINVAL,
                    "%" PRId64 " of %s and %" PRId64
                    " more would be more than a 64-bit integer holds",
                    there, line->name, line->quantity);
}

/* The item's row, locked; made where it is missing and the table is ours. */
static int lock_or_make(struct lk_stock_operation *op,
                        struct lk_stock_line *line, int64_t *there,
                        sqlock_error *err)
{
    struct lk_arguments arguments;
    int rc;

    rc = lk_stock_ask(op, SQLOCK_STOCK_SQL_LOCK, line, there, err);
    if (rc != 0 || !op->stock->is_ours)
        return rc;
    lk_stock_arguments(op, line, &arguments);
    rc = lk_stock_do(op, SQLOCK_STOCK_SQL_MAKE, &arguments, NULL, err);
    return rc < 0 ? rc
                  : lk_stock_ask(op, SQLOCK_STOCK_SQL_LOCK, line, there, err);
}

int lk_stock_assign(struct lk_stock_operation *op, struct lk_stock_line *line,
                    sqlock_error *err)
{
    struct lk_arguments arguments;
    int64_t gathered = 0;
    int64_t there = 0;
    int rc;

    rc = lock_or_make(op, line, &there, err);
    if (rc == 0)
        return lk_stock_no_item(line, err);
    if (rc == 1 && op->stock->is_ours)
        rc = lk_buckets_gather(op, line, &gathered, err);
    if (rc < 0)
        return rc;
    lk_stock_arguments(op, line, &arguments);
    rc = lk_stock_do(op, SQLOCK_STOCK_SQL_ASSIGN, &arguments, NULL, err);
    if (rc < 0)
        return rc;
    line->left = line->quantity;
    line->delta = line->quantity - there - gathered;
    return 0;
}
