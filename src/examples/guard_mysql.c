/*
 * guard_mysql.c - write by your own connection while the lock is yours: the
 * database refuses the commit of a holder whose lease is over
 *
 *     guard_mysql URL HOST PORT USER DATABASE
 *
 * Adds 1 to all balances as the holder of the lock "day-end".  URL names the
 * same database, and MYSQL_PWD has the password.  compare_and_set.c describes
 * the table.
 * Exit status: 0 done, 75 another process has the lock, 1 failed.
 */
#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>

#include "sqlock/tx.h"

enum { EXIT_BUSY = 75 };

static const char job[] = "UPDATE account SET balance = balance + 1";

static int run(MYSQL *connection, sqlock_error *err)
{
    if (mysql_query(connection, job) == 0)
        return 0;
    (void)snprintf(err->message, sizeof err->message, "%s",
                   mysql_error(connection));
    return SQLOCK_EDATABASE;
}

/* The guard is the first statement of the transaction.  The commit is made by
 * the library, which knows whether the guard held. */
static int work(MYSQL *connection, sqlock_registry *registry, sqlock_lock *lock,
                sqlock_error *err)
{
    sqlock_tx *tx;
    int rc;

    rc = sqlock_tx_adopt(&tx, registry, connection, err);
    if (rc < 0)
        return rc;
    rc = sqlock_tx_guard(tx, lock, err);
    if (rc == 0)
        rc = run(connection, err);
    if (rc == 0)
        return sqlock_tx_commit(tx, err);
    (void)sqlock_tx_rollback(tx, NULL);
    return rc;
}

static int work_alone(MYSQL *connection, sqlock_registry *registry,
                      sqlock_error *err)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *lock;
    int rc;

    options.auto_renew = true; /* until the transaction guards it */
    rc = sqlock_obtain(&lock, registry, "day-end", err);
    if (rc < 0)
        return rc;
    rc = sqlock_acquire(lock, 0, &options, err);
    if (rc == 0) {
        rc = work(connection, registry, lock, err);
        /* Its guard proved the lease, so what is committed stays. */
        (void)!sqlock_release(lock, NULL);
    }
    (void)sqlock_drop(lock, NULL);
    return rc;
}

int main(int argc, char **argv)
{
    sqlock_registry *registry = NULL;
    MYSQL *connection;
    sqlock_error err = {0};
    int rc;

    if (argc != 6) {
        (void)fprintf(stderr,
                      "usage: guard_mysql URL HOST PORT USER DATABASE\n");
        return 2;
    }
    connection = mysql_init(NULL);
    if (connection == NULL)
        return EXIT_FAILURE;
    (void)mysql_options(connection, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (mysql_real_connect(connection, argv[2], argv[4], getenv("MYSQL_PWD"),
                           argv[5], (unsigned)strtoul(argv[3], NULL, 10), NULL,
                           0) == NULL) {
        (void)fprintf(stderr, "guard_mysql: %s\n", mysql_error(connection));
        mysql_close(connection);
        return EXIT_FAILURE;
    }
    rc = sqlock_registry_open(&registry, argv[1], NULL, &err);
    if (rc == 0)
        rc = work_alone(connection, registry, &err);
    (void)sqlock_registry_close(registry, NULL);
    mysql_close(connection);
    if (rc == SQLOCK_EBUSY)
        return EXIT_BUSY;
    if (rc < 0)
        (void)fprintf(stderr, "guard_mysql: %s\n", err.message);
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
