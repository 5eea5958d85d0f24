/*
 * transaction.c - begin and end a transaction
 */
#include "base/error.h"
#include "drivers/mysql/connection.h"

static int query(struct lk_mysql_connection *connection, const char *text,
                 enum lk_mysql_stage stage, sqlock_error *err)
{
    return mysql_query(connection->mysql, text) != 0
               ? lk_mysql_fail(connection, stage, err)
               : 0;
}

int lk_mysql_begin(void *handle, int64_t deadline_ns, sqlock_error *err)
{
    struct lk_mysql_connection *connection = handle;
    int rc;

    if (connection->in_transaction)
        return lk_error(err, SQLOCK_EINVAL, "a transaction is open already");
    rc = lk_mysql_call_begin(connection, deadline_ns, err);
    if (rc < 0)
        return rc;
    rc = lk_mysql_stay_in_group(connection, err);
    if (rc == 0)
        rc = lk_mysql_set_idle(connection, connection->idle_ms, err);
    /* If the answer is lost, the transaction has no statement yet. */
    if (rc == 0)
        rc = query(connection, "START TRANSACTION", LK_MYSQL_PREPARING, err);
    connection->in_transaction = rc == 0;
    lk_mysql_call_end(connection);
    return rc;
}

static void forget_transaction(struct lk_mysql_connection *connection)
{
    connection->in_transaction = false;
    connection->is_rolled_back = false;
}

/* Commit.  A COMMIT without a transaction succeeds, so none may be sent when
 * the transaction is gone (F41).  PostgreSQL may warn that a commit is not safe
 * on its standbys; InnoDB has no such warning. */
int lk_mysql_commit_by(struct lk_mysql_connection *connection, const char *text,
                       int64_t deadline_ns, sqlock_error *err)
{
    bool has_failed;
    unsigned number;
    int rc;

    if (!connection->in_transaction)
        return lk_error(err, SQLOCK_EINVAL, "there is no open transaction");
    if (connection->is_rolled_back) {
        forget_transaction(connection);
        return lk_error(err, SQLOCK_ERETRY,
                        "an error has rolled the transaction back");
    }
    rc = lk_mysql_call_begin(connection, deadline_ns, err);
    if (rc < 0)
        return rc;
    /* A server or a proxy may fail with the number 0. */
    has_failed = mysql_query(connection->mysql, text) != 0;
    number = mysql_errno(connection->mysql);
    if (has_failed && (number == LK_MYSQL_UNKNOWN_STATEMENT ||
                       number == LK_MYSQL_UNKNOWN_SAVEPOINT))
        rc = lk_error(err, SQLOCK_ENOTFOUND,
                      "the session has no such statement or savepoint");
    else if (has_failed)
        rc = lk_mysql_fail(connection, LK_MYSQL_COMMITTING, err);
    lk_mysql_call_end(connection);
    if (rc == SQLOCK_ENOTFOUND)
        return rc;
    forget_transaction(connection);
    if (rc < 0) {
        /* The transaction may still be open: no later statement must run in
         * it. */
        connection->is_broken = true;
        return rc;
    }
    if (mysql_thread_id(connection->mysql) != connection->thread_id) {
        connection->is_broken = true;
        return lk_error(err, SQLOCK_EUNCERTAIN,
                        "the application used the connection for something "
                        "else during the transaction");
    }
    return 0;
}

int lk_mysql_commit(void *handle, int64_t deadline_ns, sqlock_error *err)
{
    return lk_mysql_commit_by(handle, "COMMIT", deadline_ns, err);
}

int lk_mysql_rollback(void *handle, int64_t deadline_ns, sqlock_error *err)
{
    struct lk_mysql_connection *connection = handle;
    int rc;

    if (!connection->in_transaction || connection->is_rolled_back) {
        forget_transaction(connection);
        return 0;
    }
    rc = lk_mysql_call_begin(connection, deadline_ns, err);
    if (rc < 0)
        return rc;
    rc = query(connection, "ROLLBACK", LK_MYSQL_RUNNING, err);
    lk_mysql_call_end(connection);
    if (rc == 0)
        forget_transaction(connection);
    return rc;
}
