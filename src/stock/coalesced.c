/*
 * coalesced.c - the strategy COALESCED: threads of a process that want the same
 * item deduct from its row together, one round after another (queue.c)
 */
#include "base/error.h"
#include "stock/combine.h"

static int deduct(struct lk_stock_operation *op, struct lk_stock_line *line,
                  const char *entries, int64_t *left, sqlock_error *err)
{
    return entries != NULL
               ? lk_stock_combine(op, line, entries, left, err)
               : lk_stock_ask(op, SQLOCK_STOCK_SQL_DEDUCT, line, left, err);
}

/* Lock the item's row and, if it has too little, move what is in buckets
 * there. */
static int lock(struct lk_stock_operation *op, struct lk_stock_line *line,
                struct lk_stock_pile *pile, sqlock_error *err)
{
    int rc = lk_stock_ask(op, SQLOCK_STOCK_SQL_LOCK, line, &pile->there, err);

    if (rc != 1 || pile->there >= line->quantity)
        return rc;
    rc = lk_buckets_empty(op, line, &pile->there, err);
    return rc < 0 ? rc : 1;
}

static int deduct_locked(struct lk_stock_operation *op,
                         struct lk_stock_line *line,
                         const struct lk_stock_pile *pile, sqlock_error *err)
{
    int64_t left = 0;
    int rc = lk_stock_ask(op, SQLOCK_STOCK_SQL_DEDUCT, line, &left, err);

    if (rc == 0)
        return lk_error(err, SQLOCK_ECONFLICT,
                        "%s has changed from the %lld that were locked",
                        line->name, (long long)pile->there);
    return rc < 0 ? rc : 0;
}

/* Deduct in the application's transaction, where requests cannot be
 * combined. */
static int take(struct lk_stock_operation *op, struct lk_stock_line *line,
                sqlock_error *err)
{
    return lk_stock_conditional.take(op, line, err);
}

static const struct lk_stock_rows row_of_item = {
    .deduct = deduct,
    .combines = SQLOCK_STOCK_SQL_COMBINE,
    .always_tells = true,
    .lock = lock,
    .deduct_locked = deduct_locked,
    .lanes = 1,
};

const struct lk_stock_strategy lk_stock_coalesced = {
    .take = take,
    .alone = lk_combine_alone,
    .rows = &row_of_item,
};
