/*
 * order.c - acquisitions of overlapping sets of locks do not deadlock, and an
 * acquisition that waits gets its locks
 */
#include "renewer.h"

#include "sqlock/many.h"
#include "support/tap.h"
#include "support/workers.h"

#define SET 8
#define WORKERS 4

struct sets {
    sqlock_lock *locks[WORKERS][SET];
    unsigned rounds;
    atomic_int inside;
    atomic_uint taken;
};

/* Acquire and release the worker's set of locks, again and again; fail at the
 * first error, such as a deadlock, or if another worker has its set as well. */
static int take_sets(struct worker *worker)
{
    struct sets *sets = worker->context;
    sqlock_lock *const *locks = sets->locks[worker->index];

    for (unsigned i = 0; i < sets->rounds; i++) {
        int inside;

        worker_expect(worker, 0,
                      sqlock_acquire_many(locks, SET, PATIENCE_MS, NULL, NULL,
                                          &worker->err));
        inside = atomic_fetch_add(&sets->inside, 1) + 1;
        if (inside > 1)
            return worker_fail(worker, "%d are inside", inside);
        (void)atomic_fetch_add(&sets->taken, 1);
        (void)atomic_fetch_sub(&sets->inside, 1);
        worker_expect(worker, 0,
                      sqlock_release_many(locks, SET, NULL, &worker->err));
    }
    return 0;
}

/* Let the workers take their sets.  All sets share lock 0, so only one worker
 * can be inside at a time; the sets' other locks overlap partly.  Every other
 * worker names its locks in reverse order. */
static void check_sets(struct fixture *f, bool one_registry, unsigned workers,
                       unsigned rounds)
{
    struct sets sets = {.rounds = rounds};
    struct workers crew;

    for (unsigned k = 0; k < workers; k++)
        for (size_t i = 0; i < SET; i++) {
            size_t place = k % 2 == 0 ? i : SET - 1 - i;
            size_t which = i == 0 ? 0 : i + (k / 2) * 2;

            sets.locks[k][place] =
                nth_lock(f, one_registry || k % 2 == 0 ? f->a : f->b, which);
        }
    workers_start(&crew, workers, take_sets, &sets);
    workers_join(&crew);
    assert_int_equal(atomic_load(&sets.taken), workers * rounds);
    for (unsigned k = 0; k < workers; k++)
        for (size_t i = 0; i < SET; i++)
            lock_drop(sets.locks[k][i]);
}

static void test_opposite_orders_in_one_registry(void **state)
{
    check_sets(*state, true, 2, 500);
}

static void test_opposite_orders_in_two_registries(void **state)
{
    check_sets(*state, false, 2, 500);
}

static void test_four_overlapping_sets(void **state)
{
    check_sets(*state, false, WORKERS, 50);
}

/* ------------------------------------------------ an acquisition that waits */

struct wait {
    sqlock_lock *locks[SET];
    int64_t wait_ms;
    int rc;
    int results[SET];
};

static int wait_for_all(struct worker *worker)
{
    struct wait *wait = worker->context;

    wait->rc = sqlock_acquire_many(wait->locks, SET, wait->wait_ms, NULL,
                                   wait->results, &worker->err);
    if (wait->rc == 0)
        worker_expect(
            worker, 0,
            sqlock_release_many(wait->locks, SET, NULL, &worker->err));
    return 0;
}

static void check_wait(struct fixture *f, int64_t wait_ms, bool is_granting)
{
    sqlock_registry *tapped = renewer_tapped(f);
    sqlock_lock *busy = nth_lock(f, f->b, SET / 2);
    struct wait wait = {.wait_ms = wait_ms};
    struct worker worker;

    for (size_t i = 0; i < SET; i++)
        wait.locks[i] = nth_lock(f, tapped, i);
    lock_take(busy, LONG_TTL_MS);
    worker_start(&worker, wait_for_all, &wait);
    if (is_granting) {
        assert_becomes_true(tap_count(TAP_EXECUTE) >= 4, PATIENCE_MS);
        lock_give(busy);
    }
    worker_join(&worker);
    assert_int_equal(wait.rc, is_granting ? 0 : SQLOCK_ETIMEDOUT);
    assert_int_equal(wait.results[SET / 2], wait.rc);
    for (size_t i = 0; i < SET; i++) {
        assert_int_equal(wait.results[i] == 0, is_granting);
        assert_int_equal(sqlock_remaining_ms(wait.locks[i]), 0);
        lock_drop(wait.locks[i]);
    }
    if (!is_granting)
        lock_give(busy);
    lock_drop(busy);
    registry_end(tapped);
}

static void test_a_wait_is_served_when_the_busy_one_is_given_back(void **state)
{
    check_wait(*state, PATIENCE_MS, true);
    check_wait(*state, SQLOCK_FOREVER, true);
}

static void test_a_wait_that_ends_takes_nothing(void **state)
{
    check_wait(*state, 300, false);
}

static const struct test tests[] = {
    TEST(test_opposite_orders_in_one_registry),
    TEST(test_opposite_orders_in_two_registries),
    TEST(test_four_overlapping_sets),
    TEST_ON(test_a_wait_is_served_when_the_busy_one_is_given_back, ON_ALL,
            IN_ALL),
    TEST_ON(test_a_wait_that_ends_takes_nothing, ON_ALL, IN_ALL),
};
const struct topic topic_order = TOPIC(tests);
