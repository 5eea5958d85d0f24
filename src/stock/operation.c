/*
 * operation.c - run an operation in the application's transaction or in one of
 * its own; retries are made only here
 */
#include "stock/stock.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/retry.h"

/* --- in a transaction --- */

static int savepoint(sqlock_tx *tx, const char *text, sqlock_error *err)
{
    return sqlock_tx_execute(tx, text, NULL, 0, NULL, err);
}

/* Roll back to the savepoint.  Return 0, or the failure that ended the
 * transaction, so that half of the operation cannot be committed. */
static int go_back(sqlock_tx *tx, sqlock_error *err)
{
    return savepoint(tx, "ROLLBACK TO SAVEPOINT sqlock_stock", err);
}

/* Record the refusal rc as the order's answer.  Return rc, LK_STOCK_KNOWN if
 * the order has entries, or why nothing was recorded.  Either all lines are
 * recorded or none, since two operations that are sent with one order id must
 * not mix their entries. */
static int refuse(struct lk_stock_operation *op, int rc, sqlock_error *err)
{
    sqlock_error own = {0};
    int entered;

    if (op->tx == NULL && op->count > 1)
        entered = lk_stock_run_apart(op, lk_stock_refuse, &own);
    else
        entered = lk_stock_refuse(op, &own);
    if (entered == LK_STOCK_KNOWN && op->tx != NULL) {
        int back = go_back(op->tx, &own);

        entered = back < 0 ? back : entered;
    }
    return entered == 0 ? rc : lk_error_pass(err, &own, entered);
}

/* Return whether an order that was carried out before may get rc when it is
 * sent again: its item was deleted since, or the same change once more exceeds
 * the column or breaks a CHECK of the table. */
static bool may_be_known(int rc)
{
    return rc == SQLOCK_ENOTFOUND || rc == SQLOCK_EINVAL ||
           rc == SQLOCK_EDATABASE;
}

/* Turn the result of an attempt into the operation's answer.  With an order id,
 * the answer recorded before replaces LK_STOCK_KNOWN or a refusal; if there is
 * none, EINSUFFICIENT is recorded now.  Return ERETRY if another session is
 * recording the answer, and any other rc as it is. */
static int settle(struct lk_stock_operation *op, int rc, sqlock_error *err)
{
    sqlock_error own = {0};
    int recalled;

    if (op->count == 0 || op->is_duplicate || op->is_settled)
        return rc; /* of a reservation, or answered already */
    if (rc == SQLOCK_EINSUFFICIENT && op->order != NULL)
        rc = refuse(op, rc, err);
    if (rc != LK_STOCK_KNOWN && (!may_be_known(rc) || op->order == NULL))
        return rc;
    recalled = lk_stock_recall(op, &own);
    if (recalled == LK_STOCK_UNKNOWN)
        return rc == LK_STOCK_KNOWN
                   ? lk_error(err, SQLOCK_ERETRY,
                              "another session is recording the same order, or "
                              "has just rolled it back")
                   : rc;
    return lk_error_pass(err, &own, recalled);
}

/* Return whether one statement does the operation, so that a refusal leaves
 * nothing to undo. */
static bool is_one_step(const struct lk_stock_operation *op)
{
    return op->count == 1 && op->order == NULL && op->kind != LK_KIND_SET;
}

/* Forget what the attempt before has found. */
static void begin_attempt(struct lk_stock_operation *op)
{
    op->is_duplicate = false;
    for (size_t i = 0; i < op->count; i++) {
        op->lines[i].left = -1;
        op->lines[i].result = 0;
    }
}

/* Attempt the operation in the application's transaction, and undo it there
 * after a failure.  A savepoint takes two statements more, so what is one step
 * has none.  Unless the attempt is the last one, EINSUFFICIENT is no answer
 * yet. */
static int attempt_in(struct lk_stock_operation *op, lk_stock_body body,
                      bool is_last, sqlock_error *err)
{
    int rc;

    begin_attempt(op);
    if (is_one_step(op))
        return body(op, err);
    rc = savepoint(op->tx, "SAVEPOINT sqlock_stock", err);
    if (rc < 0)
        return rc;
    rc = body(op, err);
    if (rc != 0) {
        int back = go_back(op->tx, err);

        if (back < 0)
            return back;
        if (rc != SQLOCK_EINSUFFICIENT || is_last)
            rc = settle(op, rc, err);
    }
    /* not sent if the transaction is over */
    (void)savepoint(op->tx, "RELEASE SAVEPOINT sqlock_stock", NULL);
    return rc;
}

