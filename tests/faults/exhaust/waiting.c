/*
 * waiting.c - a wait for a lock that another registry holds, and releases
 * meanwhile: whatever fails, the wait ends with the lock or with an error, and
 * the lock can be acquired again afterwards
 */
#include "exhaust.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "lease/pass_on.h"
#include "lock/registry.h"
#include "sqlock/async.h"
#include "support/workers.h"

#define HELD_NS (4 * LK_NS_PER_MS)

struct wait {
    struct fixture *f;
    sqlock_lock *lock;
    sqlock_lock *other;
    struct worker holder;
    atomic_bool is_held;
    atomic_bool is_begun;
    bool may_remain;
};

/* Registries, open for all runs of the test.  Their waiters poll often where a
 * release notifies nobody. */
static sqlock_registry *waiting;
static sqlock_registry *holding;

static int hold_for_a_moment(struct worker *worker)
{
    struct wait *wait = worker->context;
    int rc = sqlock_acquire(wait->other, 0, NULL, &worker->err);

    worker_expect(worker, 0, rc);
    atomic_store(&wait->is_held, true);
    while (!atomic_load(&wait->is_begun))
        lk_sleep_until(sqlock_monotonic_ns() + LK_NS_PER_MS / 2);
    lk_sleep_until(sqlock_monotonic_ns() + HELD_NS);
    rc = sqlock_release(wait->other, &worker->err);
    worker_expect(worker, 0, rc);
    return 0;
}

static void prepare_wait(struct fixture *f, void *state)
{
    struct wait *wait = state;

    wait->lock = lock_obtain(waiting, f->name);
    wait->other = lock_obtain(holding, f->name);
    worker_start(&wait->holder, hold_for_a_moment, wait);
    assert_becomes_true(atomic_load(&wait->is_held), PATIENCE_MS);
}

/* While all allocations fail, the database is out of reach, and a wait lasts to
 * its end. */
static int64_t wait_ms(void)
{
    return exhaust_is_lasting() ? 500 * SLOWNESS : PATIENCE_MS;
}

static void act_wait(struct fixture *f, void *state)
{
    struct wait *wait = state;
    sqlock_error err = {0};
    int rc;

    (void)f;
    atomic_store(&wait->is_begun, true);
    rc = sqlock_acquire(wait->lock, wait_ms(), NULL, &err);
    if (!exhaust_expect(rc, &err)) {
        assert_false(sqlock_is_held(wait->lock));
        wait->may_remain = rc == SQLOCK_EUNCERTAIN;
        return;
    }
    assert_true(sqlock_is_held(wait->lock));
    rc = sqlock_release(wait->lock, &err);
    wait->may_remain = !exhaust_expect(rc, &err);
    assert_false(sqlock_is_held(wait->lock));
}

static void check_wait(struct fixture *f, void *state)
{
    struct wait *wait = state;

    worker_join(&wait->holder);
    lock_drop(wait->other);
    /* A call that has failed may leave the row held. */
    if (wait->may_remain)
        (void)sql_run(&f->sql, "DELETE FROM %s", f->table);
    exhaust_take(wait->lock);
    lock_end(wait->lock);
}

TEST(test_a_wait_that_a_release_ends)
{
    sqlock_options options = exhaust_options(f);
    static const struct experiment experiment = {
        .prepare = prepare_wait,
        .act = act_wait,
        .check = check_wait,
        .state_bytes = sizeof(struct wait),
    };

    options.poll_ms = 5;
    waiting = fixture_registry(f, &options);
    holding = fixture_registry(f, &options);
    exhaust_all(f, &experiment);
    registry_end(waiting);
    registry_end(holding);
}

/* Let a lock's row be free, and two wait for it. */
static void prepare_tickets(struct fixture *f, void *state)
{
    sqlock_lock **lock = state;
    int64_t now_us = sql_now_us(&f->sql);
    char queue[512];
    int length =
        snprintf(queue, sizeof queue, "{\"e\":%016" PRId64 ",\"q\":[", now_us);

    for (int i = 0; i < 2; i++)
        length +=
            snprintf(queue + length, sizeof queue - (size_t)length,
                     "[\"00000000-0000-4000-8000-00000000000%d\","
                     "%016" PRId64 ",%016" PRId64 ",\"000000\",\"somebody\"],",
                     i, now_us + 60000000, now_us - 60000000);
    (void)snprintf(queue + length, sizeof queue - (size_t)length, "0]}");
    *lock = lock_obtain(f->a, f->name);
    lock_take_and_give(*lock);
    assert_int_equal(sql_run(&f->sql,
                             "UPDATE %s SET QUEUE = '%s' WHERE LOCK_KEY = '%s'",
                             f->table, queue, sqlock_key(*lock)),
                     1);
}

/* The row is reserved for the first of them, or stays as it is. */
static void act_pass_on(struct fixture *f, void *state)
{
    sqlock_lock **lock = state;
    struct lk_store *store = &f->a->store;

    (void)lk_row_pass_on(store, sqlock_key(*lock), lk_store_deadline(store));
}

static void check_tickets(struct fixture *f, void *state)
{
    sqlock_lock **lock = state;

    assert_int_equal(sql_integer(&f->sql,
                                 "SELECT COUNT(*) FROM %s WHERE "
                                 "LOCK_KEY = '%s' AND QUEUE LIKE '%%-8000-%%'",
                                 f->table, sqlock_key(*lock)),
                     1);
    (void)sql_run(&f->sql, "DELETE FROM %s", f->table);
    lock_drop(*lock);
}

TEST_ON(test_who_waits_keeps_its_ticket, ON_ALL, IN_SQLOCK)
{
    static const struct experiment experiment = {
        .prepare = prepare_tickets,
        .act = act_pass_on,
        .check = check_tickets,
        .state_bytes = sizeof(sqlock_lock *),
    };

    exhaust_all(f, &experiment);
}

/* A request that waits for a row keeps no thread where no other can be had. */
TEST(test_a_request_that_waits_keeps_no_thread)
{
    sqlock_options options = exhaust_options(f);
    sqlock_registry *registry = fixture_registry(f, &options);
    sqlock_registry *holder = fixture_registry(f, &options);
    sqlock_lock *taken = lock_obtain(registry, f->name);
    sqlock_lock *held = lock_obtain(holder, f->name);
    sqlock_lock *free = lock_obtain(registry, "another");
    sqlock_request *first;
    sqlock_request *second;

    lock_take(held, 0);
    lock_take(free, 0); /* which begins the threads of statements */
    exhaust_arm(EXHAUST_THREADS, 2, false, true);
    assert_ok(sqlock_request_acquire(&first, taken, SQLOCK_FOREVER, NULL, 0,
                                     &f->err));
    assert_ok(sqlock_request_release(&second, free, 0, &f->err));
    assert_becomes_true(sqlock_request_status(second) == SQLOCK_REQUEST_FREE,
                        PATIENCE_MS);
    assert_int_equal(exhaust_disarm(), 1);
    assert_ok(sqlock_request_finish(second, &f->err));
    assert_int_equal(sqlock_request_status(first), SQLOCK_REQUEST_FETCHING);
    lock_end(held);
    assert_becomes_true(sqlock_request_status(first) == SQLOCK_REQUEST_HELD,
                        PATIENCE_MS);
    assert_ok(sqlock_request_finish(first, &f->err));
    lock_end(taken);
    lock_drop(free);
    registry_end(registry);
    registry_end(holder);
}
