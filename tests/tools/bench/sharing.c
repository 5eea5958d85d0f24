/*
 * sharing.c - the cases of one who takes a lock among many of the other mode
 *
 * Client 0 takes the lock, which the others hold for a turn each in the other
 * mode, again and again; only its operations are reported.  They end when it
 * has the lock, so the ratio to the case "turn" says how many turns of another
 * it waits.  Each client has a registry of its own, as a process has.
 */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TURN_NS 20000000

struct sharing_state {
    sqlock_mode first, others;
    unsigned clients;
    struct {
        sqlock_registry *registry;
        sqlock_lock *lock;
    } client[BENCH_CLIENTS_MAX];
};

static int set_up(void **out, const struct bench_target *target,
                  sqlock_mode first, sqlock_mode others,
                  struct bench_failure *failure)
{
    struct sharing_state *state = calloc(1, sizeof *state);
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_error err = {0};
    char name[64];

    *out = state;
    if (state == NULL)
        return bench_fail(failure, "out of memory");
    state->first = first;
    state->others = others;
    options.table_prefix = target->lock_prefix;
    (void)snprintf(name, sizeof name, "bench sharing %d%d", (int)first,
                   (int)others);
    for (unsigned i = 0; i < target->clients; i++) {
        state->clients = i + 1;
        if (sqlock_registry_open(&state->client[i].registry, target->url,
                                 &options, &err) < 0 ||
            sqlock_obtain(&state->client[i].lock, state->client[i].registry,
                          name, &err) < 0)
            return bench_fail(failure, "sqlock: %s", err.message);
    }
    return 0;
}

int turn_setup(void **out, const struct bench_target *target,
               struct bench_failure *failure)
{
    return set_up(out, target, SQLOCK_SHARED, SQLOCK_SHARED, failure);
}

int writer_setup(void **out, const struct bench_target *target,
                 struct bench_failure *failure)
{
    return set_up(out, target, SQLOCK_EXCLUSIVE, SQLOCK_SHARED, failure);
}

int reader_setup(void **out, const struct bench_target *target,
                 struct bench_failure *failure)
{
    return set_up(out, target, SQLOCK_SHARED, SQLOCK_EXCLUSIVE, failure);
}

void sharing_teardown(void *opaque)
{
    struct sharing_state *state = opaque;

    if (state == NULL)
        return;
    for (unsigned i = 0; i < state->clients; i++)
        (void)sqlock_registry_close(state->client[i].registry, NULL);
    free(state);
}

static void pass_turn(void)
{
    const struct timespec time = {.tv_nsec = TURN_NS};

    (void)nanosleep(&time, NULL);
}

static int take(struct sharing_state *state, unsigned client,
                struct bench_failure *failure)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_error err = {0};

    options.mode = client == 0 ? state->first : state->others;
    if (sqlock_acquire(state->client[client].lock, SQLOCK_FOREVER, &options,
                       &err) < 0)
        return bench_fail(failure, "sqlock_acquire: %s", err.message);
    return 0;
}

static int give(struct sharing_state *state, unsigned client,
                struct bench_failure *failure)
{
    sqlock_error err = {0};

    if (sqlock_release(state->client[client].lock, &err) < 0)
        return bench_fail(failure, "sqlock_release: %s", err.message);
    return 0;
}

int sharing_turn(void *opaque, unsigned client, struct bench_failure *failure)
{
    if (take(opaque, client, failure) < 0)
        return -1;
    pass_turn();
    return give(opaque, client, failure);
}

int sharing_take(void *opaque, unsigned client, struct bench_failure *failure)
{
    return client == 0 ? take(opaque, client, failure)
                       : sharing_turn(opaque, client, failure);
}

/* Client 0 gives back what it has taken, and lets the others go on. */
void sharing_settle(void *opaque, unsigned client)
{
    struct bench_failure failure = {""};

    if (client > 0)
        return;
    if (give(opaque, client, &failure) < 0)
        (void)fprintf(stderr, "bench: %s\n", failure.text);
    pass_turn();
}
