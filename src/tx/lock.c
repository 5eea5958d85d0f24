/*
 * lock.c - lock rows, FOR UPDATE or FOR SHARE, until the transaction ends: rows
 * of the application's tables, or the rows of the lock table that stand for
 * names, which are inserted where they are missing
 *
 * The first attempt does not wait and cannot harm the transaction, so it needs
 * neither a savepoint nor a setting.  If it locks nothing, the row is locked by
 * another session, missing (F25), or newer than the transaction's snapshot.
 * Only then a statement waits, with a time limit, in a savepoint to which the
 * transaction can return (F21).
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "base/writer.h"
#include "sqlock/many.h"
#include "tx/target.h"

/* Longest single wait in the database; a longer one is split. */
#define SLICE_MS INT64_C(10000)
/* Percentage of a statement's time limit that such a wait may take, where the
 * client library has such a limit. */
#define STATEMENT_PERCENT 80

/* --- waiting in the database --- */

static int savepoint(sqlock_tx *tx, const char *text, sqlock_error *err)
{
    const sqlock_statement statement = {.text = text};

    return lk_tx_send(tx, &statement, NULL, 0, lk_tx_deadline(tx), NULL, err);
}

/* Return to the savepoint before the wait.  Return 0 if the transaction goes
 * on, otherwise the code that has ended it. */
static int go_back(sqlock_tx *tx, sqlock_error *err)
{
    sqlock_error own = {0};
    int rc;

    rc = savepoint(tx, "ROLLBACK TO SAVEPOINT sqlock_tx", &own);
    if (rc == 0)
        return 0;
    /* The database has rolled back the savepoint, too. */
    if (lk_tx_may_go_back(tx)) {
        rc = lk_error(&own, SQLOCK_ERETRY,
                      "the wait for a lock has ended the transaction: run it "
                      "again");
        lk_tx_end(tx, rc, &own);
    }
    return lk_error_pass(err, &own, tx->over);
}

/* Let the database end the whole transaction after a deadlock, which has undone
 * only what came after the savepoint: other sessions would wait for the
 * remaining locks until the application rolls back.  An error outside any
 * savepoint makes the database release all locks, and leaves the transaction
 * aborted, for the application to roll back. */
static void abort_all(sqlock_tx *tx)
{
    const sqlock_statement statement = {
        .text = "ROLLBACK TO SAVEPOINT sqlock_tx_never_made"};

    if (savepoint(tx, "ROLLBACK TO SAVEPOINT sqlock_tx", NULL) == 0 &&
        savepoint(tx, "RELEASE SAVEPOINT sqlock_tx", NULL) == 0)
        (void)lk_tx_send(tx, &statement, NULL, 0, lk_tx_deadline(tx), NULL,
                         NULL);
}

/* Wait for a row's lock within a savepoint.  Return 1 if the row is locked, 0
 * if there is none, EBUSY if it was not free in wait_ms; any other result ends
 * the call. */
static int wait_in_savepoint(sqlock_tx *tx, const struct lk_tx_target *target,
                             int64_t wait_ms, sqlock_error *err)
{
    int64_t deadline_ns = lk_after_ms(lk_store_deadline(tx->store), wait_ms);
    int limited;
    int rc;
    int end;

    limited = lk_tx_limit(tx, wait_ms, err);
    rc = limited;
    if (rc == 0)
        rc = lk_tx_target_lock(tx, target, true,
                               tx->is_adopted ? LK_NEVER : deadline_ns, err);
    if (rc < 0 && lk_tx_may_go_back(tx)) {
        end = go_back(tx, err);
        if (end < 0)
            rc = end;
    }
    if (rc == SQLOCK_ERETRY)
        abort_all(tx);
    if (limited == 0) {
        bool was_over = tx->over != 0;
        sqlock_error own = {0};

        end = lk_tx_unlimit(tx, &own);
        if (end < 0 && !was_over)
            rc = lk_tx_end(tx, lk_error_pass(err, &own, end), &own);
    }
    if (tx->over == 0) {
        end = savepoint(tx, "RELEASE SAVEPOINT sqlock_tx", rc < 0 ? NULL : err);
        if (end < 0)
            rc = lk_tx_end(tx, end, err);
    }
    return rc;
}

