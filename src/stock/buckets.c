/*
 * buckets.c - the strategy BUCKETS: one item in several rows
 *
 * A process deducts from a bucket of its own, and does not wait for processes
 * with other buckets; its threads go together where they would wait for each
 * other (queue.c).  A process that finds too little there locks the item's row
 * and all buckets, deducts from the sum, and spreads the rest evenly: so no
 * request is refused while other buckets have enough.  The quantity of an item
 * is the sum of its row and its buckets.  Additions go to the row, and are
 * moved to the buckets when one of these runs out.
 *
 * Nobody owns a bucket, so nothing is lost with a process that dies.  A process
 * finds that another one deducts from its bucket by what is left there, and
 * then takes another bucket, until it is alone in one: a row's lock is held
 * until its commit is on the disk, so two in one bucket sell half.
 */
#include "stock/combine.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/owner.h"
#include "base/random.h"
#include "base/writer.h"

/* The least quantity of a bucket, if there are several: a smaller quantity is
 * spread over fewer buckets, since each that runs out costs a transaction. */
#define LEAST 8

/* How often a process finds somebody else in its bucket before it leaves, if it
 * has been alone there as often: who has come last leaves first. */
#define TRUST_MOST 8

/* --- the process's own bucket --- */

static int64_t draw(int64_t count)
{
    return lk_random_between(0, count - 1);
}

/* Return the calling thread's home for an item.  Rounds of combined requests
 * have one home for each lane, and each thread has one for its transactions.
 * The caller holds the stock's mutex. */
static struct lk_stock_home *find_home(const struct lk_stock_operation *op,
                                       const struct lk_stock_line *line)
{
    sqlock_stock *stock = op->stock;
    uint64_t lane = op->lane != 0 ? op->lane : lk_thread_id();
    uint64_t who = lk_hash_on(lk_hash_text(line->name), &lane, sizeof lane);
    struct lk_stock_home *home = &stock->homes[who % LK_STOCK_HOMES];

    if (home->who != who)
        *home = (struct lk_stock_home){
            .who = who,
            .bucket = draw(stock->options.buckets),
            .over = stock->options.buckets,
            .expected = -1,
        };
    return home;
}

static int64_t bucket_of(const struct lk_stock_operation *op,
                         const struct lk_stock_line *line)
{
    int64_t bucket;

    pthread_mutex_lock(&op->stock->mutex);
    bucket = find_home(op, line)->bucket;
    pthread_mutex_unlock(&op->stock->mutex);
    return bucket;
}

/* Note what is left in the bucket after a deduction, and take another bucket if
 * others deduct from this one. */
static void note_left(const struct lk_stock_operation *op,
                      const struct lk_stock_line *line, int64_t bucket,
                      int64_t left)
{
    int64_t all = op->stock->options.buckets;
    struct lk_stock_home *home;

    pthread_mutex_lock(&op->stock->mutex);
    home = find_home(op, line);
    if (home->expected >= 0 && home->bucket == bucket) {
        if (left + line->quantity == home->expected)
            home->trust += home->trust < TRUST_MOST;
        else if (home->trust > 0)
            home->trust--;
        else
            /* More than twice the least was spread over all. */
            home->bucket = draw(left > INT64_C(2) * LEAST ? all : home->over);
    }
    home->expected = home->bucket == bucket ? left : -1;
    pthread_mutex_unlock(&op->stock->mutex);
}

/* Note that the item was spread over so many buckets. */
static void note_spread(const struct lk_stock_operation *op,
                        const struct lk_stock_line *line, int64_t over)
{
    struct lk_stock_home *home;

    pthread_mutex_lock(&op->stock->mutex);
    home = find_home(op, line);
    home->over = over;
    home->expected = -1;
    if (home->bucket >= over)
        home->bucket = draw(over);
    pthread_mutex_unlock(&op->stock->mutex);
}

/* --- all buckets --- */

/* Lock all buckets of an item whose row this transaction has locked, and add
 * what is in them to pile->there. */
static int lock_buckets(struct lk_stock_operation *op,
                        const struct lk_stock_line *line,
                        struct lk_stock_pile *pile, sqlock_error *err)
{
    struct lk_stock_arguments arguments;
    sqlock_result result = {0};
    int rc;

