/*
 * main.c - a deployer: applies a folder of numbered SQL migrations, each once
 * and in order, however many deployers start at once and whichever of them dies
 *
 *     migration URL FOLDER [TTL]
 *
 * FOLDER has files NNN_name.sql, such as the folders beside this file.  The
 * table migration_log records those that are applied.  migrate.sh does the same
 * with `sqlock run` and the database's own command.  TTL, in seconds, is how
 * long the other deployers wait for one that has died; 30 by default.  A lease
 * is not renewed while a migration runs in a transaction: after one that takes
 * longer the deployer takes another turn.  On SQLite nothing is renewed while
 * anything writes, so one outside a transaction has to be shorter than TTL.
 * Exit status: 0 all is applied, 1 not.
 */
#include <stdio.h>
#include <stdlib.h>

#include "deploy.h"

enum { TTL_DEFAULT_S = 30, TTL_MOST_S = 3600 };

/* Return as deploy(). */
static int deploy_in_turn(sqlock_registry *registry,
                          const struct connection *connection,
                          const struct folder *folder)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *lock = NULL;
    sqlock_error err;
    int rc;

    options.auto_renew = true; /* while it is not guarded */
    rc = sqlock_obtain(&lock, registry, "migration", &err);
    if (rc == 0)
        rc = sqlock_acquire(lock, SQLOCK_FOREVER, &options, &err);
    if (rc < 0) {
        (void)complain("the lock", err.message);
    } else {
        rc = deploy(registry, lock, connection, folder);
        /* Each migration was recorded under a guard, so it does not matter how
         * the lease has ended. */
        (void)!sqlock_release(lock, NULL);
    }
    (void)sqlock_drop(lock, NULL);
    return rc;
}

static int deploy_to(const char *url, const struct folder *folder,
                     unsigned ttl_s)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_registry *registry = NULL;
    struct connection connection = {0};
    sqlock_error err;
    int rc;

    options.ttl_ms = ttl_s * 1000;
    rc = sqlock_schema_create(url, &options, SQLOCK_LAYOUT_SQLOCK, &err);
    if (rc == 0)
        rc = sqlock_registry_open(&registry, url, &options, &err);
    if (rc < 0)
        return complain("the lock table", err.message);
    do { /* a connection for each turn: its session has a lock, too */
        rc = connection_open(&connection, url);
        if (rc == 0)
            rc = deploy_in_turn(registry, &connection, folder);
        connection_close(&connection);
    } while (rc > 0);
    (void)sqlock_registry_close(registry, NULL);
    return rc;
}

int main(int argc, char **argv)
{
    struct folder folder = {0};
    unsigned ttl_s = TTL_DEFAULT_S;
    char end;
    int rc;

    if (argc < 3 || argc > 4 ||
        (argc == 4 && (sscanf(argv[3], "%4u%c", &ttl_s, &end) != 1 ||
                       ttl_s < 1 || ttl_s > TTL_MOST_S))) {
        (void)fprintf(stderr, "usage: migration URL FOLDER [TTL]\n");
        return 2;
    }
    rc = folder_read(&folder, argv[2]);
    if (rc == 0)
        rc = deploy_to(argv[1], &folder, ttl_s);
    folder_clear(&folder);
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
