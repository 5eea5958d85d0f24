/*
 * waiting.c - how long an acquire waits, and which waiter is next
 */
#include "conformance.h"

#include "support/tap.h"
#include "support/workers.h"

static void test_a_wait_of_zero_tries_once(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *mine = lock_obtain(f->a, f->name);
    sqlock_lock *theirs = lock_obtain(f->b, f->name);

    lock_take(mine, 0);
    assert_fails(SQLOCK_EBUSY, sqlock_acquire(theirs, 0, NULL, &f->err));
    lock_give(mine);
    assert_ok(sqlock_acquire(theirs, 0, NULL, &f->err));
    lock_give(theirs);
    lock_drop(mine);
    lock_drop(theirs);
}

static void test_a_wait_that_ends_is_a_timeout(void **state)
{
    static const int64_t waits[] = {1, 20, 130};
    struct fixture *f = *state;
    sqlock_lock *mine = lock_obtain(f->a, f->name);
    sqlock_lock *theirs = lock_obtain(f->b, f->name);
    size_t i;

    lock_take(mine, 0);
    for (i = 0; i < sizeof waits / sizeof *waits; i++) {
        int rc = lock_try(theirs, waits[i], 0, &f->err);

        assert_code(SQLOCK_ETIMEDOUT, rc, &f->err);
        assert_int_equal(sqlock_hold_count(theirs), 0);
    }
    lock_give(mine);
    lock_take(theirs, 0); /* no wait has left a claim */
    lock_give(theirs);
    lock_drop(mine);
    lock_drop(theirs);
}

static void test_waits_that_are_no_times_are_refused(void **state)
{
    static const int64_t bad[] = {-2, -1000, INT64_MIN, INT64_MIN + 1};
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    size_t i;

    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        int rc = lock_try(lock, bad[i], 0, &f->err);

        assert_code(SQLOCK_EINVAL, rc, &f->err);
        assert_false(sqlock_is_held(lock));
    }
    lock_drop(lock);
}

struct wait {
    sqlock_lock *lock;
    int64_t wait_ms;
    atomic_int *order;
    int place; /* in the order of the grants, from 1 */
    int expected;
};

static int wait_for_it(struct worker *worker)
{
    struct wait *wait = worker->context;
    int rc = lock_try(wait->lock, wait->wait_ms, 0, &worker->err);

    if (rc != wait->expected)
        return worker_fail(worker, "acquire gave %d, not %d: %s", rc,
                           wait->expected, worker->err.message);
    if (rc < 0)
        return 0;
    if (wait->order != NULL)
        wait->place = atomic_fetch_add(wait->order, 1) + 1;
    worker_expect(worker, 0, sqlock_release(wait->lock, &worker->err));
    return 0;
}

/* A thread that waits in a registry with a tap for a lock that another registry
 * holds. */
struct waiter {
    sqlock_registry *tapped;
    sqlock_lock *theirs;
    struct wait wait;
    struct worker worker;
};

/* Start the waiter.  It waits for the row once its second statement has been
 * sent. */
static void waiter_start(struct waiter *waiter, struct fixture *f,
                         int64_t wait_ms)
{
    waiter->tapped = fixture_tapped(f, NULL);
    waiter->theirs = lock_obtain(f->b, f->name);
    waiter->wait = (struct wait){.lock = lock_obtain(waiter->tapped, f->name),
                                 .wait_ms = wait_ms};
    lock_take(waiter->theirs, 0);
    tap_reset();
    worker_start(&waiter->worker, wait_for_it, &waiter->wait);
    assert_becomes_true(tap_count(TAP_EXECUTE) >= 2, PATIENCE_MS);
}

static void waiter_end(struct waiter *waiter)
{
    lock_give(waiter->theirs);
    worker_join(&waiter->worker);
    lock_drop(waiter->wait.lock);
    lock_drop(waiter->theirs);
    registry_end(waiter->tapped);
}

static void check_served(struct fixture *f, int64_t wait_ms)
{
    struct waiter waiter;

    waiter_start(&waiter, f, wait_ms);
    waiter_end(&waiter);
}

static void test_waiting_forever_is_served_on_release(void **state)
{
    check_served(*state, SQLOCK_FOREVER);
}

