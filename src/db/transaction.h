/*
 * transaction.h - several statements on one connection, all or nothing
 */
#ifndef LK_TRANSACTION_H
#define LK_TRANSACTION_H

#include "db/db.h"

struct lk_transaction {
    struct lk_db *db;
    struct lk_pool *pool;
    struct lk_connection *connection; /* NULL: none is open */
    /* how long opening it took: deadlines are extended by it */
    int64_t late_ns;
};

/* Begin a transaction on a connection of the pool, or on the renewer's.
 * Results as of the driver's begin. */
int lk_transaction_begin(struct lk_transaction *transaction, struct lk_db *db,
                         bool is_reserved, int64_t deadline_ns,
                         sqlock_error *err);

/* Run one statement, without trying it again.  After an error the
 * transaction can only be rolled back. */
int lk_transaction_run(struct lk_transaction *transaction, struct lk_run *run,
                       sqlock_result *result, sqlock_error *err);

/* End the transaction, and give the connection back or discard it.  A commit
 * returns 0 only if the server confirmed it. */
int lk_transaction_commit(struct lk_transaction *transaction,
                          int64_t deadline_ns, sqlock_error *err);
void lk_transaction_rollback(struct lk_transaction *transaction,
                             int64_t deadline_ns);

#endif
