/*
 * expiry.c - end overdue reservations, each in a transaction of its own, so
 * that one that fails does not stop the others; or those of an item of which
 * there is too little, in the application's transaction if there is one
 */
#include "stock/stock.h"

#include "base/error.h"

#define DUE_AT_A_TIME 100
/* Attempts at each reservation; one whose item stays locked is left to the next
 * call. */
#define ATTEMPTS 3

/* Columns of SQLOCK_STOCK_SQL_DUE. */
enum { ORDER, EXPIRES_US, DUE_COLUMNS };

struct expiry {
    sqlock_stock *stock;
    sqlock_tx *tx; /* NULL: each has a transaction of its own */
    struct lk_stock_page page;
    int64_t expired; /* by this call */
    int64_t ended;   /* by whomever, of those that were found overdue */
    int rc;          /* the first failure that did not stop the others */
    sqlock_error why;
};

void lk_stock_page_next(struct lk_stock_page *page, const char *order,
                        int64_t at_us)
{
    page->after_us = at_us;
    (void)snprintf(page->after, sizeof page->after, "%s", order);
}

int lk_stock_due(sqlock_stock *stock, const char *state, int64_t age_us,
                 int64_t most, struct lk_stock_page *page, sqlock_result *due,
                 sqlock_error *err)
{
    struct lk_stock_operation op = {.stock = stock, .order = page->after};
    struct lk_stock_arguments arguments;
    int rc;

    lk_stock_arguments_of(&op, NULL, &arguments);
    lk_stock_argument_integer(&arguments, SQLOCK_SP_LIMIT, most);
    lk_stock_argument(&arguments, SQLOCK_SP_STATE, state);
    lk_stock_argument_integer(&arguments, SQLOCK_SP_AGE, age_us);
    lk_stock_argument_integer(&arguments, SQLOCK_SP_AFTER, page->after_us);
    rc = lk_stock_send(&op, SQLOCK_STOCK_SQL_DUE, &arguments, due, err);
    if (rc == 0 && due->rows > 0) {
        const sqlock_value *last = &due->cells[(due->rows - 1) * DUE_COLUMNS];

        lk_stock_page_next(page, last[ORDER].text, last[EXPIRES_US].integer);
    }
    return rc;
}

/* Return whether a failure concerns one reservation or item only, and leaves a
 * transaction of others as it was. */
static bool is_of_one(int rc, bool is_in_tx)
{
    switch (rc) {
    case SQLOCK_EINVAL:
    case SQLOCK_EDATABASE:
        return true;
    case SQLOCK_EBUSY:
    case SQLOCK_ERETRY:
        return !is_in_tx;
    default:
        return false;
    }
}

static void note_failure(struct expiry *expiry, const char *order, int rc,
                         const sqlock_error *why)
{
    if (expiry->rc != 0)
        return;
    expiry->rc =
        sqlock_error_set(&expiry->why, rc, why->native, why->sqlstate,
                         "reservation %s could not give back what it holds: %s",
                         order, why->message);
}

/* Let one reservation expire.  Return 0, also if only this one failed, or an
 * error that ends the call. */
static int expire_one(struct expiry *expiry, const char *order,
                      sqlock_error *err)
{
    struct lk_stock_operation op = {
        .stock = expiry->stock, .order = order, .attempts_max = ATTEMPTS};
    sqlock_error own = {0};
    int rc =
        lk_reservation_end(&op, expiry->tx, lk_reservation_lapse, NULL, &own);

    if (rc == 0 && !op.is_duplicate)
        expiry->expired++;
    /* The reservation may have been claimed or cancelled meanwhile, or the
     * clock put back.  One that is not found is of no use: a sale that tried
     * again for it would find it overdue for ever if its id is not ours. */
    if (rc == 0 || rc == SQLOCK_ECONFLICT || rc == SQLOCK_ENOTFOUND) {
        expiry->ended += rc != SQLOCK_ENOTFOUND;
        return 0;
    }
    if (is_of_one(rc, expiry->tx != NULL)) {
        note_failure(expiry, order, rc, &own);
        return 0;
    }
    return lk_error_pass(err, &own, rc);
}

/* Let a page of reservations expire.  Return how many it has, or an error that
 * ends the call. */
static int expire_some(struct expiry *expiry, sqlock_error *err)
{
    sqlock_result due = {0};
    int rc = lk_stock_due(expiry->stock, "R", 0, DUE_AT_A_TIME, &expiry->page,
                          &due, err);
    int count = (int)due.rows;

    for (size_t i = 0; rc == 0 && i < due.rows; i++)
        rc = expire_one(expiry, due.cells[i * DUE_COLUMNS + ORDER].text, err);
    sqlock_result_clear(&due);
    return rc < 0 ? rc : count;
}

/* Let some reservations of an item that are over expire.  Return 0, also if
 * some could not, or an error that ends the call. */
static int expire_item(struct expiry *expiry, const struct lk_stock_line *line,
                       sqlock_error *err)
{
    struct lk_stock_operation op = {.stock = expiry->stock, .tx = expiry->tx};
    struct lk_stock_arguments arguments;
    sqlock_result due = {0};
    int rc;

    lk_stock_arguments_of(&op, line, &arguments);
    lk_stock_argument(&arguments, SQLOCK_SP_NAME, line->name);
    lk_stock_argument_integer(&arguments, SQLOCK_SP_LIMIT, DUE_AT_A_TIME);
    rc = lk_stock_send(&op, SQLOCK_STOCK_SQL_OVERDUE, &arguments, &due, err);
    for (size_t i = 0; rc == 0 && i < due.rows; i++)
        rc = expire_one(expiry, due.cells[i].text, err);
    sqlock_result_clear(&due);
    return rc;
}

int lk_stock_take_back(struct lk_stock_operation *op, sqlock_error *err)
{
    struct expiry expiry = {.stock = op->stock, .tx = op->tx};
    int rc = 0;

    if (!op->stock->tables.takes_back)
        return 0;
    for (size_t i = 0; rc == 0 && i < op->count; i++)
        if (op->lines[i].result == SQLOCK_EINSUFFICIENT)
            rc = expire_item(&expiry, &op->lines[i], err);
    return rc < 0 ? rc : expiry.ended > 0;
}

int sqlock_stock_expire(sqlock_stock *stock, int64_t *expired,
                        sqlock_error *err)
{
    struct expiry expiry = {.stock = stock};
    int rc;

    if (expired != NULL)
        *expired = 0;
    rc = lk_stock_check(stock, NULL, err);
    if (rc == 0)
        rc = lk_stock_check_orders(stock, err);
    if (rc < 0)
        return rc;
    do
        rc = expire_some(&expiry, err);
    while (rc == DUE_AT_A_TIME);
    if (expired != NULL)
        *expired = expiry.expired;
    return rc < 0 ? rc : lk_error_pass(err, &expiry.why, expiry.rc);
}
