/*
 * test_steps.c - the acquisition of a request, run by the test in place of the
 * executor: when it wants to be run again, and what it forgets
 */
#include "suite.h"

#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "lease/ticket.h"
#include "lock/acquire.h"
#include "lock/acquisition.h"
#include "lock/registry.h"

static void ignore_wake(struct lk_waiter *waiter)
{
    (void)waiter;
}

/* An acquisition that waits for the fixture's lock. */
struct waiting {
    sqlock_lock *lock;
    struct lk_set set;
    struct lk_acquisition a;
};

static void waiting_begin(struct waiting *waiting, struct fixture *f,
                          sqlock_registry *registry, sqlock_mode mode)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;

    options.mode = mode;
    waiting->lock = lock_obtain(registry, f->name);
    lk_set_of_one(&waiting->set, waiting->lock);
    assert_ok(lk_acquisition_begin(&waiting->a, &waiting->set, SQLOCK_FOREVER,
                                   &options, waiting->lock->owner, &f->err));
    waiting->a.self.on_wake = ignore_wake;
    if (lk_acquisition_enter(&waiting->a, &f->err))
        assert_int_equal(lk_acquisition_run(&waiting->a, &f->err),
                         LK_SUSPENDED);
}

/* Cancel the wait, and end it. */
static void waiting_end(struct waiting *waiting, struct fixture *f)
{
    pthread_mutex_lock(&lk_mutex);
    lk_waiter_cancel(&waiting->a.self);
    pthread_mutex_unlock(&lk_mutex);
    assert_fails(SQLOCK_ECANCELED, lk_acquisition_run(&waiting->a, &f->err));
    lk_acquisition_end(&waiting->a);
    lock_drop(waiting->lock);
}

/* A lock that this process holds, and an acquisition in the FIFO behind it. */
struct queued {
    sqlock_registry *registry;
    sqlock_lock *held;
    struct waiting wanted;
};

static void queued_open(struct queued *q, struct fixture *f)
{
    sqlock_options options = fixture_options(f);

    options.ownership = SQLOCK_OWNED_BY_HANDLE;
    options.detect_deadlocks = true;
    q->registry = fixture_registry(f, &options);
    q->held = lock_obtain(q->registry, f->name);
    lock_take(q->held, 0);
    waiting_begin(&q->wanted, f, q->registry, SQLOCK_EXCLUSIVE);
    assert_int_equal(q->wanted.a.state, LK_QUEUED);
}

/* End everything; the lock's release has that result. */
static void queued_close(struct queued *q, struct fixture *f, int released)
{
    waiting_end(&q->wanted, f);
    assert_int_equal(sqlock_release(q->held, &f->err), released);
    lock_drop(q->held);
    registry_end(q->registry);
}

TEST_ON(test_a_request_in_the_fifo_looks_for_a_circle_in_time, ON_ALL,
        IN_SQLOCK)
{
    struct queued q;

    queued_open(&q, f);
    assert_true(q.wanted.a.circle.look_ns != LK_NEVER);
    assert_true(q.wanted.a.self.until_ns <= q.wanted.a.circle.look_ns);
    queued_close(&q, f, 0);
}

/* A circle is seen, and the holder's lease ends before the waiter is run: it
 * takes the turn, and then waits for another process. */
TEST_ON(test_a_circle_that_was_seen_ends_no_later_wait, ON_ALL, IN_SQLOCK)
{
    sqlock_lock *other = lock_obtain(f->b, f->name);
    struct queued q;

    queued_open(&q, f);
    fixture_delete(f, f->name);
    lock_take(other, 0);
    assert_fails(SQLOCK_ELOST, sqlock_renew(q.held, 0, &f->err));
    pthread_mutex_lock(&lk_mutex);
    q.wanted.a.self.is_deadlocked = true;
    pthread_mutex_unlock(&lk_mutex);
    assert_int_equal(lk_acquisition_run(&q.wanted.a, &f->err), LK_SUSPENDED);
    assert_int_not_equal(q.wanted.a.state, LK_QUEUED);
    lock_give(other);
    lock_drop(other);
    queued_close(&q, f, SQLOCK_ELOST);
}

/* Not sooner: a look of many is many claims. */
TEST_ON(test_a_reader_looks_first_when_its_ticket_is_not_fresh, ON_ALL,
        IN_SQLOCK)
{
    sqlock_options options = fixture_options(f);
    sqlock_acquire_options shared = SQLOCK_ACQUIRE_INIT;
    sqlock_registry *third = fixture_registry(f, &options);
    sqlock_lock *held = lock_obtain(third, f->name);
    struct waiting writer, reader;

    shared.mode = SQLOCK_SHARED;
    assert_ok(sqlock_acquire(held, 0, &shared, &f->err));
    waiting_begin(&writer, f, f->a, SQLOCK_EXCLUSIVE);
    waiting_begin(&reader, f, f->b, SQLOCK_SHARED);
    assert_true(reader.a.wait.look_ns >=
                lk_after_ms(reader.a.began_ns, LK_TICKET_FRESH_MS));
    waiting_end(&reader, f);
    waiting_end(&writer, f);
    lock_give(held);
    lock_drop(held);
    registry_end(third);
}

