/*
 * idle.c - the cases of clients that wait for a lock that is never released
 *
 * The cases count the statements that are sent meanwhile: by threads that are
 * blocked in sqlock_acquire(), and by clients that try every 100 ms.
 */
#include "cases.h"
#include "counted.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "sqlock.h"

#define KEPT_MS 3600000
#define POLL_NS 100000000L
#define LOOK_NS 10000000L
#define SETTLE_NS 500000000L

struct idle_state {
    sqlock_registry *keeping, *waiting;
    sqlock_lock *kept, *wanted;
    pthread_t waiters[BENCH_CLIENTS_MAX];
    unsigned count; /* of waiters */
};

/* Hold the lock, unless another process has set up and holds it. */
static int keep(struct idle_state *state, const struct bench_target *target,
                const sqlock_options *options, const char *name,
                sqlock_error *err)
{
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;
    int rc;

    if (target->is_set_up)
        return 0;
    how.ttl_ms = KEPT_MS;
    rc = sqlock_registry_open(&state->keeping, target->url, options, err);
    if (rc == 0)
        rc = sqlock_obtain(&state->kept, state->keeping, name, err);
    return rc < 0 ? rc : sqlock_acquire(state->kept, 0, &how, err);
}

static int set_up(void **out, const struct bench_target *target,
                  const char *name, struct bench_failure *failure)
{
    struct idle_state *state = calloc(1, sizeof *state);
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    char url[COUNTED_URL_SIZE];
    sqlock_error err = {0};

    *out = state;
    if (state == NULL)
        return bench_fail(failure, "out of memory");
    if (bench_counted_url(url, target->url, failure) < 0)
        return -1;
    options.table_prefix = target->lock_prefix;
    if (keep(state, target, &options, name, &err) < 0 ||
        sqlock_registry_open(&state->waiting, url, &options, &err) < 0 ||
        sqlock_obtain(&state->wanted, state->waiting, name, &err) < 0)
        return bench_fail(failure, "sqlock: %s", err.message);
    return 0;
}

int idle_poller_setup(void **out, const struct bench_target *target,
                      struct bench_failure *failure)
{
    return set_up(out, target, "bench kept from pollers", failure);
}

int idle_setup(void **out, const struct bench_target *target,
               struct bench_failure *failure)
{
    const struct timespec settle = {.tv_sec = 1, .tv_nsec = SETTLE_NS};
    struct idle_state *state;
    int rc = set_up(out, target, "bench kept", failure);

    state = *out;
    if (rc < 0 || state == NULL)
        return -1;
    for (; state->count < target->clients; state->count++)
        begin_waiter(&state->waiters[state->count], state->wanted);
    (void)nanosleep(&settle, NULL); /* beginning to wait is not measured */
    return 0;
}

void idle_teardown(void *opaque)
{
    struct idle_state *state = opaque;
    unsigned i;

    if (state == NULL)
        return;
    if (state->count > 0)
        (void)sqlock_cancel(state->wanted, NULL);
    for (i = 0; i < state->count; i++)
        (void)pthread_join(state->waiters[i], NULL);
    (void)sqlock_registry_close(state->waiting, NULL);
    (void)sqlock_registry_close(state->keeping, NULL);
    free(state);
}

int idle_look(void *opaque, unsigned client, struct bench_failure *failure)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};

    (void)opaque;
    (void)client;
    (void)failure;
    (void)nanosleep(&pause, NULL);
    return 0;
}

int idle_try(void *opaque, unsigned client, struct bench_failure *failure)
{
    const struct timespec pause = {.tv_nsec = POLL_NS};
    struct idle_state *state = opaque;
    sqlock_error err = {0};
    int rc = sqlock_acquire(state->wanted, 0, NULL, &err);

    (void)client;
    if (rc != SQLOCK_EBUSY)
        return bench_fail(failure, "sqlock_acquire of a renewed lock: %d %s",
                          rc, err.message);
    (void)nanosleep(&pause, NULL);
    return 0;
}

uint64_t idle_statements(void *opaque)
{
    (void)opaque;
    return bench_counted();
}
