/*
 * many.c - the cases of many locks at a time
 *
 * All clients together have LEASES, KEPT or KEYS locks, each client an equal
 * number of them, in one registry with a connection for each client.
 */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>

#include "sqlock.h"
#include "sqlock/many.h"

#define LEASES 1000
#define KEPT 10000 /* also SQLOCK_MANY_MAX */
#define KEYS 100
#define TTL_MS 3600000
#define STATEMENT_MS 60000

struct many_state {
    sqlock_registry *registry;
    unsigned clients;
    size_t each; /* locks of one client, adjacent in `locks` */
    size_t count;
    sqlock_lock **locks;
};

static int fail(struct bench_failure *failure, const char *what, int rc,
                const sqlock_error *err)
{
    return bench_fail(failure, "%s: %s (%d): %s", what, sqlock_strerror(rc), rc,
                      err->message);
}

static int open_registry(struct many_state *state,
                         const struct bench_target *target,
                         struct bench_failure *failure)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_error err = {0};
    int rc;

    options.table_prefix = target->lock_prefix;
    options.pool_size = bench_pool_size(target);
    options.ttl_ms = TTL_MS;
    options.statement_timeout_ms = STATEMENT_MS;
    options.ownership = SQLOCK_OWNED_BY_REGISTRY; /* threads change */
    rc = sqlock_registry_open(&state->registry, target->url, &options, &err);
    return rc == 0 ? 0 : fail(failure, "sqlock_registry_open", rc, &err);
}

/* Obtain all locks.  Their names have the case's word @p what in them, so that
 * no two cases share a lock. */
static int obtain_all(struct many_state *state, const char *what, size_t total,
                      struct bench_failure *failure)
{
    sqlock_error err = {0};
    char name[64];

    state->each = total / state->clients;
    state->locks = calloc(state->each * state->clients, sizeof *state->locks);
    if (state->locks == NULL)
        return bench_fail(failure, "out of memory");
    while (state->count < state->each * state->clients) {
        int rc;

        (void)snprintf(name, sizeof name, "bench %s %zu", what, state->count);
        rc = sqlock_obtain(&state->locks[state->count], state->registry, name,
                           &err);
        if (rc != 0)
            return fail(failure, "sqlock_obtain", rc, &err);
        state->count++;
    }
    return 0;
}

static int set_up(void **out, const struct bench_target *target,
                  const char *what, size_t total, bool is_held,
                  struct bench_failure *failure)
{
    struct many_state *state = calloc(1, sizeof *state);
    sqlock_error err = {0};
    int rc;

    *out = state;
    if (state == NULL)
        return bench_fail(failure, "out of memory");
    state->clients = target->clients;
    rc = open_registry(state, target, failure);
    if (rc == 0)
        rc = obtain_all(state, what, total, failure);
    if (rc != 0 || !is_held)
        return rc;
    rc = sqlock_acquire_many(state->locks, state->count, 0, NULL, NULL, &err);
    return rc == 0 ? 0 : fail(failure, "sqlock_acquire_many", rc, &err);
}

int renew_ones_setup(void **state, const struct bench_target *target,
                     struct bench_failure *failure)
{
    return set_up(state, target, "ones", LEASES, true, failure);
}

int renew_many_setup(void **state, const struct bench_target *target,
                     struct bench_failure *failure)
{
    return set_up(state, target, "many", LEASES, true, failure);
}

int renew_kept_setup(void **state, const struct bench_target *target,
                     struct bench_failure *failure)
{
    return set_up(state, target, "kept", KEPT, true, failure);
}

int keys_ones_setup(void **state, const struct bench_target *target,
                    struct bench_failure *failure)
{
    return set_up(state, target, "keys", KEYS, false, failure);
}

int keys_many_setup(void **state, const struct bench_target *target,
                    struct bench_failure *failure)
{
    return set_up(state, target, "all keys", KEYS, false, failure);
}

void many_teardown(void *opaque)
{
    struct many_state *state = opaque;

    if (state == NULL)
        return;
    /* The result for a lock that is not held is EOWNER, which is ignored. */
    if (state->count > 0) {
        int rc = sqlock_release_many(state->locks, state->count, NULL, NULL);

        (void)rc;
    }
    (void)sqlock_registry_close(state->registry, NULL);
    free(state->locks);
    free(state);
}

static sqlock_lock **locks_of(const struct many_state *state, unsigned client)
{
    return &state->locks[client * state->each];
}

int renew_ones(void *opaque, unsigned client, struct bench_failure *failure)
{
    struct many_state *state = opaque;
    sqlock_lock **locks = locks_of(state, client);
    sqlock_error err = {0};

    for (size_t i = 0; i < state->each; i++) {
        int rc = sqlock_renew(locks[i], 0, &err);

        if (rc != 0)
            return fail(failure, "sqlock_renew", rc, &err);
    }
    return 0;
}

int renew_many(void *opaque, unsigned client, struct bench_failure *failure)
{
    struct many_state *state = opaque;
    sqlock_error err = {0};
    int rc =
        sqlock_renew_many(locks_of(state, client), state->each, NULL, &err);

    return rc == 0 ? 0 : fail(failure, "sqlock_renew_many", rc, &err);
}

int keys_ones(void *opaque, unsigned client, struct bench_failure *failure)
{
    struct many_state *state = opaque;
    sqlock_lock **locks = locks_of(state, client);
    sqlock_error err = {0};
    int rc;

    for (size_t i = 0; i < state->each; i++) {
        rc = sqlock_acquire(locks[i], 0, NULL, &err);
        if (rc != 0)
            return fail(failure, "sqlock_acquire", rc, &err);
    }
    for (size_t i = 0; i < state->each; i++) {
        rc = sqlock_release(locks[i], &err);
        if (rc != 0)
            return fail(failure, "sqlock_release", rc, &err);
    }
    return 0;
}

int keys_many(void *opaque, unsigned client, struct bench_failure *failure)
{
    struct many_state *state = opaque;
    sqlock_lock **locks = locks_of(state, client);
    sqlock_error err = {0};
    int rc;

    rc = sqlock_acquire_many(locks, state->each, 0, NULL, NULL, &err);
    if (rc != 0)
        return fail(failure, "sqlock_acquire_many", rc, &err);
    rc = sqlock_release_many(locks, state->each, NULL, &err);
    return rc == 0 ? 0 : fail(failure, "sqlock_release_many", rc, &err);
}
