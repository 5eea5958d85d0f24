/*
 * buckets.c - the strategy BUCKETS: one item in several rows
 *
 * A thread deducts from a bucket of its own, and does not wait for threads with
 * other buckets.  A thread that finds too little there locks the item's row and
 * all buckets, deducts from the sum, and spreads the rest evenly: so no request
 * is refused while other buckets have enough.  The quantity of an item is the
 * sum of its row and its buckets.  Additions go to the row, and are moved to
 * the buckets when one of these runs out.
 */
#include "stock/stock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/owner.h"
#include "base/writer.h"

/* The buckets of an item, locked. */
struct buckets {
    int64_t total;
    int64_t last; /* the greatest bucket number; -1: there is none */
};

/* Return the number of the calling thread's own bucket.  Threads of a process,
 * and processes started one after another, get neighbouring buckets. */
static int64_t home_of(const sqlock_stock *stock)
{
    return (int64_t)(((uint64_t)getpid() + lk_thread_id()) %
                     stock->options.buckets);
}

/* --- all buckets --- */

/* Lock all buckets of an item whose row this transaction has locked, and sum
 * them up. */
static int lock_buckets(struct lk_stock_operation *op,
                        const struct lk_stock_line *line,
                        struct buckets *buckets, sqlock_error *err)
{
    struct lk_stock_arguments arguments;
    sqlock_result result = {0};
    int rc;

    lk_stock_arguments(op, line, &arguments);
    rc = lk_stock_send(op, SQLOCK_STOCK_SQL_BUCKETS, &arguments, &result, err);
    for (size_t i = 0; rc == 0 && i < result.rows; i++) {
        buckets->last = result.cells[2 * i].integer;
        if (__builtin_add_overflow(buckets->total,
                                   result.cells[2 * i + 1].integer,
                                   &buckets->total))
            rc = lk_error(
                err, SQLOCK_EINVAL,
                "the sum of the buckets of %s exceeds a 64-bit integer",
                line->name);
    }
    sqlock_result_clear(&result);
    return rc;
}

/* Spread `quantity` evenly over the first `over` buckets, and empty those after
 * them, of which `last` is the last. */
static int spread(struct lk_stock_operation *op,
                  const struct lk_stock_line *line, int64_t quantity,
                  int64_t over, int64_t last, sqlock_error *err)
{
    struct lk_stock_arguments arguments;
    struct lk_writer writer;
    FILE *stream = lk_writer_open(&writer);
    char *rows;
    int64_t end = last >= over ? last + 1 : over;
    int rc;

    if (stream == NULL)
        return lk_error_nomem(err);
    for (int64_t i = 0; i < end; i++) {
        int64_t part = i < over ? quantity / over + (i < quantity % over) : 0;

        (void)fprintf(stream, "%s{\"b\":%" PRId64 ",\"q\":%" PRId64 "}",
                      i == 0 ? "[" : ",", i, part);
    }
    (void)fputc(']', stream);
    rows = lk_writer_close(&writer);
    if (rows == NULL)
        return lk_error_nomem(err);
    lk_stock_arguments(op, line, &arguments);
    lk_stock_argument(&arguments, SQLOCK_SP_ROWS, rows);
    rc = lk_stock_do(op, SQLOCK_STOCK_SQL_SPREAD, &arguments, NULL, err);
    free(rows);
    return rc;
}

int lk_buckets_gather(struct lk_stock_operation *op, struct lk_stock_line *line,
                      int64_t *gathered, sqlock_error *err)
{
    struct buckets buckets = {.last = -1};
    int rc;

    *gathered = 0;
    rc = lock_buckets(op, line, &buckets, err);
    if (rc < 0 || buckets.total == 0)
        return rc;
    rc = spread(op, line, 0, buckets.last + 1, buckets.last, err);
    if (rc == 0)
        *gathered = buckets.total;
    return rc;
}

int lk_buckets_empty(struct lk_stock_operation *op, struct lk_stock_line *line,
                     int64_t *there, sqlock_error *err)
{
    struct lk_stock_line back = *line;
    int rc;

    if (!op->stock->tables.is_ours)
        return 0;
    rc = lk_buckets_gather(op, line, &back.quantity, err);
    if (rc < 0 || back.quantity == 0)
        return rc;
    rc = lk_stock_add(op, &back, err);
    if (rc < 0)
        return rc;
    *there = back.left;
    return 1;
}

/* Lock the item's row and buckets, deduct from their sum, and spread the
 * rest. */
static int take_from_all(struct lk_stock_operation *op,
                         struct lk_stock_line *line, sqlock_error *err)
{
    struct lk_stock_line nothing = *line;
    struct lk_stock_arguments arguments;
    struct buckets buckets = {.last = -1};
    int64_t in_row = 0;
    int64_t total;
    int rc;

