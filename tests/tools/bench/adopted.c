/*
 * adopted.c - a transaction on a connection of the application, which updates
 * one row by the application's own client library, adopted and guarded by a
 * lease that the client holds
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
    struct floor_clients floor;
    sqlock_registry *registry;
    sqlock_lock *locks[BENCH_CLIENTS_MAX];
};

int adopted_setup(void **out, const struct bench_target *target,
                  struct bench_failure *failure)
{
    struct adopted_state *state = calloc(1, sizeof *state);
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_error err = {0};
    char name[64];
    int rc;

    *out = state;
    if (state == NULL)
        return bench_fail(failure, "out of memory");
    if (floor_clients_open(&state->floor, target, failure) != 0)
        return -1;
    /* A client has a new thread in each slice, but keeps its lease. */
    options.ownership = SQLOCK_OWNED_BY_REGISTRY;
    options.table_prefix = target->lock_prefix;
    options.ttl_ms = TTL_MS;
    rc = sqlock_registry_open(&state->registry, target->url, &options, &err);
    for (unsigned i = 0; i < target->clients && rc == 0; i++) {
        (void)snprintf(name, sizeof name, "bench adopted %u",
                       target->first + i);
        rc = sqlock_obtain(&state->locks[i], state->registry, name, &err);
        if (rc == 0)
            rc = sqlock_acquire(state->locks[i], WAIT_MS, NULL, &err);
    }
    return rc == 0 ? 0 : bench_fail_call(failure, "the leases", rc, &err);
}

/* The locks are released when the registry is closed. */
void adopted_teardown(void *opaque)
{
    struct adopted_state *state = opaque;

    if (state == NULL)
        return;
    floor_clients_close(&state->floor);
    (void)sqlock_registry_close(state->registry, NULL);
    free(state);
}

int adopted_transaction(void *opaque, unsigned client,
                        struct bench_failure *failure)
{
    struct adopted_state *state = opaque;
    struct floor_connection *connection = &state->floor.client[client];
    sqlock_error err = {0};
    sqlock_tx *tx;
    int rc;

    rc = sqlock_tx_adopt(&tx, state->registry,
                         connection->driver->native(connection->client), &err);
    if (rc != 0)
        return bench_fail_call(failure, "sqlock_tx_adopt", rc, &err);
    rc = sqlock_tx_guard(tx, state->locks[client], &err);
    if (rc != 0 || floor_update(connection, failure) != 0) {
        (void)sqlock_tx_rollback(tx, NULL);
        return bench_fail_call(failure, "sqlock_tx_guard", rc, &err);
    }
    rc = sqlock_tx_commit(tx, &err);
    return rc == 0 ? 0 : bench_fail_call(failure, "sqlock_tx_commit", rc, &err);
}
