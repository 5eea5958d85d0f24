/*
 * deploy.c - apply migrations, each once and in order
 *
 * Only the deployer that holds the lock works.  If its lease ends, the database
 * refuses its further changes: each transaction begins with a guard, and each
 * migration is recorded in the transaction that it runs in.
 *
 * That does not work where DDL commits by itself (MySQL, MariaDB), nor for a
 * statement that cannot run in a transaction (CREATE INDEX CONCURRENTLY).  Such
 * a migration is recorded as begun before it runs and as done afterwards, both
 * under a guard.  The session that runs it also holds a lock of the server, so
 * that the next deployer waits for a statement that outlives its client.  A
 * migration that was begun and not done is run again: it has to be written so
 * that this does no harm.
 */
#include "deploy.h"
#include "sqlock/tx.h"
#include "sqlock/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BEGUN = 1, DONE = 2 };

static const char log_table[] =
    "CREATE TABLE IF NOT EXISTS migration_log (version INTEGER PRIMARY KEY, "
    "name VARCHAR(255) NOT NULL, state INTEGER NOT NULL, token BIGINT NOT "
    "NULL)";

struct deployment {
    sqlock_registry *registry;
    sqlock_lock *lock;
    const struct connection *connection;
};

static bool runs_inside(const struct deployment *deployment,
                        const struct migration *migration)
{
    if (deployment->connection->has_transactional_ddl)
        return !migration->is_outside;
    return migration->is_inside;
}

/* Begin a transaction on our own connection, guarded by the lease.  Return 0; 1
 * if the lease has ended; -1 after a message. */
static int begin(const struct deployment *deployment, sqlock_tx **tx)
{
    sqlock_error err;
    int rc = sqlock_tx_adopt(tx, deployment->registry,
                             deployment->connection->handle, &err);

    if (rc < 0)
        return complain("beginning", err.message);
    rc = sqlock_tx_guard(*tx, deployment->lock, &err);
    if (rc < 0) {
        (void)sqlock_tx_rollback(*tx, NULL);
        if (rc == SQLOCK_ELOST || rc == SQLOCK_EEXPIRED)
            return 1;
        return complain("the lock", err.message);
    }
    return 0;
}

/* Read the state of a migration from the log: BEGUN, DONE, or 0 if the log does
 * not have it.  Return 0, or a negative code after a message. */
static int read_state(sqlock_tx *tx, const struct migration *migration,
                      int64_t *state)
{
    sqlock_value version = sqlock_integer(migration->version);
    sqlock_result result = {0};
    sqlock_error err;
    int rc;

    rc = sqlock_tx_execute(tx,
                           "SELECT state FROM migration_log WHERE version = ?",
                           &version, 1, &result, &err);
    if (rc < 0)
        (void)complain("the log", err.message);
    *state = rc == 0 && result.rows > 0 ? result.cells[0].integer : 0;
    sqlock_result_clear(&result);
    return rc;
}

static int record(const struct deployment *deployment, sqlock_tx *tx,
                  const struct migration *migration, int64_t state)
{
    sqlock_value values[] = {
        sqlock_integer(migration->version),
        sqlock_text(migration->name),
        sqlock_integer(state),
        sqlock_integer(sqlock_token(deployment->lock)),
    };
    sqlock_error err;
    int rc;

    rc = sqlock_tx_execute(tx, "DELETE FROM migration_log WHERE version = ?",
                           values, 1, NULL, &err);
    if (rc == 0)
        rc = sqlock_tx_execute(
            tx,
            "INSERT INTO migration_log (version, name, state, token) "
            "VALUES (?, ?, ?, ?)",
            values, 4, NULL, &err);
    return rc < 0 ? complain("the log", err.message) : 0;
}

/* Commit, or roll back if rc is a failure.  Return 0, or -1. */
static int end(sqlock_tx *tx, int rc)
{
    sqlock_error err;

    if (rc < 0) {
        (void)sqlock_tx_rollback(tx, NULL);
        return -1;
    }
    rc = sqlock_tx_commit(tx, &err);
    return rc < 0 ? complain("the commit", err.message) : 0;
}

static int apply_inside(const struct deployment *deployment, sqlock_tx *tx,
                        const struct migration *migration)
{
    const struct connection *connection = deployment->connection;
    int rc = connection->run(connection->handle, migration->sql);

    if (rc == 0)
        rc = record(deployment, tx, migration, DONE);
    return end(tx, rc);
}

/* Run each statement by itself.  A statement ends with ";" at the end of a
 * line. */
static int run_separately(const struct connection *connection, const char *sql)
{
    char *copy = strdup(sql);
    char *from = copy;
    int rc = 0;

    if (copy == NULL)
        return complain("a migration", "out of memory");
    while (rc == 0 && *from != '\0') {
        char *end = strstr(from, ";\n");

        if (end == NULL)
            end = from + strlen(from);
        else
            *end++ = '\0';
        if (from[strspn(from, " \n")] != '\0')
            rc = connection->run(connection->handle, from);
        from = end;
    }
    free(copy);
    return rc;
}

static int apply_outside(const struct deployment *deployment, sqlock_tx *tx,
                         const struct migration *migration)
{
    const struct connection *connection = deployment->connection;
    int rc;

    rc = end(tx, record(deployment, tx, migration, BEGUN));
    if (rc == 0)
        rc = run_separately(connection, migration->sql);
    if (rc == 0)
        rc = begin(deployment, &tx);
    if (rc == 0)
        return end(tx, record(deployment, tx, migration, DONE));
    /* It may take longer than the TTL each time: no other turn. */
    return rc > 0 ? complain("the lock", "lost") : rc;
}

static int apply(const struct deployment *deployment,
                 const struct migration *migration)
{
    sqlock_tx *tx;
    int64_t state;
    int rc;

    rc = begin(deployment, &tx);
    if (rc != 0)
        return rc;
    rc = read_state(tx, migration, &state);
    if (rc < 0 || state == DONE) {
        (void)sqlock_tx_rollback(tx, NULL);
        return rc < 0 ? -1 : 0;
    }
    if (state == BEGUN)
        (void)printf("%s: begun before and not done, running it again\n",
                     migration->name);
    if (runs_inside(deployment, migration))
        rc = apply_inside(deployment, tx, migration);
    else
        rc = apply_outside(deployment, tx, migration);
    if (rc < 0)
        return complain(migration->name, "not applied");
    (void)printf("%s: applied\n", migration->name);
    (void)fflush(stdout);
    return 0;
}

/* Wait until the session of the deployer before has ended at the server.
 * Return as begin(). */
static int wait_for_session(const struct deployment *deployment)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    const struct connection *connection = deployment->connection;
    int rc = 1;

    if (connection->lock_session != NULL)
        rc = connection->lock_session(connection->handle);
    while (rc == 0) {
        if (!sqlock_is_held(deployment->lock))
            return 1;
        (void)nanosleep(&pause, NULL);
        rc = connection->lock_session(connection->handle);
    }
    return rc < 0 ? -1 : 0;
}

int deploy(sqlock_registry *registry, sqlock_lock *lock,
           const struct connection *connection, const struct folder *folder)
{
    const struct deployment deployment = {registry, lock, connection};
    int rc;

    rc = wait_for_session(&deployment);
    if (rc == 0)
        rc = connection->run(connection->handle, log_table);
    for (size_t i = 0; rc == 0 && i < folder->count; i++)
        rc = sqlock_is_held(lock) ? apply(&deployment, &folder->migrations[i])
                                  : 1;
    return rc;
}
