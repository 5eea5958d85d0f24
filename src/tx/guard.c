/*
 * guard.c - let the database check a lease inside the transaction, and keep the
 * lease's row unchanged until the end
 *
 * One statement locks the row in share mode if the lease is still ours, and
 * does not wait.  If it returns no row, the lease is lost, or another session
 * has the row locked at this moment (usually a renewal), or an old snapshot
 * does not show the row; a query on a connection of the registry finds out
 * which of these it is.
 *
 * The commit checks again if the transaction may have released the row: by
 * ROLLBACK TO SAVEPOINT, or by a commit of the application's, after which
 * another transaction has begun on the same connection.  On a registry's
 * connection that has run only statements about rows, neither is possible.
 * Some databases can tell that the row is still locked without reading it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "lease/options.h"
#include "lease/row.h"
#include "tx/tx.h"

/* After this many attempts without a row, an old snapshot is taken to be the
 * reason, not a renewal under way. */
#define SNAPSHOT_LOOKS 3

/* Report the lease as lost, and name its present holder in the message. */
static int lost(const sqlock_tx *tx, const sqlock_lock *lock, sqlock_error *err)
{
    char holder[LK_HOLDER_SIZE];

    if (lk_row_holder(tx->store, sqlock_key(lock), holder, NULL) < 0)
        (void)snprintf(holder, sizeof holder, "one that cannot be found out");
    else if (holder[0] == '\0')
        (void)snprintf(holder, sizeof holder, "nobody");
    return lk_error(err, SQLOCK_ELOST,
                    "the lease of %.200s is lost: it is held by %s now",
                    sqlock_name(lock), holder);
}

static int expired(const sqlock_lock *lock, sqlock_error *err)
{
    return lk_error(err, SQLOCK_EEXPIRED,
                    "the lease of %.200s expired before it was guarded",
                    sqlock_name(lock));
}

/* Find out why the guard found no row, after `looks` attempts.  Return 0 if the
 * lease looks valid: try again.  If the lease is not ours any more, set *over
 * to ELOST or EEXPIRED, and return that.  Other errors are about the
 * transaction, or the query. */
static int examine(sqlock_tx *tx, const sqlock_lock *lock,
                   const struct lk_lease *lease, unsigned looks, int *over,
                   sqlock_error *err)
{
    struct lk_row row;
    int rc = lk_lease_read(tx->store, lease, &row, err);

    if (rc == SQLOCK_ELOST)
        *over = lost(tx, lock, err);
    else if (rc == SQLOCK_EEXPIRED)
        *over = expired(lock, err);
    if (rc < 0)
        return rc;
    rc = lk_tx_identify(tx, err);
    if (rc == 0)
        rc = lk_tx_see(tx, err);
    if (rc == 0 && tx->view == LK_TX_SNAPSHOT && looks >= SNAPSHOT_LOOKS)
        rc = lk_error(err, SQLOCK_ERETRY,
                      "the lease of %.200s was renewed after the transaction's "
                      "snapshot, or its row is locked: guard first, and run it "
                      "again",
                      sqlock_name(lock));
    return rc;
}

/* Send the guard.  Return 1 if it has locked the row (*is_over: the lease has
 * expired), 0 if it has found no row, or an error. */
static int send(sqlock_tx *tx, const struct lk_arguments *arguments,
                bool *is_over, sqlock_error *err)
{
    sqlock_result result = {0};
    bool has_row;
    int rc;

    rc = lk_tx_limit(tx, 0, err);
    if (rc < 0)
        return rc;
    rc = lk_tx_run(tx, SQLOCK_SQL_TX_GUARD, arguments, lk_tx_deadline(tx),
                   &result, err);
    (void)lk_tx_unlimit(tx, NULL);
    has_row = result.rows > 0;
    *is_over = has_row && result.cells[0].integer == 0;
    sqlock_result_clear(&result);
    return rc < 0 ? rc : has_row;
}

