/*
 * nodes.c - check that row locks exclude all other sessions
 *
 * Galera's row locks do not: each node takes writes and knows only its own row
 * locks (F63), so two transactions on two nodes can have the same row FOR
 * UPDATE, and a guard does not notice a takeover.
 */
#include "base/error.h"
#include "tx/tx.h"

static int ask(sqlock_tx *tx, enum lk_row_lock_reach *reach, sqlock_error *err)
{
    const struct lk_arguments none = {0};
    sqlock_result result = {0};
    int rc;

    rc = lk_tx_run(tx, SQLOCK_SQL_ONE_NODE, &none, lk_tx_deadline(tx), &result,
                   err);
    *reach = result.rows > 0 ? LK_ROW_LOCKS_OF_NODE : LK_ROW_LOCKS_GLOBAL;
    sqlock_result_clear(&result);
    return rc;
}

int lk_tx_check_nodes(sqlock_tx *tx, sqlock_error *err)
{
    struct lk_store *store = tx->store;
    enum lk_row_lock_reach reach;
    int rc;

    if (!lk_tx_has(tx, SQLOCK_SQL_ONE_NODE))
        return 0;
    pthread_mutex_lock(&store->mutex);
    reach = store->row_locks;
    pthread_mutex_unlock(&store->mutex);
    if (reach == LK_ROW_LOCKS_UNKNOWN) {
        rc = ask(tx, &reach, err);
        if (rc < 0)
            return rc;
        pthread_mutex_lock(&store->mutex);
        store->row_locks = reach;
        pthread_mutex_unlock(&store->mutex);
    }
    if (reach == LK_ROW_LOCKS_OF_NODE)
        return lk_error(
            err, SQLOCK_ENOTSUP,
            "this is a Galera cluster, where a row lock holds on one node only "
            "and does not exclude sessions on other nodes: fence the writes "
            "with the token (sqlock_tx_fence)");
    return 0;
}
