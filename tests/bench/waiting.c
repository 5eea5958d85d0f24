/*
 * waiting.c - the cases of many clients and one lock: how fast it goes from one
 * to the next
 *
 * Each client takes the lock, holds it for 0.1 ms and gives it back, at once
 * again.  Compared with the same through a row locked FOR UPDATE (on SQLite the
 * file's write lock), which is the database's own queue, and, for the threads of
 * one process, with a queue of theirs and one UPDATE for each turn.
 */
#include "cases.h"
#include "floor.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sqlock.h"

#define HOLD_NS 100000

static void hold(void)
{
    const struct timespec time = {.tv_nsec = HOLD_NS};

    (void)nanosleep(&time, NULL);
}

/* ------------------------------------------------------------- with sqlock -- */

struct queue_state {
    sqlock_registry *registry;
    sqlock_lock *lock;
};

static int set_up(void **out, const struct bench_target *target,
                  sqlock_waiting waiting, struct bench_failure *failure)
{
    struct queue_state *state = calloc(1, sizeof *state);
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_error err = {0};

    *out = state;
    if (state == NULL)
        return bench_fail(failure, "out of memory");
    options.table_prefix = target->lock_prefix;
    options.waiting = waiting;
    if (sqlock_registry_open(&state->registry, target->url, &options, &err) <
            0 ||
        sqlock_obtain(&state->lock, state->registry,
                      waiting == SQLOCK_WAITING_POLL ? "bench polled"
                                                     : "bench queued",
                      &err) < 0)
        return bench_fail(failure, "sqlock: %s", err.message);
    return 0;
}

int queue_setup(void **out, const struct bench_target *target,
                struct bench_failure *failure)
{
    return set_up(out, target, SQLOCK_WAITING_AUTO, failure);
}

int poll_setup(void **out, const struct bench_target *target,
               struct bench_failure *failure)
{
    return set_up(out, target, SQLOCK_WAITING_POLL, failure);
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

int queue_turn(void *opaque, unsigned client, struct bench_failure *failure)
{
    struct queue_state *state = opaque;
    sqlock_error err = {0};

    (void)client;
    if (sqlock_acquire(state->lock, SQLOCK_FOREVER, NULL, &err) < 0)
        return bench_fail(failure, "sqlock_acquire: %s", err.message);
    hold();
    if (sqlock_release(state->lock, &err) < 0)
        return bench_fail(failure, "sqlock_release: %s", err.message);
    return 0;
}

/* ---------------------------------------------------------- without sqlock -- */

struct row_state {
    const struct floor_driver *floor;
    bool is_sqlite;
    unsigned clients;
    void *connections[BENCH_CLIENTS_MAX];
    /* a queue of threads */
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
    state->floor = target->floor;
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
    hold();
    return state->floor->run(connection, "COMMIT", failure);
}

/* A queue of threads, first come first served, and one UPDATE a turn. */
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
    hold();
    rc = state->floor->update(state->connections[client], failure);
    pthread_mutex_lock(&state->mutex);
    state->serving++;
    pthread_cond_signal(&state->called[state->serving % state->clients]);
    pthread_mutex_unlock(&state->mutex);
    return rc;
}
