/*
 * target.c - make one attempt to lock a row, and find out why there was nothing
 * to lock
 *
 * The missing row of a name is inserted on another connection, and committed
 * there: inserted in the transaction, it would disappear with a rollback while
 * others wait for it (F24).
 */
#include "tx/target.h"

#include "base/error.h"

/* The most attempts at a row that is not locked, but invisible in the
 * snapshot. */
#define BLIND_LOOKS 3

int lk_tx_target_lock(sqlock_tx *tx, const struct lk_tx_target *target,
                      bool waits, int64_t deadline_ns, sqlock_error *err)
{
    sqlock_result result = {0};
    bool has_row;
    int rc;

    if (target->name != NULL)
        rc = lk_tx_run(tx, waits ? SQLOCK_SQL_NAME_WAIT : SQLOCK_SQL_NAME_LOCK,
                       &target->arguments, deadline_ns, &result, err);
    else
        rc =
            lk_tx_query_at(tx,
                           (sqlock_statement){.text = waits ? target->wait_text
                                                            : target->free_text,
                                              .is_nowait = !waits},
                           target->row_key, 1, deadline_ns, &result, err);
    has_row = result.rows > 0;
    sqlock_result_clear(&result);
    return rc < 0 ? rc : has_row;
}

static int make_row(sqlock_tx *tx, const struct lk_tx_target *target,
                    sqlock_error *err)
{
    sqlock_result result = {0};
    int rc;

    rc = lk_tx_run_apart(tx, SQLOCK_SQL_NAME_SEED, &target->arguments, &result,
                         err);
    sqlock_result_clear(&result);
    return rc;
}

int lk_tx_target_ensure(sqlock_tx *tx, const struct lk_tx_target *target,
                        sqlock_error *err)
{
    struct lk_run run = {
        .arguments = &target->arguments,
        .deadline_ns = lk_store_deadline(tx->store),
        .is_repeatable = true,
    };
    sqlock_result result = {0};
    bool exists;
    int rc;

    rc = lk_store_run(tx->store, SQLOCK_SQL_READ, &run, &result, err);
    exists = result.rows > 0;
    sqlock_result_clear(&result);
    return rc < 0 || exists ? rc : make_row(tx, target, err);
}

/* Find out on another connection, after there was nothing to lock, whether
 * another session has locked the row.  Return 0 to try again, ERETRY if the row
 * was free BLIND_LOOKS times, or an error. */
static int look_from_apart(sqlock_tx *tx, struct lk_tx_target *target,
                           sqlock_error *err)
{
    sqlock_result result = {0};
    bool is_free;
    int rc;

    rc = lk_tx_run_apart(tx, SQLOCK_SQL_NAME_LOCK, &target->arguments, &result,
                         err);
    is_free = result.rows > 0;
    sqlock_result_clear(&result);
    if (rc < 0)
        return rc;
    target->blind = is_free ? target->blind + 1 : 0;
    if (target->blind < BLIND_LOOKS)
        return 0;
    rc = lk_error(err, SQLOCK_ERETRY,
                  "the transaction's snapshot is older than the row of %s: run "
                  "the transaction again",
                  target->name);
    return lk_tx_end(tx, rc, err);
}

/* End the transaction, because the row was reaped after ensure_rows() (lock.c)
 * and before the last attempt.  That attempt may have locked the gap where
 * others, including our next attempt, would insert the row again. */
static int tell_reaped(sqlock_tx *tx, const struct lk_tx_target *target,
                       sqlock_error *err)
{
    int rc = lk_error(
        err, SQLOCK_ERETRY,
        "the row of %s was reaped at this moment: run the transaction again",
        target->name);

    return lk_tx_end(tx, rc, err);
}

/* Look for the row in a transaction that sees what others have committed, and
 * insert it if it is missing.  Return as lk_tx_target_examine(). */
static int look_for_row(sqlock_tx *tx, struct lk_tx_target *target,
                        sqlock_error *err)
{
    sqlock_result result = {0};
    bool exists;
    int rc;

    rc = lk_tx_run(tx, SQLOCK_SQL_NAME_LOOK, &target->arguments,
                   lk_tx_deadline(tx), &result, err);
    exists = result.rows > 0;
    sqlock_result_clear(&result);
    if (rc < 0 || exists)
        return rc;
    rc = make_row(tx, target, err);
    if (rc < 0 || target->was_made)
        return rc;
    target->was_made = true;
    return 1;
}

static int examine_name(sqlock_tx *tx, struct lk_tx_target *target,
                        sqlock_error *err)
{
    int rc;

    switch (tx->view) {
    case LK_TX_FRESH:
        return look_for_row(tx, target, err);
    case LK_TX_SNAPSHOT:
        rc = lk_tx_target_ensure(tx, target, err);
        return rc < 0 ? rc : look_from_apart(tx, target, err);
    default:
        return tell_reaped(tx, target, err);
    }
}

int lk_tx_target_examine(sqlock_tx *tx, struct lk_tx_target *target,
                         sqlock_error *err)
{
    sqlock_result result = {0};
    bool exists;
    int rc;

    if (target->name != NULL)
        return examine_name(tx, target, err);
    rc = lk_tx_query(tx, target->plain_text, target->row_key, 1, &result, err);
    exists = result.rows > 0;
    sqlock_result_clear(&result);
    if (rc == 0 && !exists)
        rc = lk_error(err, SQLOCK_ENOTFOUND, "there is no such row");
    /* Where the view is unknown, a locked row would have been EBUSY.  So this
     * row is not locked: the snapshot shows a row that was deleted since, and
     * another attempt would not lock it either. */
    if (rc == 0 && tx->view == LK_TX_EITHER &&
        !lk_tx_has(tx, SQLOCK_SQL_WRITE_LOCK))
        rc = lk_tx_end(tx,
                       lk_error(err, SQLOCK_ERETRY,
                                "the transaction's snapshot shows a row that "
                                "was deleted since: run it again"),
                       err);
    return rc;
}