static int wait_in_database(sqlock_tx *tx, const struct lk_tx_target *target,
                            int64_t wait_ms, sqlock_error *err)
{
    int rc = savepoint(tx, "SAVEPOINT sqlock_tx", err);

    return rc < 0 ? rc : wait_in_savepoint(tx, target, wait_ms, err);
}

/* Return the longest single wait.  The server may end it a unit too late. */
static int64_t longest_slice(const sqlock_tx *tx)
{
    int64_t unit = tx->part->wait_unit_ms;
    int64_t longest_ms = (int64_t)tx->store->options.statement_timeout_ms *
                         STATEMENT_PERCENT / 100 / unit * unit;

    if (tx->is_adopted || !tx->part->reads_in_time || longest_ms > SLICE_MS)
        return SLICE_MS;
    return longest_ms > unit ? longest_ms : unit;
}

/* Return how long to wait in the database next: the remaining time, at most the
 * longest slice, in whole units of the driver's limit. */
static int64_t slice_of(const sqlock_tx *tx, int64_t deadline_ns)
{
    int64_t unit = tx->part->wait_unit_ms;
    int64_t left_ms = longest_slice(tx);

    if (deadline_ns != LK_NEVER)
        left_ms = lk_sooner(left_ms, (deadline_ns - sqlock_monotonic_ns()) /
                                         LK_NS_PER_MS);
    return left_ms <= 0 ? 0 : left_ms / unit * unit;
}

static int not_in_time(int64_t wait_ms, const char *what, sqlock_error *err)
{
    if (wait_ms == 0)
        return lk_error(err, SQLOCK_EBUSY,
                        "%s is locked by another transaction", what);
    return lk_error(err, SQLOCK_ETIMEDOUT, "%s was not free within %lld ms",
                    what, (long long)wait_ms);
}

static int lock_until(sqlock_tx *tx, struct lk_tx_target *target,
                      int64_t wait_ms, int64_t deadline_ns, sqlock_error *err)
{
    const char *what = target->name != NULL ? target->name : "the row";
    struct lk_retry retry;

    lk_retry_begin(&retry, &lk_tx_waiting,
                   wait_ms != 0 ? deadline_ns : LK_NEVER);
    for (;;) {
        int64_t slice;
        int rc;

        rc = lk_tx_target_lock(tx, target, false, lk_tx_deadline(tx), err);
        if (rc > 0)
            return 0;
        if (rc == 0)
            rc = lk_tx_target_examine(tx, target, err);
        if (rc > 0)
            continue;
        if (rc < 0 && rc != SQLOCK_EBUSY)
            return rc;
        if (wait_ms == 0 && target->blind == 0)
            return not_in_time(wait_ms, what, err);
        slice =
            target->blind > 0 || wait_ms == 0 ? 0 : slice_of(tx, deadline_ns);
        if (slice > 0) {
            rc = wait_in_database(tx, target, slice, err);
            if (rc > 0)
                return 0;
            if (rc < 0 && rc != SQLOCK_EBUSY)
                return rc;
        }
        if ((slice == 0 || rc == 0) && !lk_retry_goes_on(&retry, SQLOCK_EBUSY))
            return not_in_time(wait_ms, what, err);
    }
}

/* --- a database with one write lock: SQLite --- */

static bool has_write_lock(const sqlock_tx *tx)
{
    return lk_tx_has(tx, SQLOCK_SQL_WRITE_LOCK);
}

