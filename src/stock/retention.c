/*
 * retention.c - remove old reservations and the entries of old orders, in pages
 * by time, so that each statement reads and removes a limited number of rows
 *
 * The entries of an order are removed all at once, and only when no reservation
 * needs them: an open one, one that ended within the retention time, or one of
 * another stock.
 */
#include "stock/stock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "base/json.h"
#include "base/writer.h"

#define PAGE_ROWS 1000
#define AGE_MAX_MS (INT64_C(3650) * 24 * 3600 * 1000)

/* Columns of SQLOCK_STOCK_SQL_OLD. */
enum { ORDER, CREATED_US, LINE, IS_KEPT, OLD_COLUMNS };

struct reap {
    sqlock_stock *stock;
    sqlock_stock_reap_options options;
    int64_t age_us;
    sqlock_stock_reaped done;
};

static int complete(struct reap *reap, const sqlock_stock_reap_options *given,
                    sqlock_error *err)
{
    sqlock_stock_reap_options *options = &reap->options;
    static const struct lk_sized sized = {
        "sqlock_stock_reap_options", "SQLOCK_STOCK_REAP_INIT", sizeof *options};
    int rc = lk_sized_read(options, &sized, given, err);

    if (rc < 0)
        return rc;
    if (options->retention_ms == 0)
        options->retention_ms = SQLOCK_STOCK_RETENTION_DEFAULT_MS;
    if (options->retention_ms < SQLOCK_STOCK_RETENTION_MIN_MS ||
        options->retention_ms > AGE_MAX_MS)
        return lk_error(err, SQLOCK_EINVAL,
                        "a retention of %" PRId64
                        " ms: 1 hour to 10 years are allowed",
                        options->retention_ms);
    reap->age_us = options->retention_ms * 1000;
    return 0;
}

/* Call the application's callback after a page.  Return ECANCELED if it wants
 * no more. */
static int go_on(const struct reap *reap, sqlock_error *err)
{
    const sqlock_stock_reap_options *options = &reap->options;

    if (options->progress == NULL ||
        options->progress(options->context, &reap->done) == 0)
        return 0;
    return lk_error(
        err, SQLOCK_ECANCELED,
        "ended by the caller; the rows removed so far stay removed");
}

/* --- removing --- */

/* Remove the old rows of the orders in a JSON array of order ids, and add their
 * number to *removed. */
static int remove_rows(struct reap *reap, sqlock_stock_kind kind,
                       const char *orders, int64_t *removed, sqlock_error *err)
{
    struct lk_stock_operation op = {.stock = reap->stock};
    struct lk_stock_arguments arguments;
    int64_t affected = 0;
    int rc;

    lk_stock_arguments_of(&op, NULL, &arguments);
    lk_stock_argument(&arguments, SQLOCK_SP_ROWS, orders);
    lk_stock_argument_integer(&arguments, SQLOCK_SP_AGE, reap->age_us);
    rc = lk_stock_do_again(&op, kind, &arguments, &affected, err);
    *removed += affected;
    return rc;
}

/* Return the order ids of the page's rows that may be removed, as a JSON array,
 * and set *rows to the number of those rows.  Rows of one order are adjacent.
 * The caller frees the array; NULL: out of memory. */
static char *write_orders(const sqlock_result *page, int64_t *rows)
{
    const char *last = NULL;
    struct lk_writer writer;
    FILE *stream = lk_writer_open(&writer);

    *rows = 0;
    if (stream == NULL)
        return NULL;
    (void)fputc('[', stream);
    for (size_t i = 0; i < page->rows; i++) {
        const sqlock_value *cells = &page->cells[i * page->columns];

        if (page->columns == OLD_COLUMNS && cells[IS_KEPT].integer != 0)
            continue;
        ++*rows;
        if (last != NULL && strcmp(last, cells[ORDER].text) == 0)
            continue;
        if (last != NULL)
            (void)fputc(',', stream);
        last = cells[ORDER].text;
        lk_json_text(stream, last);
    }
    (void)fputc(']', stream);
    return lk_writer_close(&writer);
}

