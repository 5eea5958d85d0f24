/*
 * transaction.h - run several statements in one transaction
 */
#ifndef LK_TRANSACTION_H
#define LK_TRANSACTION_H

#include "db/db.h"

struct lk_transaction {
    struct lk_db *db;
    struct lk_connection *connection; /* NULL: none is open */
    /* time that opening the connection took: extends all deadlines */
    int64_t late_ns;
    bool is_wrong_node; /* a statement has met a standby */
};

/* Begin a transaction on a connection of the pool, or on the renewer's if
 * is_reserved.  Return as lk_pool_take(), or the result of the driver's begin,
 * translated by lk_db_not_applied().  After a failure there is nothing to
 * end. */
int lk_transaction_begin(struct lk_transaction *transaction, struct lk_db *db,
                         bool is_reserved, int64_t deadline_ns,
                         sqlock_error *err);

/* Run one statement, without trying it again.  Return as lk_db_not_applied().
 * After a failure the transaction can only be rolled back. */
int lk_transaction_run(struct lk_transaction *transaction, struct lk_run *run,
                       sqlock_result *result, sqlock_error *err);

/* End the transaction, and give the connection back or discard it.  The commit
 * returns 0 only if the server has confirmed it, otherwise as
 * lk_db_not_applied().  A rollback without an open transaction does nothing. */
int lk_transaction_commit(struct lk_transaction *transaction,
                          int64_t deadline_ns, sqlock_error *err);
void lk_transaction_rollback(struct lk_transaction *transaction,
                             int64_t deadline_ns);

#endif
