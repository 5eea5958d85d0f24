/*
 * waiting.c - the cases of many clients and one lock: how fast the lock goes
 * from one client to the next
 *
 * Each client acquires the lock, holds it for a moment (--hold), releases it
 * and begins again.  That is compared with a row that clients lock FOR UPDATE
 * (on SQLite the file's write lock), where they wait in the database; with a
 * queue of threads and one UPDATE for each turn; and with clients that try to
 * acquire the lock every 100 ms.  Turns (turns.h) are compared.
 */
#include "cases.h"
#include "floor.h"
#include "turns.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "sqlock.h"

#define POLL_MS 100

static void hold(unsigned client, int64_t hold_ns)
{
    const struct timespec time = {.tv_sec = hold_ns / 1000000000,
                                  .tv_nsec = hold_ns % 1000000000};

    bench_turn(client);
    if (hold_ns > 0)
        (void)nanosleep(&time, NULL);
}

/* ----------------------------------------------------------- with sqlock -- */

struct queue_state {
    sqlock_registry *registry;
    sqlock_lock *lock;
    unsigned first; /* number of the first client */
    int64_t hold_ns;
};

static int set_up(void **out, const struct bench_target *target,
                  const char *name, struct bench_failure *failure)
{
    struct queue_state *state = calloc(1, sizeof *state);
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_error err = {0};

    *out = state;
    if (state == NULL)
        return bench_fail(failure, "out of memory");
    state->first = target->first;
    state->hold_ns = target->hold_ns;
    options.table_prefix = target->lock_prefix;
    if (sqlock_registry_open(&state->registry, target->url, &options, &err) <
            0 ||
        sqlock_obtain(&state->lock, state->registry, name, &err) < 0)
        return bench_fail(failure, "sqlock: %s", err.message);
    return bench_turns_open(failure);
}

int queue_setup(void **out, const struct bench_target *target,
                struct bench_failure *failure)
{
    return set_up(out, target, "bench queued", failure);
}

int fast_queue_setup(void **out, const struct bench_target *target,
                     struct bench_failure *failure)
{
    struct bench_fast fast;

    return bench_make_fast(&fast, target, failure) < 0
               ? -1
               : set_up(out, &fast.target, "bench fast", failure);
}

int poller_setup(void **out, const struct bench_target *target,
                 struct bench_failure *failure)
{
    return set_up(out, target, "bench polled", failure);
}

void queue_teardown(void *opaque)
{
    struct queue_state *state = opaque;

    if (state == NULL)
        return;
    (void)sqlock_drop(state->lock, NULL);
    (void)sqlock_registry_close(state->registry, NULL);
    free(state);
}

static int give_back(struct queue_state *state, struct bench_failure *failure)
{
    sqlock_error err = {0};

    if (sqlock_release(state->lock, &err) < 0)
        return bench_fail(failure, "sqlock_release: %s", err.message);
    return 0;
}

static int take_turn(struct queue_state *state, unsigned client,
                     const sqlock_acquire_options *options,
                     struct bench_failure *failure)
{
    sqlock_error err = {0};

    if (sqlock_acquire(state->lock, SQLOCK_FOREVER, options, &err) < 0)
        return bench_fail(failure, "sqlock_acquire: %s", err.message);
    hold(state->first + client, state->hold_ns);
    return give_back(state, failure);
}

int queue_turn(void *opaque, unsigned client, struct bench_failure *failure)
{
    return take_turn(opaque, client, NULL, failure);
}

int permits_setup(void **out, const struct bench_target *target,
                  struct bench_failure *failure)
{
    return set_up(out, target, "bench permits", failure);
}

int permits_turn(void *opaque, unsigned client, struct bench_failure *failure)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;

    options.mode = SQLOCK_SHARED;
    options.permits = 3;
    return take_turn(opaque, client, &options, failure);
}

int poller_turn(void *opaque, unsigned client, struct bench_failure *failure)
{
    const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
    struct queue_state *state = opaque;
    sqlock_error err = {0};
    int rc;

    while ((rc = sqlock_acquire(state->lock, 0, NULL, &err)) == SQLOCK_EBUSY)
        (void)nanosleep(&pause, NULL);
    if (rc < 0)
        return bench_fail(failure, "sqlock_acquire: %s", err.message);
    hold(state->first + client, state->hold_ns);
    return give_back(state, failure);
}

/* -------------------------------------------------------- without sqlock -- */

struct row_state {
    struct floor_clients floor;
    unsigned first;
    int64_t hold_ns;
    /* the queue of threads of local_turn() */
    pthread_mutex_t mutex;
    pthread_cond_t called[BENCH_CLIENTS_MAX];
    uint64_t next_ticket, serving;
};

int row_setup(void **out, const struct bench_target *target,
              struct bench_failure *failure)
{
    struct row_state *state = calloc(1, sizeof *state);
    const char *prefix = target->floor_prefix;
    int rc;

    *out = state;
    if (state == NULL)
        return bench_fail(failure, "out of memory");
    if (bench_turns_open(failure) < 0)
        return -1;
    state->first = target->first;
    state->hold_ns = target->hold_ns;
    (void)pthread_mutex_init(&state->mutex, NULL);
    for (unsigned i = 0; i < target->clients; i++)
        (void)pthread_cond_init(&state->called[i], NULL);
    rc = floor_clients_open(&state->floor, target, failure);
    for (unsigned i = 0; i < target->clients && rc == 0; i++)
        rc = floor_prepare(&state->floor.client[i], FLOOR_SELECT, failure,
                           "SELECT FENCE FROM %sLOCK WHERE LOCK_KEY = (SELECT "
                           "MIN(LOCK_KEY) FROM %sLOCK) AND REGION = "
                           "'" FLOOR_REGION "'%s",
                           prefix, prefix, target->floor->locking);
    return rc;
}

void row_teardown(void *opaque)
{
    struct row_state *state = opaque;

    if (state != NULL)
        floor_clients_close(&state->floor);
    free(state);
}

int row_turn(void *opaque, unsigned client, struct bench_failure *failure)
{
    struct row_state *state = opaque;
    struct floor_connection *connection = &state->floor.client[client];

    /* SQLite's transaction has locked the file. */
    if (floor_begin(connection, failure) != 0 ||
        (connection->driver->locking[0] != '\0' &&
         floor_execute(connection, FLOOR_SELECT, NULL, failure) != 0))
        return -1;
    hold(state->first + client, state->hold_ns);
    return floor_commit(connection, failure);
}

/* Wait in a queue of threads, first come, first served, and run one UPDATE for
 * each turn. */
int local_turn(void *opaque, unsigned client, struct bench_failure *failure)
{
    struct row_state *state = opaque;
    uint64_t ticket;
    int rc;

    pthread_mutex_lock(&state->mutex);
    ticket = state->next_ticket++;
    while (state->serving != ticket)
        pthread_cond_wait(&state->called[ticket % state->floor.count],
                          &state->mutex);
    pthread_mutex_unlock(&state->mutex);
    hold(state->first + client, state->hold_ns);
    rc = floor_update(&state->floor.client[client], failure);
    pthread_mutex_lock(&state->mutex);
    state->serving++;
    pthread_cond_signal(&state->called[state->serving % state->floor.count]);
    pthread_mutex_unlock(&state->mutex);
    return rc;
}