static int remove_page(struct reap *reap, bool is_of_reservations,
                       const sqlock_result *page, sqlock_error *err)
{
    sqlock_stock_kind kind = is_of_reservations
                                 ? SQLOCK_STOCK_SQL_FORGET_RESERVATIONS
                                 : SQLOCK_STOCK_SQL_FORGET_ENTRIES;
    int64_t *removed =
        is_of_reservations ? &reap->done.reservations : &reap->done.entries;
    int64_t rows = 0;
    char *orders;
    int rc = 0;

    if (page->rows == 0)
        return 0;
    orders = write_orders(page, &rows);
    if (orders == NULL)
        return lk_error_nomem(err);
    if (reap->options.dry_run)
        *removed += rows;
    else if (rows > 0)
        rc = remove_rows(reap, kind, orders, removed, err);
    free(orders);
    return rc < 0 ? rc : go_on(reap, err);
}

/* --- pages --- */

static int read_old(const struct reap *reap, struct lk_stock_page *at,
                    sqlock_result *page, sqlock_error *err)
{
    struct lk_stock_operation op = {.stock = reap->stock, .order = at->after};
    struct lk_stock_arguments arguments;
    int rc;

    lk_stock_arguments_of(&op, NULL, &arguments);
    lk_stock_argument_integer(&arguments, SQLOCK_SP_LIMIT, PAGE_ROWS);
    lk_stock_argument_integer(&arguments, SQLOCK_SP_LINE, at->line);
    lk_stock_argument_integer(&arguments, SQLOCK_SP_AGE, reap->age_us);
    lk_stock_argument_integer(&arguments, SQLOCK_SP_AFTER, at->after_us);
    rc = lk_stock_send(&op, SQLOCK_STOCK_SQL_OLD, &arguments, page, err);
    if (rc == 0 && page->rows > 0) {
        const sqlock_value *last = &page->cells[(page->rows - 1) * OLD_COLUMNS];

        lk_stock_page_next(at, last[ORDER].text, last[CREATED_US].integer);
        at->line = last[LINE].integer;
    }
    return rc;
}

/* Remove the old reservations that ended in this state; with NULL, the old
 * entries of orders. */
static int reap_all(struct reap *reap, const char *state, sqlock_error *err)
{
    struct lk_stock_page at = {0};
    size_t rows;
    int rc;

    do {
        sqlock_result page = {0};

        if (state != NULL)
            rc = lk_stock_due(reap->stock, state, reap->age_us, PAGE_ROWS, &at,
                              &page, err);
        else
            rc = read_old(reap, &at, &page, err);
        if (rc == 0)
            rc = remove_page(reap, state != NULL, &page, err);
        rows = page.rows;
        sqlock_result_clear(&page);
    } while (rc == 0 && rows == PAGE_ROWS);
    return rc;
}

int sqlock_stock_reap(sqlock_stock *stock,
                      const sqlock_stock_reap_options *options,
                      sqlock_stock_reaped *reaped, sqlock_error *err)
{
    /* NULL stands for the entries: last, since reservations keep some */
    static const char *const states[] = {"C", "X", "E", NULL};
    static const struct lk_sized sized = {
        "sqlock_stock_reaped", "SQLOCK_STOCK_REAPED_INIT", sizeof *reaped};
    struct reap reap = {.stock = stock, .done = SQLOCK_STOCK_REAPED_INIT};
    int rc = reaped != NULL ? lk_sized_check(&sized, reaped, err) : 0;

    if (rc < 0)
        return rc;
    rc = lk_stock_check(stock, NULL, err);
    if (rc == 0)
        rc = complete(&reap, options, err);
    if (rc == 0)
        rc = lk_stock_check_orders(stock, err);
    for (size_t i = 0; rc == 0 && i < sizeof states / sizeof *states; i++)
        rc = reap_all(&reap, states[i], err);
    if (reaped != NULL)
        lk_sized_write(reaped, &reap.done);
    return rc;
}