/* Return whether the attempt that gave rc found too little, so that what is
 * overdue may help. */
static bool wants_more(const struct lk_stock_operation *op, int rc)
{
    return rc == SQLOCK_EINSUFFICIENT && !op->is_settled && !op->is_duplicate;
}

/* Run the operation in the application's transaction.  After an attempt that
 * finds too little, what is overdue is taken back, and there is another one,
 * until nothing is overdue: an attempt ends at the first line that it
 * refuses. */
static int run_in(struct lk_stock_operation *op, sqlock_tx *tx,
                  lk_stock_body body, sqlock_error *err)
{
    int taken = 1;
    int rc;

    op->tx = tx;
    rc = attempt_in(op, body, false, err);
    while (wants_more(op, rc) && taken > 0) {
        taken = op->stock->take_back(op, err);
        if (taken < 0)
            return taken;
        if (taken > 0 || op->order != NULL)
            rc = attempt_in(op, body, taken == 0, err);
    }
    return rc;
}

static int begin_and_run(struct lk_stock_operation *op, lk_stock_body body,
                         sqlock_error *err)
{
    sqlock_tx *tx = NULL;
    int rc;

    rc = sqlock_tx_begin(&tx, op->stock->registry, err);
    if (rc < 0)
        return rc;
    op->tx = tx;
    rc = body(op, err);
    op->tx = NULL;
    if (rc == 0)
        return sqlock_tx_commit(tx, err);
    (void)sqlock_tx_rollback(tx, NULL);
    return rc;
}

/* Wait until no other thread runs a transaction of this stock.  Return EBUSY if
 * one still does at the deadline.  Threads do not queue in order: the one that
 * has just ended a transaction may begin the next at once, which serves more
 * operations than first come, first served would. */
static int take_turn(sqlock_stock *stock, int64_t deadline_ns,
                     sqlock_error *err)
{
    struct timespec at = lk_timespec(deadline_ns);
    int rc = 0;

    pthread_mutex_lock(&stock->mutex);
    while (stock->is_writing && rc == 0)
        rc = pthread_cond_timedwait(&stock->written, &stock->mutex, &at);
    rc = stock->is_writing
             ? lk_error(err, SQLOCK_EBUSY,
                        "another thread of this process is writing")
             : 0;
    stock->is_writing = true;
    pthread_mutex_unlock(&stock->mutex);
    return rc;
}

static void end_turn(sqlock_stock *stock)
{
    pthread_mutex_lock(&stock->mutex);
    stock->is_writing = false;
    pthread_cond_signal(&stock->written);
    pthread_mutex_unlock(&stock->mutex);
}

int lk_stock_run_apart(struct lk_stock_operation *op, lk_stock_body body,
                       sqlock_error *err)
{
    sqlock_stock *stock = op->stock;
    int rc;

    if (!stock->tables.has_one_writer)
        return begin_and_run(op, body, err);
    rc = take_turn(stock, op->deadline_ns, err);
    if (rc < 0)
        return rc;
    rc = begin_and_run(op, body, err);
    end_turn(stock);
    return rc;
}

/* --- attempts --- */

/* The results after which an operation is retried, and the pauses.  The loop
 * sets the number of attempts, and adds LK_RETRY_UNCERTAIN if there is an order
 * id. */
static const struct lk_retry_policy retrying = {
    .first_us = 500,
    .longest_us = 50000,
    .classes = LK_RETRY_CONFLICT | LK_RETRY_BUSY | LK_RETRY_VERSION |
               LK_RETRY_FULL | LK_RETRY_UNREACHABLE | LK_RETRY_UNSENT,
    .last = LK_RETRY_WITHIN,
};

static int attempt(struct lk_stock_operation *op, lk_stock_body body,
                   sqlock_error *err)
{
    const struct lk_stock_strategy *strategy = op->stock->strategy;
    int rc = LK_STOCK_IN_TRANSACTION;

    begin_attempt(op);
    if (op->count == 1 && op->kind == LK_KIND_DEDUCT && strategy->alone != NULL)
        rc = strategy->alone(op, err);
    return rc == LK_STOCK_IN_TRANSACTION ? lk_stock_run_apart(op, body, err)
                                         : rc;
}

