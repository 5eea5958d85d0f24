/*
 * crosswise.c - threads that take several locks one by one, at random, through
 * two registries: nobody waits for ever, and nobody is told of a deadlock
 * without one
 */
#include "conformance.h"

#include <stdio.h>

#include "sqlock/many.h"
#include "support/workers.h"

#define LOCKS 5
#define THREADS 6
#define WAIT_MS (10 * PATIENCE_MS)

struct crossing {
    sqlock_lock *locks[LOCKS];
    bool is_in_order; /* all take locks in one order: there is no circle */
    atomic_uint told;
};

static unsigned next_random(unsigned *state)
{
    *state = *state * 1103515245U + 12345U;
    return *state >> 16;
}

/* Choose up to three locks, each once; return their number. */
static unsigned choose(const struct crossing *crossing, unsigned *random,
                       sqlock_lock **chosen)
{
    unsigned wanted = 1 + next_random(random) % 3;
    unsigned first = next_random(random) % LOCKS;
    unsigned step = 1 + next_random(random) % (LOCKS - 1);
    bool has[LOCKS] = {false};
    unsigned count = 0;

    for (unsigned i = 0; i < wanted; i++)
        has[(first + i * step) % LOCKS] = true;
    for (unsigned i = 0; i < LOCKS; i++) {
        unsigned at = crossing->is_in_order ? i : (first + i * step) % LOCKS;

        if (has[at])
            chosen[count++] = crossing->locks[at];
        has[at] = false;
    }
    return count;
}

static int release_all(struct worker *worker, sqlock_lock **held,
                       unsigned count)
{
    while (count-- > 0) {
        int rc = sqlock_release(held[count], &worker->err);

        if (rc < 0)
            return worker_fail(worker, "release gave %d: %s", rc,
                               worker->err.message);
    }
    return 0;
}

/* Take the locks one by one, and give back those that are held when a deadlock
 * is told. */
static int take_each(struct worker *worker, sqlock_lock **chosen,
                     unsigned count)
{
    struct crossing *crossing = worker->context;

    for (unsigned i = 0; i < count; i++) {
        int rc = lock_try(chosen[i], WAIT_MS, 0, &worker->err);

        if (rc == SQLOCK_EDEADLOCK && !crossing->is_in_order && i > 0) {
            (void)atomic_fetch_add(&crossing->told, 1);
            return release_all(worker, chosen, i);
        }
        if (rc < 0)
            return worker_fail(worker, "acquire gave %d: %s", rc,
                               worker->err.message);
        check_sleep(1);
    }
    return release_all(worker, chosen, count);
}

/* Locks of one registry, together. */
static int take_many(struct worker *worker)
{
    struct crossing *crossing = worker->context;
    sqlock_lock *two[] = {crossing->locks[2], crossing->locks[0]};
    int rc = sqlock_acquire_many(two, 2, WAIT_MS, NULL, NULL, &worker->err);

    if (rc < 0)
        return worker_fail(worker, "acquire_many gave %d: %s", rc,
                           worker->err.message);
    check_sleep(1);
    return release_all(worker, two, 2);
}

static int cross(struct worker *worker)
{
    struct crossing *crossing = worker->context;
    unsigned random = 4711 + worker->index;
    sqlock_lock *chosen[LOCKS];
    int rc = 0;

    for (unsigned i = 0; rc == 0 && i < check_scale(40, 4000); i++) {
        if (worker->index == 0)
            rc = take_many(worker);
        else
            rc = take_each(worker, chosen, choose(crossing, &random, chosen));
    }
    return rc;
}

static void run(struct fixture *f, struct crossing *crossing)
{
    sqlock_registry *registries[] = {f->a, f->b};
    struct workers workers;

    for (unsigned i = 0; i < LOCKS; i++) {
        char name[96];

        (void)snprintf(name, sizeof name, "%s/%u", f->name, i);
        crossing->locks[i] = lock_obtain(registries[i % 2], name);
    }
    workers_start(&workers, THREADS, cross, crossing);
    workers_join(&workers);
    for (unsigned i = 0; i < LOCKS; i++)
        lock_drop(crossing->locks[i]);
}

TEST(test_in_one_order_nobody_is_told_of_a_deadlock)
{
    struct crossing crossing = {.is_in_order = true};

    run(f, &crossing);
}

TEST(test_in_any_order_nobody_waits_for_ever)
{
    struct crossing crossing = {.is_in_order = false};

    run(f, &crossing);
    assert_true(atomic_load(&crossing.told) > 0);
}
