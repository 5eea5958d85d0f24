/*
 * change.c - add to an item, and set it: what every strategy does alike, since
 * only a deduction can be refused for want of stock
 */
#include "stock/stock.h"

#include <inttypes.h>

#include "base/error.h"

/* Refuse to add the line's quantity to the item's, which is `there`, because
 * the column cannot hold the sum: set err, and return EINVAL. */
static int refuse_so_many(const sqlock_stock *stock,
                          const struct lk_stock_line *line, int64_t there,
                          sqlock_error *err)
{
    return lk_error(err, SQLOCK_EINVAL,
                    "%" PRId64 " of %s and %" PRId64
                    " more would be more than the column holds, which is "
                    "%" PRId64,
                    there, line->name, line->quantity, stock->tables.most);
}

int lk_stock_add(struct lk_stock_operation *op, struct lk_stock_line *line,
                 sqlock_error *err)
{
    int64_t there = 0;
    int rc;

    rc = lk_stock_ask(op, SQLOCK_STOCK_SQL_RESTORE, line, &there, err);
    if (rc == 1) {
        lk_stock_changed(line, line->quantity, there);
        return 0;
    }
    if (rc == 0)
        rc = lk_stock_ask(op, SQLOCK_STOCK_SQL_READ, line, &there, err);
    if (rc == 0)
        return lk_stock_no_item(line, err);
    if (rc < 0)
        return rc;
    return refuse_so_many(op->stock, line, there, err);
}

/* Lock the item's row; insert it if it is missing and the table is ours.
 * Return 1, with its quantity in *there; 0 if there is no such item; or a
 * negative code. */
static int lock_or_make(struct lk_stock_operation *op,
                        struct lk_stock_line *line, int64_t *there,
                        sqlock_error *err)
{
    struct lk_stock_arguments arguments;
    int rc;

    rc = lk_stock_ask(op, SQLOCK_STOCK_SQL_LOCK, line, there, err);
    if (rc != 0 || !op->stock->tables.is_ours)
        return rc;
    lk_stock_arguments_of(op, line, &arguments);
    rc = lk_stock_do(op, SQLOCK_STOCK_SQL_MAKE, &arguments, NULL, err);
    return rc < 0 ? rc
                  : lk_stock_ask(op, SQLOCK_STOCK_SQL_LOCK, line, there, err);
}

/* Set line->left and line->delta, for an item of which `there` is there.  If
 * another program has made that negative, the difference may exceed a 64-bit
 * integer: such an item can be set only without an order id, since an entry
 * would have to record the difference. */
static int find_delta(const struct lk_stock_operation *op,
                      struct lk_stock_line *line, int64_t there,
                      sqlock_error *err)
{
    int64_t delta = 0;

    if (__builtin_sub_overflow(line->quantity, there, &delta)) {
        if (op->order != NULL)
            return lk_error(err, SQLOCK_EINVAL,
                            "the change of %s exceeds a 64-bit integer: set it "
                            "without an order id",
                            line->name);
        delta = 0;
    }
    lk_stock_changed(line, delta, line->quantity);
    return 0;
}

int lk_stock_assign(struct lk_stock_operation *op, struct lk_stock_line *line,
                    sqlock_error *err)
{
    struct lk_stock_arguments arguments;
    int64_t there = 0;
    int rc;

    if (line->quantity > op->stock->tables.most)
        return lk_error(err, SQLOCK_EINVAL,
                        "%" PRId64 " of %s are more than the column holds, "
                        "which is %" PRId64,
                        line->quantity, line->name, op->stock->tables.most);
    rc = lock_or_make(op, line, &there, err);
    if (rc == 0)
        return lk_stock_no_item(line, err);
    if (rc == 1)
        rc = find_delta(op, line, there, err);
    if (rc < 0)
        return rc;
    lk_stock_arguments_of(op, line, &arguments);
    return lk_stock_do(op, SQLOCK_STOCK_SQL_ASSIGN, &arguments, NULL, err);
}
