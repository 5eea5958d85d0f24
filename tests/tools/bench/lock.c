/*
 * lock.c - the cases that acquire and release locks, by sqlock's public
 * interface alone
 *
 * They do so as an application with threads would.  The process has one
 * registry, with a connection for each client, or with the default pool, and
 * each client has a lock of its own.  All other options have their defaults.
 */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>

#include "sqlock.h"

/* Long enough for all writers before this one in a SQLite file; no client ever
   waits for another client's lock. */
#define WAIT_MS 10000

struct lock_state {
    sqlock_registry *registry;
    unsigned clients, first;
    sqlock_lock *locks[BENCH_CLIENTS_MAX];
};

/* Open a registry with that pool_size (0: the default), and obtain a lock for
 * each client: with the client's number in its name, or the same one for
 * all. */
static int set_up_pool(void **out, const struct bench_target *target,
                       const char *prefix, bool is_one, unsigned pool_size,
                       struct bench_failure *failure)
{
    struct lock_state *state = calloc(1, sizeof *state);
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_error err = {0};
    char name[64];
    unsigned i;
    int rc;

    *out = state;
    if (state == NULL)
        return bench_fail(failure, "out of memory");
    options.table_prefix = target->lock_prefix;
    options.pool_size = pool_size;
    rc = sqlock_registry_open(&state->registry, target->url, &options, &err);
    if (rc != 0)
        return bench_fail_call(failure, "sqlock_registry_open", rc, &err);
    state->clients = target->clients;
    state->first = target->first;
    for (i = 0; i < state->clients; i++) {
        (void)snprintf(name, sizeof name, "bench %s %u", prefix,
                       is_one ? 0 : target->first + i);
        rc = sqlock_obtain(&state->locks[i], state->registry, name, &err);
        if (rc != 0)
            return bench_fail_call(failure, "sqlock_obtain", rc, &err);
    }
    return 0;
}

static int set_up(void **out, const struct bench_target *target,
                  const char *prefix, bool is_one,
                  struct bench_failure *failure)
{
    return set_up_pool(out, target, prefix, is_one, bench_pool_size(target),
                       failure);
}

int lock_setup(void **out, const struct bench_target *target,
               struct bench_failure *failure)
{
    return set_up(out, target, "client", false, failure);
}

int fast_setup(void **out, const struct bench_target *target,
               struct bench_failure *failure)
{
    struct bench_fast fast;

    return bench_make_fast(&fast, target, failure) < 0
               ? -1
               : set_up(out, &fast.target, "fast", false, failure);
}

int pooled_setup(void **out, const struct bench_target *target,
                 struct bench_failure *failure)
{
    return set_up_pool(out, target, "pooled", false, 0, failure);
}

int shared_setup(void **out, const struct bench_target *target,
                 struct bench_failure *failure)
{
    return set_up(out, target, "sharer", false, failure);
}

int permit_setup(void **out, const struct bench_target *target,
                 struct bench_failure *failure)
{
    return set_up(out, target, "permit", false, failure);
}

int readers_setup(void **out, const struct bench_target *target,
                  struct bench_failure *failure)
{
    return set_up(out, target, "readers", true, failure);
}

void lock_teardown(void *opaque)
{
    struct lock_state *state = opaque;
    unsigned i;

    if (state == NULL)
        return;
    for (i = 0; i < state->clients; i++)
        (void)sqlock_drop(state->locks[i], NULL);
    (void)sqlock_registry_close(state->registry, NULL);
    free(state);
}

static int acquire(sqlock_lock *lock, const sqlock_acquire_options *options,
                   struct bench_failure *failure)
{
    sqlock_error err = {0};
    int rc = sqlock_acquire(lock, WAIT_MS, options, &err);

    return rc == 0 ? 0 : bench_fail_call(failure, "sqlock_acquire", rc, &err);
}

static int release(sqlock_lock *lock, struct bench_failure *failure)
{
    sqlock_error err = {0};
    int rc = sqlock_release(lock, &err);

    return rc == 0 ? 0 : bench_fail_call(failure, "sqlock_release", rc, &err);
}

int lock_pair(void *opaque, unsigned client, struct bench_failure *failure)
{
    struct lock_state *state = opaque;
    sqlock_lock *lock = state->locks[client];

    if (acquire(lock, NULL, failure) != 0)
        return -1;
    return release(lock, failure);
}

/* The handle of the pair before is dropped first: the last one is dropped by
 * lock_teardown(). */
int fresh_pair(void *opaque, unsigned client, struct bench_failure *failure)
{
    struct lock_state *state = opaque;
    sqlock_error err = {0};
    char name[64];
    int rc = sqlock_drop(state->locks[client], &err);

    state->locks[client] = NULL;
    (void)snprintf(name, sizeof name, "bench fresh %u", state->first + client);
    if (rc == 0)
        rc = sqlock_obtain(&state->locks[client], state->registry, name, &err);
    return rc == 0 ? lock_pair(state, client, failure)
                   : bench_fail_call(failure, "a new handle", rc, &err);
}

static int share(void *opaque, unsigned client, uint32_t permits,
                 struct bench_failure *failure)
{
    struct lock_state *state = opaque;
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;

    options.mode = SQLOCK_SHARED;
    options.permits = permits;
    if (acquire(state->locks[client], &options, failure) != 0)
        return -1;
    return release(state->locks[client], failure);
}

int shared_pair(void *opaque, unsigned client, struct bench_failure *failure)
{
    return share(opaque, client, 0, failure);
}

int permit_pair(void *opaque, unsigned client, struct bench_failure *failure)
{
    return share(opaque, client, 3, failure);
}
