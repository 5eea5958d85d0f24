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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    const struct floor_driver *floor;
    bool is_sqlite;
    unsigned first;
    int64_t hold_ns;
    unsigned clients;
    void *connections[BENCH_CLIENTS_MAX];
    /* the queue of threads of local_turn() */
    pthread_mutex_t mutex;
    pthread_cond_t called[BENCH_CLIENTS_MAX];
    uint64_t next_ticket, serving;
};

static int prepare_row(struct row_state *state,
                       const struct bench_target *target, void *connection,
                       struct bench_failure *failure)
{
    char select[256];
    char text[320];

    (void)snprintf(select, sizeof select,
                   "SELECT FENCE FROM %sLOCK WHERE LOCK_KEY = (SELECT "
                   "MIN(LOCK_KEY) FROM %sLOCK) AND REGION = '" FLOOR_REGION
                   "' FOR UPDATE",
                   target->floor_prefix, target->floor_prefix);
    if (state->is_sqlite)
        return 0;
    if (strcmp(target->database, "postgres") == 0)
        (void)snprintf(text, sizeof text, "PREPARE bench_queue AS %s", select);
    else
        (void)snprintf(text, sizeof text, "PREPARE bench_queue FROM \"%s\"",
                       select);
    return state->floor->run(connection, text, failure);
}

int row_setup(void **out, const struct bench_target *target,
              struct bench_failure *failure)
{
    struct row_state *state = calloc(1, sizeof *state);
    int rc = 0;

    *out = state;
    if (state == NULL)
        return bench_fail(failure, "out of memory");
    if (bench_turns_open(failure) < 0)
        return -1;
    state->floor = target->floor;
    state->first = target->first;
    state->hold_ns = target->hold_ns;
    state->is_sqlite = strcmp(target->database, "sqlite") == 0;
    (void)pthread_mutex_init(&state->mutex, NULL);
    for (unsigned i = 0; i < target->clients && rc == 0; i++) {
        (void)pthread_cond_init(&state->called[i], NULL);
        state->clients = i + 1;
        rc = state->floor->open(&state->connections[i], target,
                                target->first + i, failure);
        if (rc == 0)
            rc = prepare_row(state, target, state->connections[i], failure);
    }
    return rc;
}

void row_teardown(void *opaque)
{
    struct row_state *state = opaque;

    if (state == NULL)
        return;
    for (unsigned i = 0; i < state->clients; i++)
        if (state->connections[i] != NULL)
            state->floor->close(state->connections[i]);
    free(state);
}

int row_turn(void *opaque, unsigned client, struct bench_failure *failure)
{
    struct row_state *state = opaque;
    void *connection = state->connections[client];
    int64_t number;

    if (state->floor->run(connection,
                          state->is_sqlite ? "BEGIN IMMEDIATE" : "BEGIN",
                          failure) < 0 ||
        (!state->is_sqlite &&
         state->floor->number(connection, "EXECUTE bench_queue", &number,
                              failure) < 0))
        return -1;
    hold(state->first + client, state->hold_ns);
    return state->floor->run(connection, "COMMIT", failure);
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
        pthread_cond_wait(&state->called[ticket % state->clients],
                          &state->mutex);
    pthread_mutex_unlock(&state->mutex);
    hold(state->first + client, state->hold_ns);
    rc = state->floor->update(state->connections[client], failure);
    pthread_mutex_lock(&state->mutex);
    state->serving++;
    pthread_cond_signal(&state->called[state->serving % state->clients]);
    pthread_mutex_unlock(&state->mutex);
    return rc;
}
