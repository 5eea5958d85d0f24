/*
 * guard_sqlite.c - write by your own connection while the lock is yours: the
 * database refuses the commit of a holder whose lease is over
 *
 *     guard_sqlite URL FILE
 *
 * Adds 1 to all balances as the holder of the lock "day-end".  FILE is the file
 * of URL.  While the transaction is open no lease in that file is renewed: keep
 * the transaction shorter than the TTL.  compare_and_set.c describes the table.
 * Exit status: 0 done, 75 another process has the lock, 1 failed.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "sqlock/tx.h"

enum { EXIT_BUSY = 75 };

static const char job[] = "UPDATE account SET balance = balance + 1";

static int run(sqlite3 *connection, sqlock_error *err)
{
    if (sqlite3_exec(connection, job, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    (void)snprintf(err->message, sizeof err->message, "%s",
                   sqlite3_errmsg(connection));
    return SQLOCK_EDATABASE;
}

/* The guard is the first statement of the transaction.  The commit is made by
 * the library, which knows whether the guard held. */
static int work(sqlite3 *connection, sqlock_registry *registry,
                sqlock_lock *lock, sqlock_error *err)
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

static int work_alone(sqlite3 *connection, sqlock_registry *registry,
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
    sqlite3 *connection = NULL;
    sqlock_error err = {0};
    int rc;

    if (argc != 3) {
        (void)fprintf(stderr, "usage: guard_sqlite URL FILE\n");
        return 2;
    }
    if (sqlite3_open(argv[2], &connection) != SQLITE_OK) {
        (void)fprintf(stderr, "guard_sqlite: %s\n", sqlite3_errmsg(connection));
        (void)sqlite3_close(connection);
        return EXIT_FAILURE;
    }
    (void)sqlite3_busy_timeout(connection, 5000);
    rc = sqlock_registry_open(&registry, argv[1], NULL, &err);
    if (rc == 0)
        rc = work_alone(connection, registry, &err);
    (void)sqlock_registry_close(registry, NULL);
    (void)sqlite3_close(connection);
    if (rc == SQLOCK_EBUSY)
        return EXIT_BUSY;
    if (rc < 0)
        (void)fprintf(stderr, "guard_sqlite: %s\n", err.message);
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
