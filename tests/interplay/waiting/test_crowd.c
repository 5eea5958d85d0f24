/*
 * test_crowd.c - many waiters: for a thousand keys, for one lock that is handed
 * off again and again, and beside an index build
 */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sqlock/many.h"
#include "support/tap.h"

/* --- more keys than connections --- */

#define KEYS_MAX 1000

struct keys {
    sqlock_lock **locks;
    atomic_uint next;
    atomic_uint waiting;
};

static void *wait_for_one(void *context)
{
    struct keys *keys = context;
    sqlock_lock *lock = keys->locks[atomic_fetch_add(&keys->next, 1)];
    int rc;

    (void)atomic_fetch_add(&keys->waiting, 1);
    rc = sqlock_acquire(lock, SQLOCK_FOREVER, NULL, NULL);
    if (rc == 0)
        rc = sqlock_release(lock, NULL);
    return rc == 0 ? NULL : context;
}

static void test_keys_by_the_thousand_need_no_more_connections(void **state)
{
    struct fixture *f = *state;
    unsigned count = check_scale(100, KEYS_MAX);
    sqlock_lock **held = calloc(count, sizeof(sqlock_lock *));
    struct keys keys = {.locks = calloc(count, sizeof(sqlock_lock *))};
    pthread_t *threads = calloc(count, sizeof *threads);
    sqlock_options options = fixture_options(f);
    int64_t ids[64];
    sqlock_registry *tapped;

    options.pool_size = 4;
    tapped = fixture_tapped(f, &options);
    for (unsigned i = 0; i < count; i++) {
        char name[96];

        (void)snprintf(name, sizeof name, "%s key %u", f->name, i);
        held[i] = lock_obtain(f->a, name);
        keys.locks[i] = lock_obtain(tapped, name);
    }
    assert_ok(sqlock_acquire_many(held, count, 0, NULL, NULL, &f->err));
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_one, &keys),
                         0);
    assert_becomes_true(atomic_load(&keys.waiting) == count, PATIENCE_MS);
    /* The pool; half as many connections for waiting; one that is reserved. */
    assert_in_range(tap_connections(ids, 64), 0, 4 + 2 + 1);
    assert_ok(sqlock_release_many(held, count, NULL, &f->err));
    for (unsigned i = 0; i < count; i++) {
        void *failed = &keys;

        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_in_range(tap_connections(ids, 64), 0, 4 + 2 + 1);
    for (unsigned i = 0; i < count; i++) {
        lock_drop(held[i]);
        lock_drop(keys.locks[i]);
    }
    registry_end(tapped);
    free(held);
    free(keys.locks);
    free(threads);
}

/* --- hand-offs, and no waiter left at a free lock --- */

/* --- CREATE INDEX CONCURRENTLY while others wait --- */

#define WAITERS 8

static void test_F36_waiters_do_not_hold_up_an_index_build(void **state)
{
    struct fixture *f = *state;
    struct contender contenders[WAITERS];
    sqlock_lock *held = lock_obtain(f->a, f->name);

    lock_take(held, 0);
    for (size_t i = 0; i < WAITERS; i++) {
        contender_open(&contenders[i], f, 5);
        contender_queue(&contenders[i], contenders[i].lock, SQLOCK_FOREVER);
    }
    sql_run(&f->sql, "CREATE TABLE %s_cic (a int)", f->prefix);
    /* Fails by the time limit of the test's session if a waiter keeps a
     * snapshot. */
    sql_run(&f->sql, "CREATE INDEX CONCURRENTLY %s_cic_a ON %s_cic (a)",
            f->prefix, f->prefix);
    sql_run(&f->sql, "DROP TABLE %s_cic", f->prefix);
    for (size_t i = 0; i < WAITERS; i++) {
        assert_int_equal(atomic_load(&contenders[i].rc), 1);
        atomic_store(&contenders[i].may_release, true);
    }
    lock_give(held);
    for (size_t i = 0; i < WAITERS; i++) {
        contender_finish(&contenders[i]);
        contender_close(&contenders[i]);
    }
    lock_drop(held);
}

static const struct test tests[] = {
    TEST(test_keys_by_the_thousand_need_no_more_connections),
    TEST_ON(test_F36_waiters_do_not_hold_up_an_index_build, ON_POSTGRES,
            IN_SQLOCK),
};

const struct topic topic_crowd = TOPIC(tests);