static void fill(const sqlock_tx *tx, const sqlock_lock *lock,
                 const char *client_id, int64_t token,
                 struct lk_arguments *arguments)
{
    lk_store_arguments(tx->store, sqlock_key(lock), arguments);
    lk_argument_text(arguments, SQLOCK_P_CLIENT, client_id);
    lk_argument_integer(arguments, SQLOCK_P_TOKEN, token);
}

static int guard(sqlock_tx *tx, const sqlock_lock *lock,
                 const struct lk_lease *lease, int *over, sqlock_error *err)
{
    int64_t deadline_ns = lk_store_deadline(tx->store);
    struct lk_arguments arguments;
    struct lk_retry retry;

    lk_retry_begin(&retry, &lk_tx_waiting, deadline_ns);
    fill(tx, lock, lease->client_id, lease->answered.token, &arguments);
    for (unsigned looks = 1;; looks++) {
        bool is_over;
        int rc;

        rc = send(tx, &arguments, &is_over, err);
        if (rc > 0)
            return is_over ? (*over = expired(lock, err)) : 0;
        if (rc == 0)
            rc = examine(tx, lock, lease, looks, over, err);
        if (rc < 0 && rc != SQLOCK_EBUSY)
            return rc;
        if (!lk_retry_goes_on(&retry, SQLOCK_EBUSY))
            return lk_error(err, SQLOCK_EBUSY,
                            "another transaction has the lease of %.200s "
                            "locked",
                            sqlock_name(lock));
    }
}

/* Let the transaction be idle for as long as the lease allows. */
static int outlast(sqlock_tx *tx, const struct lk_lease *lease,
                   sqlock_error *err)
{
    uint32_t idle_ms = lk_idle_ms(lease->asked.ttl_ms);
    int rc;

    if (tx->is_adopted || idle_ms <= tx->idle_ms || tx->part->outlast == NULL)
        return 0;
    rc = lk_tx_outlast(tx, idle_ms, err);
    if (rc == 0)
        tx->idle_ms = idle_ms;
    return rc;
}

static bool is_guarded(const sqlock_tx *tx, const sqlock_lock *lock)
{
    for (size_t i = 0; i < tx->guard_count; i++)
        if (tx->guards[i].lock == lock)
            return true;
    return false;
}

static int begin_guard(sqlock_tx *tx, sqlock_lock *lock, struct lk_lease *lease,
                       sqlock_error *err)
{
    struct lk_tx_guard *guards;

    guards = realloc(tx->guards, (tx->guard_count + 1) * sizeof *guards);
    if (guards == NULL)
        return lk_error_nomem(err);
    tx->guards = guards;
    return lk_guard_begin(lock, tx->store, lease, err);
}

int sqlock_tx_guard(sqlock_tx *tx, sqlock_lock *lock, sqlock_error *err)
{
    struct lk_lease lease = {0};
    sqlock_error own = {0};
    int over = 0;
    int rc;

    rc = lk_tx_check(tx, err);
    if (rc < 0)
        return rc;
    rc = lk_tx_check_nodes(tx, &own);
    if (rc < 0)
        goto out;
    rc = begin_guard(tx, lock, &lease, &own);
    if (rc == 0) {
        rc = guard(tx, lock, &lease, &over, &own);
        if (rc == 0)
            rc = outlast(tx, &lease, &own);
        if (rc < 0)
            lk_guard_end(lock, lease.client_id, over);
    } else if (rc == SQLOCK_ELOST) {
        rc = lost(tx, lock, &own);
    }
    /* A lock that was guarded before was checked again, since ROLLBACK TO
     * SAVEPOINT may have released its row.  Its first guard serves for both. */
    if (rc == 0 && is_guarded(tx, lock)) {
        lk_guard_end(lock, lease.client_id, 0);
    } else if (rc == 0) {
        struct lk_tx_guard *kept = &tx->guards[tx->guard_count++];

        *kept =
            (struct lk_tx_guard){.lock = lock, .token = lease.answered.token};
        memcpy(kept->client_id, lease.client_id, sizeof kept->client_id);
    }
    if (rc == 0)
        return 0;
out:
    return lk_tx_end(tx, lk_error_pass(err, &own, rc), &own);
}

/* --- with the commit --- */

