/*
 * nodes.c - do row locks hold against everybody?  Not on Galera, where each node
 * takes writes and knows its own row locks only (F63): two transactions on two
 * nodes have the same row FOR UPDATE, and a guard does not see the take-over.
 */
#include "base/error.h"
#include "tx/tx.h"

static int ask(sqlock_tx *tx, bool *is_one_node, sqlock_error *err)
{
    const sqlock_statement statement = {.text = tx->part->one_node};
    sqlock_result result = {0};
    int rc;

    rc = lk_tx_send(tx, &statement, NULL, 0, lk_tx_deadline(tx), &result, err);
    *is_one_node = rc == 0 && result.rows > 0;
    sqlock_result_clear(&result);
    return rc;
}

int lk_tx_check_nodes(sqlock_tx *tx, sqlock_error *err)
{
    sqlock_registry *registry = tx->registry;
    bool is_one_node;
    bool asked;
    int rc;

    if (tx->part->one_node == NULL)
        return 0;
    pthread_mutex_lock(&registry->mutex);
    asked = registry->asked_for_nodes;
    is_one_node = registry->is_one_node;
    pthread_mutex_unlock(&registry->mutex);
    if (!asked) {
        rc = ask(tx, &is_one_node, err);
        if (rc < 0)
            return rc;
        pthread_mutex_lock(&registry->mutex);
        registry->asked_for_nodes = true;
        registry->is_one_node = is_one_node;
        pthread_mutex_unlock(&registry->mutex);
    }
    if (is_one_node)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "this is a Galera cluster: a row lock holds on one "
                        "node, and another would let somebody else in; fence "
                        "the writes by the token (sqlock_tx_fence)");
    return 0;
}
