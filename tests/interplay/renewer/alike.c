/*
 * alike.c - sqlock_release_many() keeps the promises of sqlock_release(): it
 * hands each lock off to the next waiter, and reports which leases were lost
 */
#include "renewer.h"

#include <string.h>

#include "locks/registry.h"
#include "sqlock/admin.h"
#include "sqlock/many.h"
#include "support/tap.h"
#include "support/workers.h"

#define LOCKS 3

struct waiting {
    sqlock_lock *lock;
};

static int wait_for(struct worker *worker)
{
    struct waiting *waiting = worker->context;

    worker_expect(
        worker, 0,
        sqlock_acquire(waiting->lock, PATIENCE_MS, NULL, &worker->err));
    worker_expect(worker, 0, sqlock_release(waiting->lock, &worker->err));
    return 0;
}

/* Return whether a thread waits in the FIFO of the lock. */
static bool is_waited_for(const sqlock_lock *lock)
{
    struct lk_entry *entry = lock->entry;
    bool is_waited_for;

    pthread_mutex_lock(&entry->mutex);
    is_waited_for =
        entry->parts != NULL && entry->parts->state == LK_PART_QUEUED;
    pthread_mutex_unlock(&entry->mutex);
    return is_waited_for;
}

static void take_locks(struct fixture *f, sqlock_registry *registry,
                       sqlock_lock **locks)
{
    for (unsigned i = 0; i < LOCKS; i++) {
        locks[i] = nth_lock(f, registry, i);
        lock_take(locks[i], 0);
    }
}

static void drop_locks(sqlock_lock **locks)
{
    for (unsigned i = 0; i < LOCKS; i++)
        lock_drop(locks[i]);
}

static void test_many_are_handed_off_to_the_threads_that_wait(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_tapped(f, NULL);
    struct waiting waiting[LOCKS - 1];
    struct worker workers[LOCKS - 1];
    struct spy spy;
    sqlock_lock *locks[LOCKS];
    int results[LOCKS];

    take_locks(f, registry, locks);
    for (unsigned i = 0; i < LOCKS - 1; i++) {
        waiting[i] = (struct waiting){.lock = locks[i]};
        worker_start(&workers[i], wait_for, &waiting[i]);
        assert_becomes_true(is_waited_for(locks[i]), PATIENCE_MS);
    }
    spy_begin(&spy, registry, SQLOCK_SQL_HAND_OFF);
    assert_ok(sqlock_release_many(locks, LOCKS, results, &f->err));
    for (unsigned i = 0; i < LOCKS; i++) {
        assert_int_equal(results[i], 0);
        assert_int_equal(sqlock_hold_count(locks[i]), 0);
    }
    for (unsigned i = 0; i < LOCKS - 1; i++)
        worker_join(&workers[i]);
    assert_int_equal(atomic_load(&spy.times), LOCKS - 1);
    tap_hooks(NULL, NULL, NULL);
    drop_locks(locks);
    registry_end(registry);
}

/* Break the leases of the first `broken` locks at once, which frees their rows,
 * and release all locks: the result is ELOST for the broken ones only. */
static void check_broken(struct fixture *f, unsigned broken)
{
    sqlock_break_options how = SQLOCK_BREAK_INIT;
    sqlock_lock *locks[LOCKS];
    int results[LOCKS];

    take_locks(f, f->a, locks);
    how.reason = "a test";
    how.now = true;
    for (unsigned i = 0; i < broken; i++) {
        how.token = sqlock_token(locks[i]);
        assert_ok(sqlock_break(f->b, sqlock_name(locks[i]), &how, &f->err));
    }
    assert_fails(SQLOCK_ELOST,
                 sqlock_release_many(locks, LOCKS, results, &f->err));
    for (unsigned i = 0; i < LOCKS; i++)
        assert_int_equal(results[i], i < broken ? SQLOCK_ELOST : 0);
    drop_locks(locks);
}

static void test_a_release_of_many_tells_which_were_broken(void **state)
{
    for (unsigned broken = 1; broken <= LOCKS; broken++)
        check_broken(*state, broken);
}

/* On sqlock's layout a release keeps the row.  So a missing row was deleted by
 * another program, and the lock may have had another holder: ELOST. */
static void test_a_release_of_many_tells_which_rows_are_gone(void **state)
{
    struct fixture *f = *state;
    char key[SQLOCK_KEY_SIZE];
    sqlock_lock *locks[LOCKS];
    int results[LOCKS];

    take_locks(f, f->a, locks);
    assert_ok(
        sqlock_key_of(key, sqlock_name(locks[1]), SQLOCK_KEY_CURRENT, &f->err));
    assert_int_equal(
        sql_run(&f->sql, "DELETE FROM %s WHERE LOCK_KEY = '%s'", f->table, key),
        1);
    assert_fails(SQLOCK_ELOST,
                 sqlock_release_many(locks, LOCKS, results, &f->err));
    for (unsigned i = 0; i < LOCKS; i++)
        assert_int_equal(results[i], i == 1 ? SQLOCK_ELOST : 0);
    drop_locks(locks);
}

static const struct test tests[] = {
    TEST_ON(test_many_are_handed_off_to_the_threads_that_wait, ON_ALL, IN_ALL),
    TEST_ON(test_a_release_of_many_tells_which_were_broken, ON_ALL, IN_SQLOCK),
    TEST_ON(test_a_release_of_many_tells_which_rows_are_gone, ON_ALL,
            IN_SQLOCK),
};
const struct topic topic_alike = TOPIC(tests);