static int take_write_lock(sqlock_tx *tx, int64_t wait_ms, int64_t deadline_ns,
                           sqlock_error *err)
{
    const struct lk_arguments none = {0};
    struct lk_retry retry;
    int rc;

    lk_retry_begin(&retry, &lk_tx_waiting, deadline_ns);
    do {
        rc = lk_tx_limit(tx, 0, err);
        if (rc == 0)
            rc = lk_tx_run(tx, SQLOCK_SQL_WRITE_LOCK, &none, lk_tx_deadline(tx),
                           NULL, err);
        (void)lk_tx_unlimit(tx, NULL);
    } while (rc == SQLOCK_EBUSY && wait_ms != 0 &&
             lk_retry_goes_on(&retry, rc));
    if (rc == SQLOCK_EBUSY)
        rc = not_in_time(wait_ms, "the database file", err);
    return rc;
}

/* --- names --- */

struct name {
    const char *text;
    char key[SQLOCK_KEY_SIZE];
    size_t index; /* in the caller's array */
};

static int compare_keys(const void *one, const void *other)
{
    const struct name *a = one;
    const struct name *b = other;

    return strcmp(a->key, b->key);
}

/* Bytes of a name as the table shows it, with NUL. */
#define SHOWN_SIZE 256

static void aim(const sqlock_tx *tx, const struct name *name,
                char shown[SHOWN_SIZE], struct lk_tx_target *target)
{
    *target = (struct lk_tx_target){.name = name->text, .key = name->key};
    lk_store_arguments(tx->store, name->key, &target->arguments);
    lk_argument_text(&target->arguments, SQLOCK_P_REGION, tx->region);
    lk_store_shown(tx->store, shown, SHOWN_SIZE, name->text);
    lk_argument_text(&target->arguments, SQLOCK_P_NAME, shown);
}

/* Insert the missing rows of names before the first attempt, unless the
 * transaction can see rows that are inserted later. */
static int ensure_rows(sqlock_tx *tx, const struct name *names, size_t count,
                       sqlock_error *err)
{
    int rc;

    if (has_write_lock(tx))
        return 0;
    rc = lk_tx_see(tx, err);
    if (rc < 0 || tx->view == LK_TX_FRESH)
        return rc;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        char shown[SHOWN_SIZE];
        struct lk_tx_target target;

        aim(tx, &names[i], shown, &target);
        rc = lk_tx_target_ensure(tx, &target, err);
    }
    return rc;
}

static int lock_name(sqlock_tx *tx, const struct name *name, int64_t wait_ms,
                     int64_t deadline_ns, sqlock_error *err)
{
    char shown[SHOWN_SIZE];
    struct lk_tx_target target;

    aim(tx, name, shown, &target);
    return lock_until(tx, &target, wait_ms, deadline_ns, err);
}

static int read_names(const sqlock_tx *tx, const char *const *names,
                      size_t count, struct name **out, sqlock_error *err)
{
    int rc = 0;

    *out = NULL;
    if (names == NULL || count == 0 || count > SQLOCK_MANY_MAX)
        return lk_error(err, SQLOCK_EINVAL, "give 1 to %d names",
                        SQLOCK_MANY_MAX);
    *out = calloc(count, sizeof **out);
    if (*out == NULL)
        return lk_error_nomem(err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        (*out)[i].text = names[i];
        (*out)[i].index = i;
        rc = sqlock_key_of((*out)[i].key, names[i], tx->store->options.key_rule,
                           err);
    }
    qsort(*out, count, sizeof **out, compare_keys);
    return rc;
}

static int lock_names(sqlock_tx *tx, const struct name *names, size_t count,
                      int64_t wait_ms, bool skip_locked, int *results,
                      sqlock_error *err)
{
    int64_t deadline_ns = wait_ms == SQLOCK_FOREVER
                              ? LK_NEVER
                              : lk_after_ms(sqlock_monotonic_ns(), wait_ms);
    int failed = 0;

    for (size_t i = 0; i < count; i++) {
        int rc;

        if (has_write_lock(tx))
            rc = i == 0 ? take_write_lock(tx, wait_ms, deadline_ns, err)
                        : failed;
        else if (failed == 0 || skip_locked)
            rc = lock_name(tx, &names[i], wait_ms, deadline_ns, err);
        else
            rc = failed;
        if (results != NULL)
            results[names[i].index] = rc;
        /* An error that ends the call is returned rather than EBUSY of a name
         * that was skipped before. */
        if (rc < 0)
            failed = rc;
        if (rc < 0 && rc != SQLOCK_EBUSY)
            skip_locked = false;
    }
    return failed;
}