/* Find out why a commit was refused.  Return ELOST if a row does not have its
 * guarded lease any more; otherwise ERETRY: the transaction has released its
 * lock on a row. */
static int explain(sqlock_tx *tx, sqlock_error *err)
{
    for (size_t i = 0; i < tx->guard_count; i++) {
        struct lk_tx_guard *guard = &tx->guards[i];
        struct lk_lease lease = {.key = sqlock_key(guard->lock),
                                 .answered.token = guard->token};
        struct lk_row row;

        memcpy(lease.client_id, guard->client_id, sizeof lease.client_id);
        if (lk_lease_read(tx->store, &lease, &row, NULL) == SQLOCK_ELOST) {
            guard->lost = lost(tx, guard->lock, err);
            return guard->lost;
        }
    }
    return lk_error(
        err, SQLOCK_ERETRY,
        "the transaction released a guarded lease, by a savepoint or a commit, "
        "and another session has its row locked: run it again");
}

int lk_tx_check_guards(sqlock_tx *tx, sqlock_error *err)
{
    int rc = 1;

    for (size_t i = 0; rc > 0 && i < tx->guard_count; i++) {
        const struct lk_tx_guard *guard = &tx->guards[i];
        struct lk_arguments arguments;
        bool is_over; /* ignored: the lease cannot have been taken over */

        fill(tx, guard->lock, guard->client_id, guard->token, &arguments);
        rc = send(tx, &arguments, &is_over, err);
    }
    if (rc > 0)
        return 0;
    return rc == 0 || rc == SQLOCK_EBUSY || rc == SQLOCK_ERETRY
               ? explain(tx, err)
               : rc;
}

/* Check the guards and commit in one round trip.  Return as
 * lk_tx_commit_guarded(). */
static int commit_if(sqlock_tx *tx, sqlock_error *err)
{
    const struct lk_statement *statement =
        &tx->store->statements[SQLOCK_SQL_TX_ASSERT];
    int64_t deadline_ns = lk_tx_deadline(tx);
    sqlock_statement sent;
    sqlock_value *values;
    int rc;

    values = calloc(tx->guard_count * statement->count, sizeof *values);
    if (values == NULL)
        return lk_error_nomem(err);
    for (size_t i = 0; i < tx->guard_count; i++) {
        const struct lk_tx_guard *guard = &tx->guards[i];
        sqlock_value ordered[LK_PLACES_MAX];
        struct lk_arguments arguments;

        fill(tx, guard->lock, guard->client_id, guard->token, &arguments);
        lk_statement_order(statement, &arguments, ordered);
        memcpy(values + i * statement->count, ordered,
               statement->count * sizeof *values);
    }
    lk_tx_statement(tx, SQLOCK_SQL_TX_ASSERT, &sent);
    rc = tx->part->commit_if(tx->connection->state, &sent, values,
                             statement->count, tx->guard_count, deadline_ns,
                             err);
    free(values);
    return rc == SQLOCK_ENOTFOUND || rc == SQLOCK_ERETRY
               ? explain(tx, err)
               : lk_tx_note(tx, rc, deadline_ns, err);
}

/* Return whether `commit_same` can tell that the row is still locked: there is
 * one, and the connection was not adopted again since. */
static bool may_be_same(sqlock_tx *tx)
{
    return tx->part->commit_same != NULL && tx->guard_count == 1 &&
           lk_tx_is_prepared(tx, SQLOCK_SQL_TX_GUARD) &&
           lk_known_is_last(&tx->store->db.known, &tx->known);
}

int lk_tx_commit_guarded(sqlock_tx *tx, sqlock_error *err)
{
    int rc;

    if (tx->hold == LK_TX_LOOSE) {
        if (tx->part->commit_if != NULL)
            return commit_if(tx, err);
        if (may_be_same(tx)) {
            rc = tx->part->commit_same(tx->connection->state,
                                       lk_tx_deadline(tx), err);
            if (rc != SQLOCK_ENOTFOUND)
                return rc;
        }
        rc = lk_tx_check_guards(tx, err);
        if (rc < 0)
            return rc;
    }
    return lk_tx_send_commit(tx, err);
}