static void test_waiting_the_longest_time_is_served_on_release(void **state)
{
    check_served(*state, INT64_MAX);
    check_served(*state, INT64_MAX - 1);
    check_served(*state, INT64_MAX / 1000000);
}

static void test_waiting_ends_when_the_holders_lease_runs_out(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *mine = lock_obtain(f->a, f->name);
    sqlock_lock *theirs = lock_obtain(f->b, f->name);

    lock_take(mine, 150);
    assert_ok(lock_try(theirs, SQLOCK_FOREVER, 0, &f->err));
    lock_give(theirs);
    assert_fails(SQLOCK_ELOST, sqlock_release(mine, &f->err));
    lock_drop(mine);
    lock_drop(theirs);
}

#define QUEUE 5

/* Start a thread that acquires, and return when it waits in the FIFO, behind
 * those started before. */
static void stand_behind(struct worker *worker, struct wait *wait,
                         sqlock_lock *lock, atomic_int *order)
{
    wait->lock = lock;
    wait->order = order;
    worker_start(worker, wait_for_it, wait);
    assert_becomes_true(worker_is_parked(worker), PATIENCE_MS);
}

static void test_threads_of_a_registry_are_served_in_order(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct wait waits[QUEUE];
    struct worker workers[QUEUE];
    atomic_int order = 0;
    int i;

    lock_take(lock, 0);
    for (i = 0; i < QUEUE; i++) {
        waits[i] = (struct wait){.wait_ms = PATIENCE_MS};
        stand_behind(&workers[i], &waits[i], lock, &order);
    }
    lock_give(lock);
    for (i = 0; i < QUEUE; i++)
        worker_join(&workers[i]);
    for (i = 0; i < QUEUE; i++)
        assert_int_equal(waits[i].place, i + 1);
    lock_drop(lock);
}

static void test_one_that_gives_up_does_not_hold_up_the_rest(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct wait waits[3] = {
        {.wait_ms = PATIENCE_MS},
        {.wait_ms = 150, .expected = SQLOCK_ETIMEDOUT},
        {.wait_ms = PATIENCE_MS},
    };
    struct worker workers[3];
    atomic_int order = 0;
    int i;

    lock_take(lock, 0);
    for (i = 0; i < 3; i++)
        stand_behind(&workers[i], &waits[i], lock, &order);
    worker_join(&workers[1]);
    lock_give(lock);
    worker_join(&workers[0]);
    worker_join(&workers[2]);
    assert_int_equal(waits[0].place, 1);
    assert_int_equal(waits[2].place, 2);
    lock_drop(lock);
}

/* A first thread waits for the row, and has the turn of its process.  Another
 * acquire of the process cannot even claim: it times out, or is busy. */
static void test_a_timeout_behind_a_waiter_of_the_same_process(void **state)
{
    struct fixture *f = *state;
    struct waiter first;

    waiter_start(&first, f, PATIENCE_MS);
    assert_fails(SQLOCK_ETIMEDOUT, lock_try(first.wait.lock, 30, 0, &f->err));
    assert_busy(first.wait.lock);
    waiter_end(&first);
}

static void test_a_lock_that_is_waited_for_cannot_be_dropped(void **state)
{
    struct fixture *f = *state;
    struct waiter waiter;

    waiter_start(&waiter, f, PATIENCE_MS);
    assert_fails(SQLOCK_EINUSE, sqlock_drop(waiter.wait.lock, &f->err));
    waiter_end(&waiter);
}

static const struct test tests[] = {
    TEST(test_a_wait_of_zero_tries_once),
    TEST(test_a_wait_that_ends_is_a_timeout),
    TEST(test_waits_that_are_no_times_are_refused),
    TEST(test_waiting_forever_is_served_on_release),
    TEST(test_waiting_the_longest_time_is_served_on_release),
    TEST(test_waiting_ends_when_the_holders_lease_runs_out),
    TEST(test_threads_of_a_registry_are_served_in_order),
    TEST(test_one_that_gives_up_does_not_hold_up_the_rest),
    TEST(test_a_timeout_behind_a_waiter_of_the_same_process),
    TEST(test_a_lock_that_is_waited_for_cannot_be_dropped),
};
const struct topic topic_waiting = TOPIC(tests);