    pile->last = -1;
    lk_stock_arguments(op, line, &arguments);
    rc = lk_stock_send(op, SQLOCK_STOCK_SQL_BUCKETS, &arguments, &result, err);
    for (size_t i = 0; rc == 0 && i < result.rows; i++) {
        pile->last = result.cells[2 * i].integer;
        if (__builtin_add_overflow(pile->there, result.cells[2 * i + 1].integer,
                                   &pile->there))
            rc = lk_error(err, SQLOCK_EINVAL,
                          "the quantity of %s exceeds a 64-bit integer",
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
    struct lk_stock_pile pile = {0};
    int rc;

    *gathered = 0;
    rc = lock_buckets(op, line, &pile, err);
    if (rc < 0 || pile.there == 0)
        return rc;
    rc = spread(op, line, 0, pile.last + 1, pile.last, err);
    if (rc == 0)
        *gathered = pile.there;
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
    rc = lk_stock_add_to_row(op, &back, err);
    if (rc < 0)
        return rc;
    *there = back.left;
    return 1;
}

/* Lock the item's row and all buckets, of which one had too little. */
static int lock(struct lk_stock_operation *op, struct lk_stock_line *line,
                struct lk_stock_pile *pile, sqlock_error *err)
{
    int rc = lk_stock_ask(op, SQLOCK_STOCK_SQL_LOCK, line, &pile->in_row, err);

    atomic_fetch_add(&op->stock->rebalances, 1);
    if (rc <= 0)
        return rc;
    pile->there = pile->in_row;
    rc = lock_buckets(op, line, pile, err);
    return rc < 0 ? rc : 1;
}

/* Deduct from what is locked, and spread the rest. */
static int deduct_locked(struct lk_stock_operation *op,
                         struct lk_stock_line *line,
                         const struct lk_stock_pile *pile, sqlock_error *err)
{
    struct lk_stock_line nothing = *line;
    struct lk_stock_arguments arguments;
    int64_t rest = pile->there - line->quantity;
    int64_t over = op->stock->options.buckets;
    int rc;

    if (rest / LEAST < over)
        over = rest < LEAST ? 1 : rest / LEAST;
    rc = spread(op, line, rest, over, pile->last, err);
    if (rc < 0)
        return rc;
    note_spread(op, line, over);
    if (pile->in_row == 0)
        return 0;
    nothing.quantity = 0;
    lk_stock_arguments(op, &nothing, &arguments);
    return lk_stock_do(op, SQLOCK_STOCK_SQL_ASSIGN, &arguments, NULL, err);
}

static int take_from_all(struct lk_stock_operation *op,
                         struct lk_stock_line *line, sqlock_error *err)
{
    struct lk_stock_pile pile = {0};
    int rc = lock(op, line, &pile, err);

    if (rc == 0)
        return lk_stock_no_item(line, err);
    if (rc < 0)
        return rc;
    if (pile.there < line->quantity)
        return lk_stock_insufficient(line, pile.there, err);
    lk_stock_changed(line, -line->quantity, pile.there - line->quantity);
    return deduct_locked(op, line, &pile, err);
}

/* --- one bucket --- */

/* Read what is left of the item, if the statement did not tell and the
 * application wants to know.  After a commit no failure may be reported any
 * more. */
static int learn_left(struct lk_stock_operation *op,
                      const struct lk_stock_line *line, int64_t *left,
                      sqlock_error *err)
{
    int rc;

    if (*left >= 0 || !op->wants_left)
        return 0;
    rc = lk_stock_ask_total(op, line, left, op->tx != NULL ? err : NULL);
    return op->tx != NULL && rc < 0 ? rc : 0;
}

static sqlock_stock_kind kind_of(const struct lk_stock_operation *op,
                                 const char *entries)
{
    if (entries == NULL)
        return SQLOCK_STOCK_SQL_BUCKET_DEDUCT;
    return op->wants_left ? SQLOCK_STOCK_SQL_BUCKET_COMBINE_TOTAL
                          : SQLOCK_STOCK_SQL_BUCKET_COMBINE;
}

static int deduct(struct lk_stock_operation *op, struct lk_stock_line *line,
                  const char *entries, int64_t *left, sqlock_error *err)
{
    int64_t bucket = bucket_of(op, line);
    struct lk_stock_arguments arguments;
    sqlock_result result = {0};
    int rc;

    *left = -1;
    lk_stock_arguments(op, line, &arguments);
    lk_stock_argument_integer(&arguments, SQLOCK_SP_BUCKET, bucket);
    lk_stock_argument(&arguments, SQLOCK_SP_ROWS, entries);
    rc = lk_stock_send(op, kind_of(op, entries), &arguments, &result, err);
    if (rc == 0 && (result.rows > 0 || result.affected > 0)) {
        if (result.rows > 0)
            note_left(op, line, bucket, result.cells[0].integer);
        if (result.rows > 0 && result.columns > 1)
            *left = result.cells[1].integer;
        rc = learn_left(op, line, left, err);
        rc = rc < 0 ? rc : 1;
    } else if (rc == SQLOCK_EBUSY && entries != NULL) {
        rc = LK_STOCK_KNOWN; /* or the row is locked */
    }
    sqlock_result_clear(&result);
    return rc;
}

/* --- the strategy --- */

static int take(struct lk_stock_operation *op, struct lk_stock_line *line,
                sqlock_error *err)
{
    int64_t left = -1;
    int rc = deduct(op, line, NULL, &left, err);

    if (rc < 0)
        return rc;
    if (rc == 0)
        return take_from_all(op, line, err);
    lk_stock_changed(line, -line->quantity, left);
    return 0;
}

/* On a database with one writer db/group.c commits the statements of all
 * threads together, and its leader goes on without waking another thread for
 * each round.  Only an order, which takes a transaction, is combined there. */
static int alone(struct lk_stock_operation *op, sqlock_error *err)
{
    struct lk_stock_line *line = &op->lines[0];
    int64_t left = -1;
    int rc;

    if (op->order != NULL || !op->stock->tables.has_one_writer)
        return lk_combine_alone(op, err);
    rc = deduct(op, line, NULL, &left, err);
    if (rc == 0)
        return LK_STOCK_IN_TRANSACTION;
    if (rc < 0)
        return rc;
    lk_stock_changed(line, -line->quantity, left);
    return 0;
}

static const struct lk_stock_rows buckets = {
    .deduct = deduct,
    .combines = SQLOCK_STOCK_SQL_BUCKET_COMBINE,
    .lock = lock,
    .deduct_locked = deduct_locked,
    .lanes = 2,
};

const struct lk_stock_strategy lk_stock_buckets = {
    .take = take,
    .alone = alone,
    .rows = &buckets,
};
