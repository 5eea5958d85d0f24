/*
 * reservation.c - end a reservation: claim it, cancel it, or let it expire
 *
 * Only one of the three happens, and only once: each changes the reservation's
 * row only where STATE is still 'R'.  Quantities are given back in the same
 * transaction.
 */
#include "stock/stock.h"

#include <string.h>

#include "base/error.h"

/* The row of a reservation. */
struct look {
    char state; /* as in the table; 0: no such reservation */
    int64_t remaining_us;
};

static int look_at(struct lk_stock_operation *op, struct look *look,
                   sqlock_error *err)
{
    struct lk_stock_arguments arguments;
    sqlock_result result = {0};
    int rc;

    memset(look, 0, sizeof *look);
    lk_stock_arguments_of(op, NULL, &arguments);
    rc = lk_stock_send(op, SQLOCK_STOCK_SQL_STATUS, &arguments, &result, err);
    if (rc == 0 && result.rows > 0 && result.cells[0].type == SQLOCK_TEXT) {
        look->state = result.cells[0].text[0];
        look->remaining_us = result.cells[1].integer;
    }
    sqlock_result_clear(&result);
    return rc;
}

/* Find out why a reservation could not get the state `same`.  Return 0, with
 * op->is_duplicate, if it is in that state already; otherwise the code to
 * report. */
static int explain(struct lk_stock_operation *op, char same, sqlock_error *err)
{
    struct look look;
    int rc = look_at(op, &look, err);

    if (rc < 0)
        return rc;
    if (look.state == same) {
        op->is_duplicate = true;
        return 0;
    }
    switch (look.state) {
    case '\0':
        return lk_error(err, SQLOCK_ENOTFOUND, "there is no reservation %s",
                        op->order);
    case 'C':
        return lk_error(err, SQLOCK_ECONFLICT, "reservation %s was claimed",
                        op->order);
    case 'X':
        return lk_error(err, SQLOCK_ECONFLICT, "reservation %s was cancelled",
                        op->order);
    case 'E':
        return lk_error(err, SQLOCK_EEXPIRED, "reservation %s has expired",
                        op->order);
    default:
        if (same == 'E' && look.remaining_us > 0)
            return lk_error(err, SQLOCK_ECONFLICT,
                            "reservation %s is not over any more: the "
                            "database's clock was put back",
                            op->order);
        if (same == 'C' && look.remaining_us <= 0)
            return lk_error(err, SQLOCK_EEXPIRED, "reservation %s has expired",
                            op->order);
        return lk_error(
            err, SQLOCK_ERETRY,
            "reservation %s has just been changed by another session",
            op->order);
    }
}

/* --- the quantities --- */

/* Refuse to end a reservation whose entries do not tell any more what it
 * holds. */
static int refuse_entries(const struct lk_stock_operation *op,
                          sqlock_error *err)
{
    return lk_error(err, SQLOCK_EDATABASE,
                    "the entries of reservation %s have been changed or "
                    "removed by other means than sqlock",
                    op->order);
}

/* Give back what an entry has deducted.  If the item was deleted, an event says
 * so and the result is 0, so that the reservation can end. */
static int add_entry(struct lk_stock_operation *op, const sqlock_value *cells,
                     sqlock_error *err)
{
    enum { ITEM = 2, QUANTITY = 4, STATUS = 5 };
    struct lk_stock_line line;
    int rc;

    if (cells[ITEM].type != SQLOCK_TEXT || cells[STATUS].type != SQLOCK_TEXT ||
        cells[STATUS].text[0] != LK_ENTRY_DONE)
        return refuse_entries(op, err);
    rc = lk_stock_line_init(op->stock, &line, cells[ITEM].text,
                            cells[QUANTITY].integer, err);
    if (rc == 0)
        rc = lk_stock_add(op, &line, err);
    if (rc != SQLOCK_ENOTFOUND)
        return rc;
    lk_stock_tell_missing(&op->stock->tables, op->order, line.name,
                          line.quantity);
    return 0;
}

