/*
 * races.c - many claims at once: exactly one is granted, and no deadlock or
 * conflict of the database is returned to a caller (F20, F22, F24)
 */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

#include "support/workers.h"

#define REGISTRIES 4

struct contest {
    sqlock_lock *locks[REGISTRIES];
    atomic_uint granted;
};

static int claim_once(struct worker *worker)
{
    struct contest *contest = worker->context;
    sqlock_lock *lock = contest->locks[worker->index];
    int rc = lock_try(lock, 0, 0, &worker->err);

    if (rc == 0) {
        (void)atomic_fetch_add(&contest->granted, 1);
        return 0;
    }
    if (rc != SQLOCK_EBUSY)
        return worker_fail(worker, "acquire gave %d: %s", rc,
                           worker->err.message);
    return 0;
}

/* Let all registries claim the lock at once, and assert that one is granted
 * it. */
static void contend(struct fixture *f, sqlock_registry *const *registries)
{
    struct contest contest = {.granted = 0};
    struct workers workers;
    int i;

    for (i = 0; i < REGISTRIES; i++)
        contest.locks[i] = lock_obtain(registries[i], f->name);
    workers_start(&workers, REGISTRIES, claim_once, &contest);
    workers_join(&workers);
    assert_int_equal(atomic_load(&contest.granted), 1);
}

/* Open the registries.  A lock whose thread has ended stays held until its
 * registry is closed. */
static void open_all(struct fixture *f, sqlock_registry **registries)
{
    sqlock_options options = fixture_options(f);
    int i;

    options.pool_size = 1;
    for (i = 0; i < REGISTRIES; i++)
        registries[i] = fixture_registry(f, &options);
}

static void close_all(sqlock_registry **registries)
{
    int i;

    for (i = 0; i < REGISTRIES; i++)
        registry_end(registries[i]);
}

/* The row does not exist yet, and all claim it at once.  The count of affected
 * rows must not make two of them believe that they have inserted it. */
static void test_F20_of_many_first_claims_one_is_granted(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registries[REGISTRIES];
    unsigned round;

    open_all(f, registries);
    for (round = 0; round < check_scale(25, 2000); round++) {
        fixture_next(f);
        contend(f, registries);
    }
    close_all(registries);
}

/* The holder's row is deleted, and all claim the lock at once.  A row that does
 * not exist cannot be locked to keep others out, so the claiming statement
 * itself must let only one in. */
static void test_F24_a_row_that_is_not_there_lets_only_one_in(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registries[REGISTRIES];
    sqlock_lock *old = lock_obtain(f->a, f->name);
    unsigned round;

    open_all(f, registries);
    for (round = 0; round < check_scale(10, 500); round++) {
        lock_take(old, 0);
        fixture_delete(f, f->name);
        contend(f, registries);
        assert_fails(SQLOCK_ELOST, sqlock_release(old, &f->err));
        close_all(registries);
        open_all(f, registries);
    }
    close_all(registries);
    lock_drop(old);
}

/* One claim takes over an expired lease; the others find the lock busy. */
static void test_of_many_takeovers_one_is_granted(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registries[REGISTRIES];
    sqlock_lock *old = lock_obtain(f->a, f->name);

    open_all(f, registries);
    lock_take(old, 100);
    fixture_await_expiry(f, f->name);
    contend(f, registries);
    assert_fails(SQLOCK_ELOST, sqlock_release(old, &f->err));
    close_all(registries);
    lock_drop(old);
}

/* --- F22 --- */

#define THREADS 8

/* Threads of two registries that acquire a few keys, one key at a time. */
struct bustle {
    sqlock_registry *registries[2];
    const char *name;
    unsigned keys;
    unsigned rounds;
    atomic_int inside[THREADS]; /* threads, for each key */
};

static int bustle_once(struct worker *worker, struct bustle *bustle,
                       unsigned round)
{
    unsigned key = (worker->index + round) % bustle->keys;
    sqlock_registry *registry = bustle->registries[worker->index % 2];
    char name[80];
    sqlock_lock *lock;

    (void)snprintf(name, sizeof name, "%s/%u", bustle->name, key);
    worker_expect(worker, 0,
                  sqlock_obtain(&lock, registry, name, &worker->err));
    worker_expect(worker, 0, lock_try(lock, PATIENCE_MS, 0, &worker->err));
    if (atomic_fetch_add(&bustle->inside[key], 1) != 0)
        return worker_fail(worker, "two owners of key %u", key);
    (void)atomic_fetch_sub(&bustle->inside[key], 1);
    worker_expect(worker, 0, sqlock_release(lock, &worker->err));
    if (sqlock_drop(lock, &worker->err) < 0 &&
        worker->err.code != SQLOCK_EINUSE)
        return worker_fail(worker, "drop: %s", worker->err.message);
    return 0;
}

static int bustle_on(struct worker *worker)
{
    struct bustle *bustle = worker->context;
    unsigned round;

    for (round = 0; round < bustle->rounds; round++) {
        int rc = bustle_once(worker, bustle, round);

        if (rc < 0)
            return rc;
    }
    return 0;
}

static void check_bustle(struct fixture *f, unsigned keys, unsigned rounds)
{
    sqlock_options options = fixture_options(f);
    struct bustle bustle = {.name = f->name, .keys = keys, .rounds = rounds};
    struct workers workers;

    options.pool_size = THREADS;
    bustle.registries[0] = fixture_registry(f, &options);
    bustle.registries[1] = fixture_registry(f, &options);
    workers_start(&workers, THREADS, bustle_on, &bustle);
    workers_join(&workers);
    registry_end(bustle.registries[0]);
    registry_end(bustle.registries[1]);
}

static void test_F22_no_deadlock_surfaces_on_one_key(void **state)
{
    check_bustle(*state, 1, check_scale(20, 5000));
}

static void test_F22_no_deadlock_surfaces_on_few_keys(void **state)
{
    check_bustle(*state, 3, check_scale(20, 5000));
}

static void test_F22_no_deadlock_surfaces_on_keys_of_their_own(void **state)
{
    check_bustle(*state, THREADS, check_scale(20, 5000));
}

/* Acquire and release once; there are more threads than connections. */
static int share_pool(struct worker *worker)
{
    struct bustle *bustle = worker->context;

    return bustle_once(worker, bustle, worker->index);
}

static void test_a_pool_of_one_serves_many_threads(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    struct bustle bustle = {.name = f->name, .keys = THREADS};
    struct workers workers;

    options.pool_size = 1;
    bustle.registries[0] = fixture_registry(f, &options);
    bustle.registries[1] = bustle.registries[0];
    workers_start(&workers, THREADS, share_pool, &bustle);
    workers_join(&workers);
    registry_end(bustle.registries[0]);
}

static const struct test tests[] = {
    TEST(test_F20_of_many_first_claims_one_is_granted),
    TEST(test_F24_a_row_that_is_not_there_lets_only_one_in),
    TEST(test_of_many_takeovers_one_is_granted),
    TEST(test_F22_no_deadlock_surfaces_on_one_key),
    TEST(test_F22_no_deadlock_surfaces_on_few_keys),
    TEST(test_F22_no_deadlock_surfaces_on_keys_of_their_own),
    TEST(test_a_pool_of_one_serves_many_threads),
};
const struct topic topic_races = TOPIC(tests);