static int check_wait(int64_t wait_ms, bool skip_locked, sqlock_error *err)
{
    int rc = lk_check_wait(wait_ms, 0, err);

    if (rc < 0)
        return rc;
    if (skip_locked && wait_ms != 0)
        return lk_error(err, SQLOCK_EINVAL,
                        "with skip_locked, wait_ms must be 0");
    return 0;
}

int sqlock_tx_lock(sqlock_tx *tx, const char *const *names, size_t count,
                   int64_t wait_ms, bool skip_locked, int *results,
                   sqlock_error *err)
{
    struct name *sorted = NULL;
    sqlock_error own = {0};
    int rc;

    rc = lk_tx_check(tx, &own);
    if (rc == 0)
        rc = check_wait(wait_ms, skip_locked, &own);
    if (rc == 0)
        rc = read_names(tx, names, count, &sorted, &own);
    if (rc == 0)
        rc = lk_tx_check_nodes(tx, &own);
    if (rc == 0)
        rc = ensure_rows(tx, sorted, count, &own);
    if (rc == 0)
        rc = lk_tx_identify(tx, &own);
    if (rc == 0)
        rc = lock_names(tx, sorted, count, wait_ms, skip_locked, results, &own);
    else
        for (size_t i = 0; results != NULL && names != NULL && i < count; i++)
            results[i] = rc;
    free(sorted);
    return lk_error_pass(err, &own, rc);
}

/* --- rows of the application --- */

static char *select_row(const struct lk_tx_table *table, const char *lock)
{
    struct lk_writer writer;
    FILE *out = lk_writer_open(&writer);

    if (out == NULL)
        return NULL;
    (void)fprintf(out, "SELECT 1 FROM %s WHERE %s = ?%s", table->name,
                  table->key, lock);
    return lk_writer_close(&writer);
}

static int lock_row(sqlock_tx *tx, const struct lk_tx_table *table,
                    const sqlock_value *key, bool share, int64_t wait_ms,
                    sqlock_error *err)
{
    const sqlock_transactions *part = tx->part;
    int64_t deadline_ns = wait_ms == SQLOCK_FOREVER
                              ? LK_NEVER
                              : lk_after_ms(sqlock_monotonic_ns(), wait_ms);
    struct lk_tx_target target = {.row_key = key};
    int rc = 0;

    target.plain_text = select_row(table, "");
    if (!has_write_lock(tx)) {
        target.free_text =
            select_row(table, share ? part->share_free : part->update_free);
        target.wait_text =
            select_row(table, share ? part->share_wait : part->update_wait);
    }
    if (target.plain_text == NULL ||
        (!has_write_lock(tx) &&
         (target.free_text == NULL || target.wait_text == NULL)))
        rc = lk_error_nomem(err);
    else if (!has_write_lock(tx))
        rc = lock_until(tx, &target, wait_ms, deadline_ns, err);
    else {
        rc = take_write_lock(tx, wait_ms, deadline_ns, err);
        if (rc == 0)
            rc = lk_tx_target_examine(tx, &target, err);
    }
    free(target.plain_text);
    free(target.free_text);
    free(target.wait_text);
    return rc;
}

int sqlock_tx_lock_row(sqlock_tx *tx, const sqlock_table *table,
                       const sqlock_value *key, bool share, int64_t wait_ms,
                       sqlock_error *err)
{
    struct lk_tx_row row;
    sqlock_error own = {0};
    int rc = lk_tx_row_read(&row, tx, table, LK_TX_KEY, key, &own);

    if (rc == 0)
        rc = check_wait(wait_ms, false, &own);
    if (rc == 0)
        rc = lk_tx_check_nodes(tx, &own);
    if (rc == 0)
        rc = lock_row(tx, &row.table, &row.key, share, wait_ms, &own);
    return lk_error_pass(err, &own, rc);
}
