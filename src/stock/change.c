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

int lk_stock_add_to_row(struct lk_stock_operation *op,
                        struct lk_stock_line *line, sqlock_error *err)
{
    int64_t there = 0;
    int rc;

    rc = lk_stock_ask(op, SQLOCK_STOCK_SQL_RESTORE, line, &there, err);
    if (rc == 1) {
        lk_stock_changed(line, line->quantity, there);
        return 0;
    }
    if (rc == 0)
        rc = lk_stock_ask_total(op, line, &there, err);
    if (rc == 0)
        return lk_stock_no_item(line, err);
    if (rc < 0)
        return rc;
    return refuse_so_many(op->stock, line, there, err);
}

/* Return whether what is left of the lines is told, or recorded: the end of a
 * reservation does neither. */
static bool tells_left(const struct lk_stock_operation *op)
{
    return op->wants_left || (op->order != NULL && op->count > 0);
}

/* Read how much there is of the item whose row was added to: a statement of its
 * own, since one that waits for the row may see the buckets of before. */
static int64_t read_left(struct lk_stock_operation *op,
                         const struct lk_stock_line *line)
{
    int64_t there = -1;

    return lk_stock_ask_total(op, line, &there, NULL) == 1 ? there : -1;
}

int lk_stock_add(struct lk_stock_operation *op, struct lk_stock_line *line,
                 sqlock_error *err)
{
    int rc = lk_stock_add_to_row(op, line, err);

    if (rc == 0 && op->stock->tables.is_ours)
        line->left = tells_left(op) ? read_left(op, line) : -1;
    return rc;
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
    lk_stock_arguments(op, line, &arguments);
    rc = lk_stock_do(op, SQLOCK_STOCK_SQL_MAKE, &arguments, NULL, err);
    return rc < 0 ? rc
                  : lk_stock_ask(op, SQLOCK_STOCK_SQL_LOCK, line, there, err);
}

/* Set line->left and line->delta, for an item with `there` in its row and
 * `gathered` in its buckets.  If other programs filled those, the difference
 * may exceed a 64-bit integer: such an item can be set only without an order
 * id, since an entry would have to record the difference. */
static int find_delta(const struct lk_stock_operation *op,
                      struct lk_stock_line *line, int64_t there,
                      int64_t gathered, sqlock_error *err)
{
    int64_t delta = 0;

    if (__builtin_sub_overflow(line->quantity, there, &delta) ||
        __builtin_sub_overflow(delta, gathered, &delta)) {
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
    int64_t gathered = 0;
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
    if (rc == 1 && op->stock->tables.is_ours)
        rc = lk_buckets_gather(op, line, &gathered, err);
    if (rc >= 0)
        rc = find_delta(op, line, there, gathered, err);
    if (rc < 0)
        return rc;
    lk_stock_arguments(op, line, &arguments);
    return lk_stock_do(op, SQLOCK_STOCK_SQL_ASSIGN, &arguments, NULL, err);
}
