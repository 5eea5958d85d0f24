/*
 * adopted.c - a transaction on a connection of the application, which updates
 * one row by the application's own client library: without sqlock, and adopted
 * and guarded by a lease that the client holds
 */
#include "cases.h"
#include "floor.h"

#include <stdio.h>
#include <stdlib.h>

#include "sqlock.h"
#include "sqlock/tx.h"

/* The leases are not renewed: they outlast any benchmark. */
#define TTL_MS (24u * 3600 * 1000)
#define WAIT_MS 10000

struct adopted_state {
    const struct floor_driver *driver;
    unsigned clients;
    void *connections[BENCH_CLIENTS_MAX];
    sqlock_registry *registry; /* NULL: without sqlock */
    sqlock_lock *locks[BENCH_CLIENTS_MAX];
};

static int fail(struct bench_failure *failure, const char *what, int rc,
                const sqlock_error *err)
{
    return bench_fail(failure, "%s: %s (%d): %s", what, sqlock_strerror(rc), rc,
                      err->message);
}

int unadopted_setup(void **out, const struct bench_target *target,
                    struct bench_failure *failure)
{
    struct adopted_state *state = calloc(1, sizeof *state);
    int rc = 0;

    *out = state;
    if (state == NULL)
        return bench_fail(failure, "out of memory");
    state->driver = target->floor;
    state->clients = target->clients;
    for (unsigned i = 0; i < state->clients && rc == 0; i++)
        rc = state->driver->open(&state->connections[i], target,
                                 target->first + i, failure);
    return rc;
}

int adopted_setup(void **out, const struct bench_target *target,
                  struct bench_failure *failure)
{
    int rc = unadopted_setup(out, target, failure);
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    struct adopted_state *state = *out;
    sqlock_error err = {0};
    char name[64];

    if (rc != 0 || state == NULL)
        return rc;
    /* A client has a new thread in each slice, but keeps its lease. */
    options.ownership = SQLOCK_OWNED_BY_REGISTRY;
    options.table_prefix = target->lock_prefix;
    options.ttl_ms = TTL_MS;
    rc = sqlock_registry_open(&state->registry, target->url, &options, &err);
    for (unsigned i = 0; i < state->clients && rc == 0; i++) {
        (void)snprintf(name, sizeof name, "bench adopted %u",
                       target->first + i);
        rc = sqlock_obtain(&state->locks[i], state->registry, name, &err);
        if (rc == 0)
            rc = sqlock_acquire(state->locks[i], WAIT_MS, NULL, &err);
    }
    return rc == 0 ? 0 : fail(failure, "the leases", rc, &err);
}

/* The locks are released when the registry is closed. */
void adopted_teardown(void *opaque)
{
    struct adopted_state *state = opaque;

    if (state == NULL)
        return;
    for (unsigned i = 0; i < state->clients; i++)
        state->driver->close(state->connections[i]);
    (void)sqlock_registry_close(state->registry, NULL);
    free(state);
}

int unadopted_transaction(void *opaque, unsigned client,
                          struct bench_failure *failure)
{
    struct adopted_state *state = opaque;
    const struct floor_driver *driver = state->driver;
    void *connection = state->connections[client];

    if (driver->run(connection, driver->begin, failure) != 0 ||
        driver->update(connection, failure) != 0)
        return -1;
    return driver->run(connection, "COMMIT", failure);
}

int adopted_transaction(void *opaque, unsigned client,
                        struct bench_failure *failure)
{
    struct adopted_state *state = opaque;
    void *connection = state->connections[client];
    sqlock_error err = {0};
    sqlock_tx *tx;
    int rc;

    rc = sqlock_tx_adopt(&tx, state->registry,
                         state->driver->native(connection), &err);
    if (rc != 0)
        return fail(failure, "sqlock_tx_adopt", rc, &err);
    rc = sqlock_tx_guard(tx, state->locks[client], &err);
    if (rc != 0 || state->driver->update(connection, failure) != 0) {
        (void)sqlock_tx_rollback(tx, NULL);
        return fail(failure, "sqlock_tx_guard", rc, &err);
    }
    rc = sqlock_tx_commit(tx, &err);
    return rc == 0 ? 0 : fail(failure, "sqlock_tx_commit", rc, &err);
}
