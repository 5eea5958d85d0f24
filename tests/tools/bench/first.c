/*
 * first.c - the case of a registry that waits for the first time: how soon it
 * has the lock once that is released
 *
 * Neither the holder nor the one who waits has waited before, as in programs
 * that are started now and then.  In "handoff" all have, many times.
 */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sqlock.h"

/* Time to begin to wait, before the release. */
#define WAITING_NS 50000000L

struct first_client {
    sqlock_lock *held;
    sqlock_registry *waiting; /* NULL: nobody waits */
    sqlock_lock *wanted;
    pthread_t waiter;
    int rc; /* of its acquire */
    sqlock_error err;
};

struct first_state {
    const char *url;
    sqlock_options options;
    sqlock_registry *holding;
    struct first_client clients[BENCH_CLIENTS_MAX];
    unsigned count; /* of clients */
};

static void *wait_first(void *argument)
{
    struct first_client *me = argument;

    me->rc = sqlock_acquire(me->wanted, SQLOCK_FOREVER, NULL, &me->err);
    return NULL;
}

/* Hold the client's lock, and let a new registry wait for it. */
int first_prepare(void *opaque, unsigned client, struct bench_failure *failure)
{
    const struct timespec waiting = {.tv_nsec = WAITING_NS};
    struct first_state *state = opaque;
    struct first_client *me = &state->clients[client];
    sqlock_error err = {0};
    int rc;

    rc = sqlock_acquire(me->held, SQLOCK_FOREVER, NULL, &err);
    if (rc == 0)
        rc = sqlock_registry_open(&me->waiting, state->url, &state->options,
                                  &err);
    if (rc == 0)
        rc = sqlock_obtain(&me->wanted, me->waiting, sqlock_name(me->held),
                           &err);
    if (rc < 0)
        return bench_fail(failure, "first-wait: %s", err.message);
    if (pthread_create(&me->waiter, NULL, wait_first, me) != 0)
        abort();
    (void)nanosleep(&waiting, NULL);
    return 0;
}

/* Release the lock, and return when the one who waits has it. */
int first_grant(void *opaque, unsigned client, struct bench_failure *failure)
{
    struct first_state *state = opaque;
    struct first_client *me = &state->clients[client];
    sqlock_error err = {0};
    int rc = sqlock_release(me->held, &err);

    if (rc < 0)
        (void)sqlock_cancel(me->wanted, NULL);
    (void)pthread_join(me->waiter, NULL);
    if (rc < 0)
        return bench_fail(failure, "sqlock_release: %s", err.message);
    if (me->rc < 0)
        return bench_fail(failure, "sqlock_acquire: %s", me->err.message);
    return 0;
}

void first_settle(void *opaque, unsigned client)
{
    struct first_state *state = opaque;
    struct first_client *me = &state->clients[client];

    (void)sqlock_registry_close(me->waiting, NULL); /* releases the lock */
    me->waiting = NULL;
}

int first_setup(void **out, const struct bench_target *target,
                struct bench_failure *failure)
{
    struct first_state *state = calloc(1, sizeof *state);
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_error err = {0};
    char name[64];
    int rc;

    *out = state;
    if (state == NULL)
        return bench_fail(failure, "out of memory");
    options.table_prefix = target->lock_prefix;
    options.ownership = SQLOCK_OWNED_BY_REGISTRY; /* threads change */
    state->options = options;
    state->url = target->url;
    rc = sqlock_registry_open(&state->holding, target->url, &options, &err);
    for (unsigned i = 0; i < target->clients && rc == 0; i++) {
        (void)snprintf(name, sizeof name, "bench first %u", i);
        rc = sqlock_obtain(&state->clients[i].held, state->holding, name, &err);
        state->count += rc == 0;
    }
    return rc == 0 ? 0 : bench_fail(failure, "first-wait: %s", err.message);
}

void first_teardown(void *opaque)
{
    struct first_state *state = opaque;

    if (state == NULL)
        return;
    for (unsigned i = 0; i < state->count; i++)
        first_settle(state, i);
    (void)sqlock_registry_close(state->holding, NULL);
    free(state);
}