    rc = lk_stock_ask(op, SQLOCK_STOCK_SQL_LOCK, line, &in_row, err);
    if (rc == 0)
        return lk_stock_no_item(line, err);
    if (rc == 1)
        rc = lock_buckets(op, line, &buckets, err);
    if (rc < 0)
        return rc;
    if (__builtin_add_overflow(in_row, buckets.total, &total))
        return lk_error(err, SQLOCK_EINVAL,
                        "the quantity of %s exceeds a 64-bit integer",
                        line->name);
    if (total < line->quantity)
        return lk_stock_insufficient(line, total, err);
    lk_stock_changed(line, -line->quantity, total - line->quantity);
    rc = spread(op, line, line->left, op->stock->options.buckets, buckets.last,
                err);
    if (rc < 0 || in_row == 0)
        return rc;
    nothing.quantity = 0;
    lk_stock_arguments(op, &nothing, &arguments);
    return lk_stock_do(op, SQLOCK_STOCK_SQL_ASSIGN, &arguments, NULL, err);
}

/* --- one bucket --- */

/* Deduct from the calling thread's own bucket and, unless NULL, record `entry`,
 * a JSON array, in the same statement.  Return 1 if done; 0 if the bucket has
 * too little; LK_STOCK_KNOWN if the order may have entries already; or a
 * negative code. */
static int take_from_one(struct lk_stock_operation *op,
                         struct lk_stock_line *line, const char *entry,
                         sqlock_error *err)
{
    sqlock_stock_kind kind = entry != NULL ? SQLOCK_STOCK_SQL_BUCKET_COMBINE
                                           : SQLOCK_STOCK_SQL_BUCKET_DEDUCT;
    struct lk_stock_arguments arguments;
    sqlock_result result = {0};
    int64_t left = -1;
    int rc;

    lk_stock_arguments(op, line, &arguments);
    lk_stock_argument_integer(&arguments, SQLOCK_SP_BUCKET, home_of(op->stock));
    lk_stock_argument(&arguments, SQLOCK_SP_ROWS, entry);
    rc = lk_stock_send(op, kind, &arguments, &result, err);
    if (rc == 0 && result.rows > 0 && result.cells[0].type == SQLOCK_INT64)
        left = result.cells[0].integer;
    if (rc == 0 && (result.rows > 0 || result.affected > 0)) {
        lk_stock_changed(line, -line->quantity, left);
        rc = 1;
    } else if (rc == SQLOCK_EBUSY && entry != NULL) {
        rc = LK_STOCK_KNOWN;
    }
    sqlock_result_clear(&result);
    return rc;
}

/* Set line->left to what is left of the item, if the statement did not return
 * it and the application or an entry needs it. */
static int learn_left(struct lk_stock_operation *op, struct lk_stock_line *line,
                      sqlock_error *err)
{
    int rc;

    if (line->left >= 0 || (!op->wants_left && op->order == NULL))
        return 0;
    rc = lk_stock_ask(op, SQLOCK_STOCK_SQL_TOTAL, line, &line->left, err);
    return rc < 0 ? rc : 0;
}

static int take(struct lk_stock_operation *op, struct lk_stock_line *line,
                sqlock_error *err)
{
    int rc = take_from_one(op, line, NULL, err);

    if (rc == 1)
        return learn_left(op, line, err);
    if (rc < 0)
        return rc;
    atomic_fetch_add(&op->stock->rebalances, 1);
    return take_from_all(op, line, err);
}

void lk_buckets_include(struct lk_stock_operation *op,
                        struct lk_stock_line *line)
{
    line->left = -1;
    (void)learn_left(op, line, NULL);
}

static int alone_with_order(struct lk_stock_operation *op, sqlock_error *err)
{
    struct lk_stock_line *line = &op->lines[0];
    char *entries;
    int rc;

    if (!lk_stock_has(&op->stock->tables, SQLOCK_STOCK_SQL_BUCKET_COMBINE))
        return LK_STOCK_IN_TRANSACTION;
    /* To BALANCE the statement adds the total. */
    lk_stock_changed(line, -line->quantity, 0);
    entries = lk_entries_write(op, true);
    if (entries == NULL)
        return lk_error_nomem(err);
    rc = take_from_one(op, line, entries, err);
    free(entries);
    if (rc == 0)
        return LK_STOCK_IN_TRANSACTION;
    return rc == 1 ? 0 : rc;
}

static int alone(struct lk_stock_operation *op, sqlock_error *err)
{
    int rc;

    if (op->order != NULL)
        return alone_with_order(op, err);
    rc = take_from_one(op, &op->lines[0], NULL, err);
    if (rc == 0)
        return LK_STOCK_IN_TRANSACTION;
    if (rc < 0)
        return rc;
    /* It is committed: no failure may be reported any more. */
    (void)learn_left(op, &op->lines[0], NULL);
    return 0;
}

const struct lk_stock_strategy lk_stock_buckets = {
    .take = take,
    .alone = alone,
};