static int try_once(struct lk_stock_operation *op, lk_stock_body body,
                    sqlock_error *err)
{
    int rc = attempt(op, body, err);
    int taken = 1;

    while (wants_more(op, rc) && taken > 0) {
        taken = op->stock->take_back(op, err);
        if (taken != 0)
            rc = taken < 0 ? taken : attempt(op, body, err);
    }
    return settle(op, rc, err);
}

static unsigned classes_of(const struct lk_stock_operation *op)
{
    unsigned classes = retrying.classes;

    if (op->order != NULL)
        classes |= LK_RETRY_UNCERTAIN;
    if (op->count == 0) /* ECONFLICT is a reservation's answer */
        classes &= ~(unsigned)LK_RETRY_VERSION;
    return classes;
}

/* Return whether rc is the order's answer, which an earlier attempt may have
 * given.  Any other result says only why this attempt did not find it out. */
static bool is_answer(const struct lk_stock_operation *op, int rc)
{
    switch (rc) {
    case 0:
    case SQLOCK_EINSUFFICIENT:
    case SQLOCK_ENOTFOUND:
    case SQLOCK_EORDER:
    case SQLOCK_ECONFLICT:
    case SQLOCK_EEXPIRED:
        return !lk_retry_admits(classes_of(op), rc);
    default:
        return false;
    }
}

/* Return the code that ends an operation whose last attempt gave rc.  If an
 * earlier attempt was uncertain, that is rc only if rc is true of the earlier
 * attempt, too, and EUNCERTAIN otherwise. */
static int outcome(const struct lk_stock_operation *op, int rc,
                   bool was_uncertain, sqlock_error *err)
{
    if (!was_uncertain || rc == SQLOCK_EUNCERTAIN || is_answer(op, rc))
        return rc;
    return lk_error(err, SQLOCK_EUNCERTAIN,
                    "the connection was lost during the commit, and the "
                    "database did not confirm in time whether it happened");
}

static int run_until_answered(struct lk_stock_operation *op, lk_stock_body body,
                              sqlock_error *err)
{
    struct lk_retry retry;
    bool was_uncertain = false;
    int rc;

    lk_retry_begin(&retry, &retrying, op->deadline_ns);
    retry.policy.attempts =
        op->attempts_max > 0 ? op->attempts_max : op->stock->options.attempts;
    do {
        rc = try_once(op, body, err);
        op->attempts++;
        was_uncertain = was_uncertain || rc == SQLOCK_EUNCERTAIN;
        retry.policy.classes = classes_of(op);
    } while (lk_retry_goes_on(&retry, rc));
    return outcome(op, rc, was_uncertain, err);
}

int lk_stock_do_again(struct lk_stock_operation *op, sqlock_stock_kind kind,
                      const struct lk_stock_arguments *arguments,
                      int64_t *affected, sqlock_error *err)
{
    struct lk_retry retry;
    sqlock_error own = {0};
    int rc;

    lk_retry_begin(
        &retry, &retrying,
        lk_after_ms(sqlock_monotonic_ns(), op->stock->options.deadline_ms));
    do {
        if (op->attempts++ > 0)
            atomic_fetch_add(&op->stock->retries, 1);
        rc = lk_stock_do(op, kind, arguments, affected, &own);
    } while (lk_retry_goes_on(&retry, rc));
    return lk_error_pass(err, &own, rc);
}

int lk_stock_run(struct lk_stock_operation *op, sqlock_tx *tx,
                 lk_stock_body body, sqlock_error *err)
{
    sqlock_stock *stock = op->stock;
    sqlock_error own = {0};
    int rc;

    rc = op->order != NULL ? lk_stock_check_orders(stock, err) : 0;
    if (rc < 0)
        return rc;
    op->deadline_ns =
        lk_after_ms(sqlock_monotonic_ns(), stock->options.deadline_ms);
    if (tx != NULL) {
        op->attempts = 1;
        rc = run_in(op, tx, body, &own);
    } else {
        rc = run_until_answered(op, body, &own);
    }
    atomic_fetch_add(&stock->operations, 1);
    if (op->attempts > 1)
        atomic_fetch_add(&stock->retries, op->attempts - 1);
    return lk_error_pass(err, &own, lk_stock_told(rc, &own));
}
