/*
 * optimistic.c - the strategy OPTIMISTIC: read, and write only if the version
 * has not changed (F33)
 *
 * After a conflict the operation is run again; on a hot row that happens most
 * of the time.
 */
#include "stock/stock.h"

#include "base/error.h"

static int swap(struct lk_stock_operation *op, struct lk_stock_line *line,
                int64_t expected, sqlock_error *err)
{
    struct lk_stock_arguments arguments;
    int64_t affected = 0;
    int rc;

    lk_stock_arguments_of(op, line, &arguments);
    lk_stock_argument_integer(&arguments, SQLOCK_SP_VERSION, expected);
    rc = lk_stock_do(op, SQLOCK_STOCK_SQL_SWAP, &arguments, &affected, err);
    if (rc == 0 && affected == 0)
        return lk_error(err, SQLOCK_ECONFLICT,
                        "%s has changed since it was read", line->name);
    return rc;
}

static int take(struct lk_stock_operation *op, struct lk_stock_line *line,
                sqlock_error *err)
{
    struct lk_stock_arguments arguments;
    sqlock_result result = {0};
    int64_t version = 0;
    int64_t there = 0;
    bool exists;
    int rc;

    lk_stock_arguments_of(op, line, &arguments);
    rc = lk_stock_send(op, SQLOCK_STOCK_SQL_READ_VERSION, &arguments, &result,
                       err);
    exists = result.rows > 0;
    if (exists && (result.cells[0].type != SQLOCK_INT64 ||
                   result.cells[1].type != SQLOCK_INT64)) {
        rc = lk_error(err, SQLOCK_EDATABASE,
                      "the quantity or version of %s is not an integer",
                      line->name);
    } else if (exists) {
        there = result.cells[0].integer;
        version = result.cells[1].integer;
    }
    sqlock_result_clear(&result);
    if (rc < 0)
        return rc;
    if (!exists)
        return lk_stock_no_item(line, err);
    if (there < line->quantity) /* a transaction may see an old quantity */
        return lk_stock_conditional.take(op, line, err);
    rc = swap(op, line, version, err);
    if (rc == 0)
        lk_stock_changed(line, -line->quantity, there - line->quantity);
    return rc;
}

/* Deduct with two statements, each committed by itself. */
static int alone(struct lk_stock_operation *op, sqlock_error *err)
{
    if (op->order != NULL)
        return LK_STOCK_IN_TRANSACTION;
    return take(op, &op->lines[0], err);
}

const struct lk_stock_strategy lk_stock_optimistic = {
    .take = take,
    .alone = alone,
};
