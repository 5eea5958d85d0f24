/*
 * crosswise.c - acquire several locks together while one of them has another
 * holder: the waiter keeps none of the locks while it waits, and a row that it
 * could not give back is reported as EUNCERTAIN
 *
 * Otherwise two acquisitions could wait crosswise, each for a lock that the
 * other one keeps.
 */
#include "renewer.h"

#include <string.h>

#include "sqlock/many.h"
#include "support/tap.h"
#include "support/workers.h"

/* Obtain two locks, in the order in which they are claimed: by key. */
static void obtain_two(struct fixture *f, sqlock_registry *registry,
                       sqlock_lock **locks)
{
    locks[0] = nth_lock(f, registry, 0);
    locks[1] = nth_lock(f, registry, 1);
    if (strcmp(sqlock_key(locks[0]), sqlock_key(locks[1])) > 0) {
        sqlock_lock *second = locks[0];

        locks[0] = locks[1];
        locks[1] = second;
    }
}

struct both {
    sqlock_lock *locks[2];
    atomic_int rc; /* of the acquisition; 1: it has not returned */
    atomic_bool may_release;
};

static int want_both(struct worker *worker)
{
    struct both *both = worker->context;
    int rc = sqlock_acquire_many(both->locks, 2, PATIENCE_MS, NULL, NULL,
                                 &worker->err);

    atomic_store(&both->rc, rc);
    if (rc < 0)
        return 0;
    while (!atomic_load(&both->may_release))
        (void)check_pause(INT64_MAX);
    worker_expect(worker, 0,
                  sqlock_release_many(both->locks, 2, NULL, &worker->err));
    return 0;
}

/* Start a worker that acquires both locks, and give it time to try; fail the
 * test if the acquisition returns in that time. */
static void start_both(struct both *both, struct worker *worker)
{
    atomic_store(&both->rc, 1);
    worker_start(worker, want_both, both);
    assert_becomes_true(atomic_load(&worker->tid) != 0, PATIENCE_MS);
    (void)wait_until(false, 300 * SLOWNESS);
    assert_int_equal(atomic_load(&both->rc), 1);
}

/* This thread holds one of two locks, and a worker waits for both.  This thread
 * gets the other lock as well, while the worker still waits. */
static void test_who_waits_for_one_leaves_the_other_free(void **state)
{
    struct fixture *f = *state;
    struct both both = {.may_release = true};
    struct worker worker;
    int rc;

    for (int i = 0; i < 2; i++) {
        obtain_two(f, f->a, both.locks);
        lock_take(both.locks[1 - i], LONG_TTL_MS);
        start_both(&both, &worker);
        rc = lock_try(both.locks[i], PATIENCE_MS, LONG_TTL_MS, &f->err);
        assert_lock_ok(rc, &f->err);
        assert_int_equal(atomic_load(&both.rc), 1);
        lock_give(both.locks[i]);
        lock_give(both.locks[1 - i]);
        worker_join(&worker);
        assert_int_equal(atomic_load(&both.rc), 0);
        lock_drop(both.locks[0]);
        lock_drop(both.locks[1]);
    }
}

/* As above, but the holder is another registry, as in another process.  The
 * worker's registry polls once an hour, so only the wait queue can wake it. */
static void
test_who_waits_for_another_process_leaves_the_other_free(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    struct both both = {.may_release = true};
    sqlock_registry *registry;
    sqlock_lock *theirs[2];
    struct worker worker;
    int rc;

    options.poll_ms = 3600000;
    registry = fixture_registry(f, &options);
    obtain_two(f, registry, both.locks);
    obtain_two(f, f->b, theirs);
    for (int i = 0; i < 2; i++) {
        lock_take(theirs[1 - i], LONG_TTL_MS);
        start_both(&both, &worker);
        /* This may wait for a moment: the worker, whenever it is woken, claims
         * both locks and gives this one back. */
        rc = lock_try(both.locks[i], PATIENCE_MS, LONG_TTL_MS, &f->err);
        assert_lock_ok(rc, &f->err);
        assert_int_equal(atomic_load(&both.rc), 1);
        lock_give(both.locks[i]);
        lock_give(theirs[1 - i]);
        worker_join(&worker);
        assert_int_equal(atomic_load(&both.rc), 0);
    }
    lock_drop(theirs[0]);
    lock_drop(theirs[1]);
    registry_end(registry);
}

static void test_either_lock_cancels_a_wait_for_both(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *theirs[2];
    struct both both = {.may_release = true};
    struct worker worker;

    obtain_two(f, f->a, both.locks);
    obtain_two(f, f->b, theirs);
    for (int taken = 0; taken < 2; taken++)
        for (int cancelled = 0; cancelled < 2; cancelled++) {
            lock_take(theirs[taken], LONG_TTL_MS);
            start_both(&both, &worker);
            assert_ok(sqlock_cancel(both.locks[cancelled], &f->err));
            worker_join(&worker);
            assert_int_equal(atomic_load(&both.rc), SQLOCK_ECANCELED);
            lock_give(theirs[taken]);
        }
    for (int i = 0; i < 2; i++) {
        lock_drop(theirs[i]);
        lock_drop(both.locks[i]);
    }
}

/* ---------------------------------------- a row that is not given back -- */

struct refusal {
    const char *text;
    atomic_bool is_over;
};

static int refuse(void *context, const struct tap_event *event)
{
    struct refusal *refusal = context;

    return event->text == refusal->text && !atomic_load(&refusal->is_over)
               ? SQLOCK_EUNREACHABLE
               : 0;
}

static void test_what_could_not_be_given_back_is_told(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    struct refusal refusal = {0};
    sqlock_registry *registry;
    sqlock_lock *theirs[2];
    sqlock_lock *locks[2];
    int results[2];
    int rc;

    options.ttl_ms = LONG_TTL_MS;
    options.statement_timeout_ms = 300 * SLOWNESS;
    registry = fixture_tapped(f, &options);
    obtain_two(f, registry, locks);
    obtain_two(f, f->b, theirs);
    lock_take(theirs[1], LONG_TTL_MS);
    refusal.text = census_text(registry, SQLOCK_SQL_RELEASE);
    tap_hooks(refuse, NULL, &refusal);
    rc = sqlock_acquire_many(locks, 2, 0, NULL, results, &f->err);
    assert_code(SQLOCK_EUNCERTAIN, rc, &f->err);
    assert_int_equal(results[0], SQLOCK_EUNCERTAIN);
    assert_int_equal(results[1], SQLOCK_EBUSY);
    assert_int_equal(sqlock_hold_count(locks[0]), 0);
    assert_false(fixture_is_free(f, sqlock_name(locks[0])));
    atomic_store(&refusal.is_over, true); /* for the background */
    assert_becomes_true(fixture_is_free(f, sqlock_name(locks[0])), PATIENCE_MS);
    lock_give(theirs[1]);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST_ON(test_who_waits_for_one_leaves_the_other_free, ON_ALL, IN_ALL),
    TEST(test_who_waits_for_another_process_leaves_the_other_free),
    TEST_ON(test_either_lock_cancels_a_wait_for_both, ON_ALL, IN_ALL),
    TEST_ON(test_what_could_not_be_given_back_is_told, ON_ALL, IN_ALL),
};
const struct topic topic_crosswise = TOPIC(tests);
