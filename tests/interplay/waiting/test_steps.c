/*
 * test_steps.c - the acquisition of a request, run by the test in place of the
 * executor: when it wants to be run again, and what it forgets
 */
#include "suite.h"

#include "lock/acquire.h"
#include "lock/acquisition.h"
#include "lock/registry.h"

/* A lock that this process holds, and an acquisition in the FIFO behind it. */
struct queued {
    sqlock_registry *registry;
    sqlock_lock *held;
    sqlock_lock *wanted;
    struct lk_set set;
    struct lk_acquisition a;
};

static void ignore_wake(struct lk_waiter *waiter)
{
    (void)waiter;
}

static void queued_open(struct queued *q, struct fixture *f)
{
    sqlock_options options = fixture_options(f);

    options.ownership = SQLOCK_OWNED_BY_HANDLE;
    options.detect_deadlocks = true;
    q->registry = fixture_registry(f, &options);
    q->held = lock_obtain(q->registry, f->name);
    q->wanted = lock_obtain(q->registry, f->name);
    lock_take(q->held, 0);
    lk_set_of_one(&q->set, q->wanted);
    assert_ok(lk_acquisition_begin(&q->a, &q->set, SQLOCK_FOREVER, NULL,
                                   q->wanted->owner, &f->err));
    q->a.self.on_wake = ignore_wake;
    assert_false(lk_acquisition_enter(&q->a, &f->err));
}

/* Cancel the wait, and end everything; the lock's release has that result. */
static void queued_close(struct queued *q, struct fixture *f, int released)
{
    pthread_mutex_lock(&lk_mutex);
    lk_waiter_cancel(&q->a.self);
    pthread_mutex_unlock(&lk_mutex);
    assert_fails(SQLOCK_ECANCELED, lk_acquisition_run(&q->a, &f->err));
    lk_acquisition_end(&q->a);
    assert_int_equal(sqlock_release(q->held, &f->err), released);
    lock_drop(q->wanted);
    lock_drop(q->held);
    registry_end(q->registry);
}

static void test_a_request_in_the_fifo_looks_for_a_circle_in_time(void **state)
{
    struct fixture *f = *state;
    struct queued q;

    queued_open(&q, f);
    assert_true(q.a.circle.look_ns != LK_NEVER);
    assert_true(q.a.self.until_ns <= q.a.circle.look_ns);
    queued_close(&q, f, 0);
}

/* A circle is seen, and the holder's lease ends before the waiter is run: it
 * takes the turn, and then waits for another process. */
static void test_a_circle_that_was_seen_ends_no_later_wait(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *other = lock_obtain(f->b, f->name);
    struct queued q;

    queued_open(&q, f);
    fixture_delete(f, f->name);
    lock_take(other, 0);
    assert_fails(SQLOCK_ELOST, sqlock_renew(q.held, 0, &f->err));
    pthread_mutex_lock(&lk_mutex);
    q.a.self.is_deadlocked = true;
    pthread_mutex_unlock(&lk_mutex);
    assert_int_equal(lk_acquisition_run(&q.a, &f->err), LK_SUSPENDED);
    assert_int_not_equal(q.a.state, LK_QUEUED);
    lock_give(other);
    lock_drop(other);
    queued_close(&q, f, SQLOCK_ELOST);
}

static const struct test tests[] = {
    TEST_ON(test_a_request_in_the_fifo_looks_for_a_circle_in_time, ON_ALL,
            IN_SQLOCK),
    TEST_ON(test_a_circle_that_was_seen_ends_no_later_wait, ON_ALL, IN_SQLOCK),
};

const struct topic topic_steps = TOPIC(tests);