/* Give back the quantities of all entries, and mark these as undone. */
static int give_back(struct lk_stock_operation *op, sqlock_error *err)
{
    struct lk_stock_arguments arguments;
    sqlock_result entries = {0};
    int rc = lk_stock_entries(op, &entries, err);

    if (rc == 0 && entries.rows == 0)
        rc = refuse_entries(op, err);
    for (size_t i = 0; rc == 0 && i < entries.rows; i++)
        rc = add_entry(op, &entries.cells[i * LK_ENTRY_COLUMNS], err);
    sqlock_result_clear(&entries);
    if (rc < 0)
        return rc;
    lk_stock_arguments_of(op, NULL, &arguments);
    return lk_stock_do(op, SQLOCK_STOCK_SQL_UNDO, &arguments, NULL, err);
}

/* --- the three ways to end --- */

static int end_by(struct lk_stock_operation *op, sqlock_stock_kind kind,
                  char state, bool gives_back, sqlock_error *err)
{
    struct lk_stock_arguments arguments;
    int64_t affected = 0;
    int rc;

    lk_stock_arguments_of(op, NULL, &arguments);
    rc = lk_stock_do(op, kind, &arguments, &affected, err);
    if (rc < 0)
        return rc;
    if (affected == 0)
        return explain(op, state, err);
    return gives_back ? give_back(op, err) : 0;
}

static int claim(struct lk_stock_operation *op, sqlock_error *err)
{
    return end_by(op, SQLOCK_STOCK_SQL_CLAIM, 'C', false, err);
}

static int cancel(struct lk_stock_operation *op, sqlock_error *err)
{
    return end_by(op, SQLOCK_STOCK_SQL_CANCEL, 'X', true, err);
}

int lk_reservation_lapse(struct lk_stock_operation *op, sqlock_error *err)
{
    return end_by(op, SQLOCK_STOCK_SQL_LAPSE, 'E', true, err);
}

int lk_reservation_end(struct lk_stock_operation *op, sqlock_tx *tx,
                       lk_stock_body body, sqlock_stock_answer *answer,
                       sqlock_error *err)
{
    int rc;

    rc = lk_answer_begin(answer, err);
    if (rc == 0)
        rc = lk_stock_check(op->stock, tx, err);
    if (rc == 0)
        rc = lk_stock_check_text("the order id", op->order, SQLOCK_ORDER_MAX,
                                 err);
    if (rc < 0)
        return rc;
    rc = lk_stock_run(op, tx, body, err);
    lk_answer_give(answer,
                   (sqlock_stock_answer){.left = -1,
                                         .is_duplicate = op->is_duplicate,
                                         .attempts = op->attempts});
    return rc;
}

int sqlock_stock_claim(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                       sqlock_stock_answer *answer, sqlock_error *err)
{
    struct lk_stock_operation op = {.stock = stock, .order = order};

    return lk_reservation_end(&op, tx, claim, answer, err);
}

int sqlock_stock_cancel(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                        sqlock_stock_answer *answer, sqlock_error *err)
{
    struct lk_stock_operation op = {.stock = stock, .order = order};

    return lk_reservation_end(&op, tx, cancel, answer, err);
}

/* --- status --- */

int sqlock_stock_status(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                        sqlock_stock_state *state, int64_t *remaining_ms,
                        sqlock_error *err)
{
    struct lk_stock_operation op = {.stock = stock, .tx = tx, .order = order};
    struct look look;
    int rc;

    rc = lk_stock_check(stock, tx, err);
    if (rc == 0)
        rc = lk_stock_check_orders(stock, err);
    if (rc == 0)
        rc = lk_stock_check_text("the order id", order, SQLOCK_ORDER_MAX, err);
    if (rc < 0)
        return rc;
    rc = look_at(&op, &look, err);
    if (rc < 0)
        return rc;
    if (look.state == '\0')
        return lk_error(err, SQLOCK_ENOTFOUND, "there is no reservation %s",
                        order);
    if (state != NULL)
        *state = look.state == 'R' && look.remaining_us > 0
                     ? SQLOCK_STOCK_RESERVED
                 : look.state == 'C' ? SQLOCK_STOCK_CLAIMED
                 : look.state == 'X' ? SQLOCK_STOCK_CANCELLED
                                     : SQLOCK_STOCK_EXPIRED;
    if (remaining_ms != NULL)
        *remaining_ms = look.state == 'R' && look.remaining_us > 0
                            ? (look.remaining_us + 999) / 1000
                            : 0;
    return 0;
}
