/*
 * conditional.c - the strategy CONDITIONAL: UPDATE ... WHERE quantity >= n, so
 * the database decides and deducts in one statement; only a refusal needs a
 * query for its reason
 */
#include "stock/stock.h"

#include <stdlib.h>

#include "base/error.h"

/* The most attempts, each with a query that found enough after the UPDATE had
 * found too little. */
#define LOOKS 10

/* Find out why nothing was deducted.  Return EINSUFFICIENT, ENOTFOUND, another
 * failure, or 0: there is enough now, try again. */
static int look(struct lk_stock_operation *op, struct lk_stock_line *line,
                sqlock_error *err)
{
    /* A transaction may see an old state of a row that it does not lock. */
    sqlock_stock_kind kind =
        op->tx != NULL ? SQLOCK_STOCK_SQL_LOCK : SQLOCK_STOCK_SQL_READ;
    int64_t there = 0;
    int rc = lk_stock_ask(op, kind, line, &there, err);

    if (rc < 0)
        return rc;
    if (rc == 0)
        return lk_stock_no_item(line, err);
    return there < line->quantity ? lk_stock_insufficient(line, there, err) : 0;
}

static void took(struct lk_stock_line *line, int64_t left)
{
    lk_stock_changed(line, -line->quantity, left);
}

/* Deduct and record the order in one statement.  Results as
 * lk_stock_combine(). */
static int combine(struct lk_stock_operation *op, int64_t *left,
                   sqlock_error *err)
{
    struct lk_stock_line *line = &op->lines[0];
    char *entries;
    int rc;

    took(line, 0); /* to BALANCE the statement adds what is left */
    entries = lk_entries_write(op, true);
    if (entries == NULL)
        return lk_error_nomem(err);
    rc = lk_stock_combine(op, line, entries, left, err);
    free(entries);
    return rc;
}

/* Deduct the line; without a transaction, record the order as well. */
static int take(struct lk_stock_operation *op, struct lk_stock_line *line,
                sqlock_error *err)
{
    bool has_entries = op->tx == NULL && op->order != NULL;

    for (int i = 0; i < LOOKS; i++) {
        int64_t left = 0;
        int rc = has_entries ? combine(op, &left, err)
                             : lk_stock_ask(op, SQLOCK_STOCK_SQL_DEDUCT, line,
                                            &left, err);

        if (rc == 1) {
            took(line, left);
            return 0;
        }
        if (rc == 0)
            rc = look(op, line, err);
        if (rc != 0)
            return rc;
    }
    return lk_error(err, SQLOCK_ECONFLICT,
                    "%s keeps changing between one statement and the next",
                    line->name);
}

static int alone(struct lk_stock_operation *op, sqlock_error *err)
{
    if (op->order != NULL &&
        !lk_stock_has(&op->stock->tables, SQLOCK_STOCK_SQL_COMBINE))
        return LK_STOCK_IN_TRANSACTION;
    return take(op, &op->lines[0], err);
}

const struct lk_stock_strategy lk_stock_conditional = {
    .take = take,
    .alone = alone,
};