/* Handles of two locks, in order of their keys, which actor 2 and a call of
 * actor 1 use, through a registry; or a thread and the call of another, each
 * through its own. */
struct crosswise {
    sqlock_registry *registries[2];
    sqlock_lock *one[2];
    sqlock_lock *two[2];
    struct lk_set set;
    struct lk_acquisition a;
};

static const sqlock_acquire_options *by_actor(uint64_t actor)
{
    static sqlock_acquire_options options;

    options = (sqlock_acquire_options)SQLOCK_ACQUIRE_INIT;
    options.actor = actor;
    return &options;
}

/* Let actor 2 have the last lock, and begin the call of actor 1 for both, which
 * keeps the first one, and would do so for ever. */
static void crosswise_open(struct crosswise *c, struct fixture *f,
                           bool is_apart)
{
    sqlock_options options = fixture_options(f);
    const char *const names[] = {"kept", "other"};
    int at = 0;

    options.ownership =
        is_apart ? SQLOCK_OWNED_BY_THREAD : SQLOCK_OWNED_BY_HANDLE;
    c->registries[0] = fixture_registry(f, &options);
    options.detect_deadlocks = true;
    c->registries[1] = fixture_registry(f, &options);
    for (int i = 0; i < 2; i++) {
        c->one[i] = lock_obtain(c->registries[0], names[i]);
        if (i == 1 && strcmp(sqlock_key(c->one[0]), sqlock_key(c->one[1])) > 0)
            at = 1;
    }
    for (int i = 0; i < 2; i++)
        c->two[i] =
            lock_obtain(c->registries[is_apart], names[i == at ? 0 : 1]);
    assert_ok(sqlock_acquire(c->two[1], 0, by_actor(2), &f->err));
    assert_ok(lk_set_begin(&c->set, c->one, 2, NULL, &f->err));
    assert_ok(lk_acquisition_begin(&c->a, &c->set, SQLOCK_FOREVER, by_actor(1),
                                   is_apart ? UINT64_MAX : 0, &f->err));
    c->a.kept.setbacks = UINT_MAX / 2;
    c->a.kept.longest_ns = INT64_MAX / 4;
    c->a.self.on_wake = ignore_wake;
    if (lk_acquisition_enter(&c->a, &f->err))
        assert_int_equal(lk_acquisition_run(&c->a, &f->err), LK_SUSPENDED);
    assert_true(c->a.parts[0].is_kept);
    c->a.self.on_wake = NULL;
}

static void crosswise_close(struct crosswise *c, struct fixture *f)
{
    lk_acquisition_end(&c->a);
    assert_int_equal(lk_set_end(&c->set, SQLOCK_ECANCELED, &f->err),
                     SQLOCK_ECANCELED);
    for (int i = 0; i < 2; i++) {
        lock_drop(c->one[i]);
        lock_drop(c->two[i]);
    }
    registry_end(c->registries[0]);
    registry_end(c->registries[1]);
}

static int run_call(struct worker *worker)
{
    worker_expect(worker, SQLOCK_ECANCELED,
                  lk_acquisition_run(worker->context, &worker->err));
    return 0;
}

/* The holder of the other lock waits for the one that is kept. */
static void check_is_given_back(struct fixture *f, bool is_apart)
{
    struct worker worker;
    struct crosswise c;

    crosswise_open(&c, f, is_apart);
    worker_start(&worker, run_call, &c.a);
    assert_ok(sqlock_acquire(c.two[0], SQLOCK_FOREVER, by_actor(2), &f->err));
    pthread_mutex_lock(&lk_mutex);
    lk_waiter_cancel(&c.a.self);
    pthread_mutex_unlock(&lk_mutex);
    worker_join(&worker);
    lock_give(c.two[0]);
    lock_give(c.two[1]);
    crosswise_close(&c, f);
}

TEST_ON(test_a_kept_row_is_given_back_to_whom_its_call_waits_for, ON_ALL,
        IN_SQLOCK)
{
    check_is_given_back(f, false);
}

/* That one is told of no deadlock, though it looks for one. */
TEST_ON(test_a_kept_row_is_given_back_to_another_registry, ON_ALL, IN_SQLOCK)
{
    check_is_given_back(f, true);
}
