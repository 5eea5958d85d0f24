/*
 * end.c - commit a transaction, roll it back, or leave it to the application
 *
 * A commit returns 0 only if the server has confirmed it.
 */
#include "tx/tx.h"

#include "base/error.h"

static void end_guards(const sqlock_tx *tx)
{
    for (size_t i = 0; i < tx->guard_count; i++)
        lk_guard_end(tx->guards[i].lock, tx->guards[i].client_id,
                     tx->guards[i].lost);
}

/* Give the connection back to the application or the pool, end the guards, and
 * with them leases that were abandoned, and free the transaction. */
static void finish(sqlock_tx *tx)
{
    struct lk_db *db = &tx->store->db;

    if (tx->is_adopted) {
        lk_tx_remember(tx);
        lk_tx_let_go(tx, true);
    } else if (!tx->is_altered &&
               tx->part->state(tx->connection->state) == SQLOCK_TX_NONE &&
               tx->driver->is_alive(tx->connection->state)) {
        lk_db_finish(db, tx->connection,
                     tx->is_on_standby ? SQLOCK_EREADONLY : 0);
    } else {
        lk_pool_discard(&db->pool, tx->connection);
        if (tx->is_on_standby)
            lk_db_leave_node(db);
    }
    end_guards(tx);
    lk_tx_free(tx);
}

static int roll_back(sqlock_tx *tx, sqlock_error *err)
{
    int64_t deadline_ns = lk_tx_deadline(tx);
    sqlock_error own = {0};
    int rc = tx->driver->rollback(tx->connection->state, deadline_ns, &own);

    if (rc == SQLOCK_EUNCERTAIN)
        rc = lk_error(&own, SQLOCK_EUNREACHABLE,
                      "the connection was lost during the rollback; the server "
                      "rolls back by itself");
    return lk_error_pass(err, &own, lk_tx_note(tx, rc, deadline_ns, &own));
}

static int commit(sqlock_tx *tx, sqlock_error *err)
{
    sqlock_error own = {0};
    int rc;

    rc = lk_tx_check(tx, err);
    if (rc < 0)
        return rc;
    rc = tx->guard_count > 0 ? lk_tx_commit_guarded(tx, &own)
                             : lk_tx_send_commit(tx, &own);
    if (rc == SQLOCK_EUNREACHABLE)
        rc = lk_error(&own, SQLOCK_ELOST,
                      "the connection was lost before the commit was sent; "
                      "nothing of the transaction was committed");
    else if (rc == SQLOCK_EUNCERTAIN)
        rc = lk_error(&own, SQLOCK_EUNCERTAIN,
                      "the connection was lost during the commit, which may or "
                      "may not have happened");
    return lk_error_pass(err, &own, rc);
}

static int check_end(const sqlock_tx *tx, sqlock_error *err)
{
    if (tx == NULL)
        return lk_error_null(err, "tx");
    return lk_store_check(tx->store, err);
}

int sqlock_tx_commit(sqlock_tx *tx, sqlock_error *err)
{
    int rc;

    rc = check_end(tx, err);
    if (rc < 0)
        return rc;
    rc = commit(tx, err);
    if (rc < 0)
        (void)roll_back(tx, NULL);
    finish(tx);
    return rc;
}

int sqlock_tx_rollback(sqlock_tx *tx, sqlock_error *err)
{
    int rc;

    if (tx == NULL)
        return 0;
    rc = check_end(tx, err);
    if (rc < 0)
        return rc;
    rc = roll_back(tx, err);
    finish(tx);
    return rc;
}

int sqlock_tx_leave(sqlock_tx *tx, sqlock_error *err)
{
    int rc;

    rc = check_end(tx, err);
    if (rc < 0)
        return rc;
    if (!tx->is_adopted)
        return lk_error(err, SQLOCK_EINVAL,
                        "this transaction uses a connection of the registry: "
                        "commit it or roll it back");
    rc = lk_tx_check(tx, err);
    if (rc == 0)
        rc = lk_tx_check_guards(tx, err);
    /* EINVAL would mean that nothing was done, but the transaction is freed
     * here. */
    if (rc == SQLOCK_EINVAL) {
        rc = SQLOCK_ELOST;
        if (err != NULL)
            err->code = rc;
    }
    finish(tx);
    return rc;
}

int sqlock_tx_abandon(sqlock_tx *tx, sqlock_error *err)
{
    int rc;

    if (tx == NULL)
        return 0;
    if (!tx->is_adopted)
        return sqlock_tx_rollback(tx, err);
    rc = check_end(tx, err);
    if (rc < 0)
        return rc;
    lk_tx_let_go(tx, false);
    end_guards(tx);
    lk_tx_free(tx);
    return 0;
}
