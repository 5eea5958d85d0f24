/*
 * crowd.c - the case of a lock that goes from hand to hand while others wait
 * for other locks: what those who wait cost whom they do not wait for
 *
 * Each of them waits for a lock of its own, and is idle.  They are requests of
 * several registries, since a registry has one session at most that is told of
 * each release.
 */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sqlock.h"
#include "sqlock/admin.h"
#include "sqlock/async.h"

#define REGISTRIES 20
#define WAITERS 200
#define TTL_MS 3600000
#define LOOK_NS 5000000
#define SETTLE_NS INT64_C(60000000000)

/* One who waits for a lock that another one has. */
struct waiter {
    sqlock_lock *held;
    sqlock_lock *wanted;
    sqlock_request *request; /* NULL: none yet */
};

struct crowd_state {
    void *queue; /* of queue_setup() */
    const char *url, *prefix;
    sqlock_registry *holder;
    sqlock_registry *registries[REGISTRIES];
    struct waiter waiters[WAITERS];
};

int crowded_setup(void **out, const struct bench_target *target,
                  struct bench_failure *failure)
{
    struct crowd_state *state = calloc(1, sizeof *state);

    *out = state;
    if (state == NULL)
        return bench_fail(failure, "out of memory");
    state->url = target->url;
    state->prefix = target->lock_prefix;
    return queue_setup(&state->queue, target, failure);
}

int crowded_turn(void *opaque, unsigned client, struct bench_failure *failure)
{
    struct crowd_state *state = opaque;

    return queue_turn(state->queue, client, failure);
}

void crowded_teardown(void *opaque)
{
    struct crowd_state *state = opaque;

    if (state == NULL)
        return;
    queue_teardown(state->queue);
    free(state);
}

static int open_registry(sqlock_registry **out, const struct crowd_state *state,
                         sqlock_error *err)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;

    options.table_prefix = state->prefix;
    options.ttl_ms = TTL_MS;
    return sqlock_registry_open(out, state->url, &options, err);
}

/* Have one more wait for a lock of its own. */
static int add(struct crowd_state *state, unsigned i, sqlock_error *err)
{
    struct waiter *waiter = &state->waiters[i];
    char name[32];
    int rc;

    (void)snprintf(name, sizeof name, "bench crowd %u", i);
    rc = sqlock_obtain(&waiter->held, state->holder, name, err);
    if (rc == 0)
        rc = sqlock_acquire(waiter->held, 0, NULL, err);
    if (rc == 0)
        rc = sqlock_obtain(&waiter->wanted, state->registries[i % REGISTRIES],
                           name, err);
    if (rc == 0)
        rc = sqlock_request_acquire(&waiter->request, waiter->wanted,
                                    SQLOCK_FOREVER, NULL, 0, err);
    return rc;
}

/* Wait until that one has its ticket.  A request that ends before that has
 * failed, since another has its lock. */
static int settle(struct crowd_state *state, unsigned i,
                  struct bench_failure *failure)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    struct waiter *waiter = &state->waiters[i];
    sqlock_error err = {0};
    int rc = 0;

    for (int64_t left_ns = SETTLE_NS; left_ns > 0 && rc == 0;
         left_ns -= LOOK_NS) {
        sqlock_info *row = NULL;
        bool waits;

        rc = sqlock_show(state->holder, sqlock_name(waiter->held), &row, &err);
        waits = rc == 0 && row->waiters > 0;
        sqlock_info_free(row, 1);
        if (waits)
            return 0;
        (void)nanosleep(&pause, NULL);
        if (rc == 0 &&
            sqlock_request_status(waiter->request) != SQLOCK_REQUEST_FETCHING) {
            rc = sqlock_request_finish(waiter->request, &err);
            waiter->request = NULL;
            break;
        }
    }
    return rc < 0 ? bench_fail_call(failure, "a crowd", rc, &err)
                  : bench_fail(failure, "a crowd: a request does not wait");
}

int crowded_begin(void *opaque, struct bench_failure *failure)
{
    struct crowd_state *state = opaque;
    sqlock_error err = {0};
    int rc = open_registry(&state->holder, state, &err);

    for (unsigned i = 0; i < REGISTRIES && rc == 0; i++)
        rc = open_registry(&state->registries[i], state, &err);
    for (unsigned i = 0; i < WAITERS && rc == 0; i++)
        rc = add(state, i, &err);
    if (rc != 0)
        return bench_fail_call(failure, "a crowd", rc, &err);
    for (unsigned i = 0; i < WAITERS && rc == 0; i++)
        rc = settle(state, i, failure);
    return rc;
}

void crowded_end(void *opaque)
{
    struct crowd_state *state = opaque;

    for (unsigned i = 0; i < WAITERS; i++) {
        struct waiter *waiter = &state->waiters[i];

        (void)sqlock_request_abandon(waiter->request, NULL);
        waiter->request = NULL;
    }
    for (unsigned i = 0; i < REGISTRIES; i++) {
        (void)sqlock_registry_close(state->registries[i], NULL);
        state->registries[i] = NULL;
    }
    (void)sqlock_registry_close(state->holder, NULL);
    state->holder = NULL;
}
