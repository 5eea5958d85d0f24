/*
 * transaction.c - begin, run, commit or roll back on one connection of a pool
 *
 * A connection whose transaction could not be ended properly is not used again.
 */
#include "db/transaction.h"

#include <string.h>

#include "base/clock.h"

static void end(struct lk_transaction *transaction, bool is_usable)
{
    struct lk_connection *connection = transaction->connection;

    if (transaction->is_wrong_node)
        lk_db_finish(transaction->db, connection, SQLOCK_EREADONLY);
    else if (is_usable)
        lk_pool_give(connection->pool, connection);
    else
        lk_pool_discard(connection->pool, connection);
    transaction->connection = NULL;
}

int lk_transaction_begin(struct lk_transaction *transaction, struct lk_db *db,
                         bool is_reserved, int64_t deadline_ns,
                         sqlock_error *err)
{
    struct lk_connection *connection;
    struct lk_wish wish = {0};
    struct lk_pool *pool;
    int rc;

    memset(transaction, 0, sizeof *transaction);
    transaction->db = db;
    pool = is_reserved ? &db->reserved : &db->pool;
    wish.wait_until_ns = deadline_ns;
    wish.latest_ns = lk_after_ms(deadline_ns, pool->options.connect_timeout_ms);
    wish.is_wary = is_reserved; /* it is not begun again on another one */
    rc = lk_db_take(db, pool, &wish, &connection, err);
    if (rc < 0)
        return rc;
    transaction->connection = connection;
    transaction->late_ns = connection->late_ns;
    deadline_ns = lk_after_ns(deadline_ns, transaction->late_ns);
    rc = db->driver->begin(connection->state, deadline_ns, err);
    transaction->is_wrong_node = rc == SQLOCK_EREADONLY;
    if (rc < 0)
        end(transaction, !lk_is_outage(rc));
    return lk_db_not_applied(rc, err);
}

int lk_transaction_run(struct lk_transaction *transaction, struct lk_run *run,
                       sqlock_result *result, sqlock_error *err)
{
    struct lk_connection *connection = transaction->connection;
    struct lk_db *db = transaction->db;
    int64_t deadline_ns = lk_after_ns(run->deadline_ns, transaction->late_ns);
    sqlock_value values[LK_PLACES_MAX];
    int rc;

    lk_statement_order(run->statement, run->arguments, values);
    run->sent_boot_ns = lk_boottime_ns();
    rc = db->driver->execute(connection->state, &run->statement->sent, values,
                             run->statement->count, deadline_ns, result, err);
    run->has_timed_out = rc == SQLOCK_ECANCELED;
    transaction->is_wrong_node =
        transaction->is_wrong_node || rc == SQLOCK_EREADONLY;
    return lk_db_not_applied(rc, err);
}

int lk_transaction_commit(struct lk_transaction *transaction,
                          int64_t deadline_ns, sqlock_error *err)
{
    struct lk_connection *connection = transaction->connection;
    struct lk_db *db = transaction->db;
    int rc;

    deadline_ns = lk_after_ns(deadline_ns, transaction->late_ns);
    rc = db->driver->commit(connection->state, deadline_ns, err);
    transaction->is_wrong_node = rc == SQLOCK_EREADONLY;
    if (rc == 0)
        atomic_store(&connection->has_written, true);
    end(transaction, rc == 0);
    return lk_db_not_applied(rc, err);
}

void lk_transaction_rollback(struct lk_transaction *transaction,
                             int64_t deadline_ns)
{
    struct lk_connection *connection = transaction->connection;
    struct lk_db *db = transaction->db;
    int rc;

    if (connection == NULL)
        return;
    deadline_ns = lk_after_ns(deadline_ns, transaction->late_ns);
    rc = db->driver->rollback(connection->state, deadline_ns, NULL);
    end(transaction, rc == 0);
}
