/*
 * test_order.c - what ends in another order than it began: locks before the
 * transactions that guard them, registries before transactions
 */
#include "suite.h"
#include "sqlock/async.h"
#include "sqlock/many.h"

#include <stdio.h>

/* Open a registry on the fixture's table with that ownership. */
static sqlock_registry *owned_by(struct fixture *f, sqlock_ownership ownership)
{
    sqlock_options options = fixture_options(f);

    options.ownership = ownership;
    return fixture_registry(f, &options);
}

static sqlock_tx *guard_in(struct fixture *f, sqlock_registry *registry,
                           sqlock_lock *lock)
{
    sqlock_tx *tx;

    assert_ok(sqlock_tx_begin(&tx, registry, &f->err));
    assert_ok(sqlock_tx_guard(tx, lock, &f->err));
    return tx;
}

static int end(sqlock_tx *tx, bool commits, sqlock_error *err)
{
    return commits ? sqlock_tx_commit(tx, err) : sqlock_tx_rollback(tx, err);
}

/* The lock is given up and dropped while a transaction guards it: nobody else
 * can take it until the transaction ends, and then everybody can. */
static void check_abandoned(struct fixture *f, sqlock_ownership ownership,
                            bool commits)
{
    sqlock_registry *registry = owned_by(f, ownership);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_tx *tx;

    options.auto_renew = true;
    assert_ok(sqlock_acquire(lock, 0, &options, &f->err));
    tx = guard_in(f, registry, lock);
    assert_fails(SQLOCK_EINUSE, sqlock_release(lock, &f->err));
    assert_fails(SQLOCK_EINUSE, sqlock_abandon(lock, &f->err));
    assert_int_equal(sqlock_hold_count(lock), 0);
    assert_false(sqlock_is_held(lock));
    assert_true(sqlock_token(lock) == 0);
    assert_fails(SQLOCK_EOWNER, sqlock_release(lock, &f->err));
    assert_fails(SQLOCK_EOWNER, sqlock_renew(lock, 0, &f->err));
    assert_fails(SQLOCK_EOWNER, sqlock_abandon(lock, &f->err));
    lock_drop(lock);
    assert_false(fixture_is_free(f, f->name));
    assert_ok(end(tx, commits, &f->err));
    assert_true(fixture_is_free(f, f->name));
    lock_take_and_give(other);
    lock_drop(other);
    registry_end(registry);
}

static void test_an_abandoned_lock_is_released_with_its_guard(void **state)
{
    static const sqlock_ownership all[] = {SQLOCK_OWNED_BY_THREAD,
                                           SQLOCK_OWNED_BY_REGISTRY,
                                           SQLOCK_OWNED_BY_HANDLE};

    for (size_t i = 0; i < 6; i++) {
        fixture_next(*state);
        check_abandoned(*state, all[i / 2], i % 2 == 0);
    }
}

/* Without a guard, and for several locks, of which one is guarded. */
static void test_abandon_releases_what_is_not_guarded_at_once(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *locks[2];
    int results[2] = {1, 1};
    char second[sizeof f->name + 2];
    sqlock_tx *tx;

    (void)snprintf(second, sizeof second, "%s/2", f->name);
    locks[0] = lock_obtain(f->a, f->name);
    locks[1] = lock_obtain(f->a, second);
    lock_take(locks[0], 0);
    lock_take(locks[1], 0);
    lock_take(locks[1], 0);
    tx = guard_in(f, f->a, locks[0]);
    assert_fails(SQLOCK_EINUSE,
                 sqlock_abandon_many(locks, 2, results, &f->err));
    assert_int_equal(results[0], SQLOCK_EINUSE);
    assert_int_equal(results[1], 0);
    assert_int_equal(sqlock_hold_count(locks[1]), 1);
    assert_false(fixture_is_free(f, f->name));
    assert_ok(sqlock_tx_rollback(tx, &f->err));
    assert_true(fixture_is_free(f, f->name));
    assert_false(fixture_is_free(f, second));
    assert_ok(sqlock_abandon(locks[1], &f->err));
    assert_true(fixture_is_free(f, second));
    lock_drop(locks[0]);
    lock_drop(locks[1]);
}

/* Two transactions, of which each guards the lease; the second end releases
 * it.  Meanwhile the owner's next acquire waits, and then gets the lock. */
static void test_the_last_guard_releases_an_abandoned_lock(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = owned_by(f, SQLOCK_OWNED_BY_HANDLE);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_request *request;
    sqlock_tx *tx[2];

    if (f->database->bit == ON_SQLITE) { /* one transaction at a time */
        lock_drop(lock);
        registry_end(registry);
        return;
    }
    lock_take(lock, 0);
    tx[0] = guard_in(f, registry, lock);
    tx[1] = guard_in(f, registry, lock);
    assert_fails(SQLOCK_EINUSE, sqlock_abandon(lock, &f->err));
    assert_fails(SQLOCK_EBUSY, lock_try(lock, 0, 0, &f->err));
    assert_ok(sqlock_request_acquire(&request, lock, SQLOCK_FOREVER, NULL, 0,
                                     &f->err));
    assert_ok(sqlock_tx_commit(tx[0], &f->err));
    assert_int_equal(sqlock_request_status(request), SQLOCK_REQUEST_FETCHING);
    assert_ok(sqlock_tx_commit(tx[1], &f->err));
    assert_becomes_true(sqlock_request_status(request) == SQLOCK_REQUEST_HELD,
                        PATIENCE_MS);
    assert_ok(sqlock_request_finish(request, &f->err));
    lock_end(lock);
    registry_end(registry);
}

/* A lease that was lost before the transaction ends is not released: the next
 * holder keeps its row. */
static void test_a_lost_lease_that_was_abandoned_spares_the_next(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    struct session s;

    lock_take(lock, 0);
    session_open(f, &s, NULL);
    assert_ok(sqlock_tx_guard(s.tx, lock, &f->err));
    assert_fails(SQLOCK_EINUSE, sqlock_abandon(lock, &f->err));
    app_run(&s.app, "ROLLBACK");
    lock_break(f, other, true);
    lock_take(other, 0);
    session_close(&s);
    assert_true(sqlock_is_held(other));
    lock_renew(other, 0);
    lock_end(other);
    lock_drop(lock);
}

/* An acquire of many nests in a guarded lock, which is released meanwhile, and
 * fails: the end of the transaction releases the lock. */
static void test_an_undone_acquire_leaves_the_release_to_the_guard(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = owned_by(f, SQLOCK_OWNED_BY_REGISTRY);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_request *request;
    sqlock_tx *tx;

    lock_take(lock, 0);
    assert_ok(sqlock_request_acquire(&request, lock, 0, NULL, 0, &f->err));
    assert_becomes_true(sqlock_request_status(request) == SQLOCK_REQUEST_HELD,
                        PATIENCE_MS);
    assert_int_equal(sqlock_hold_count(lock), 2);
    tx = guard_in(f, registry, lock);
    lock_give(lock);
    assert_ok(sqlock_request_abandon(request, &f->err));
    assert_becomes_true(sqlock_hold_count(lock) == 0, PATIENCE_MS);
    assert_ok(sqlock_tx_rollback(tx, &f->err));
    assert_becomes_true(fixture_is_free(f, f->name), PATIENCE_MS);
    lock_drop(lock);
    registry_end(registry);
}

static void test_a_registry_is_not_closed_under_a_transaction(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = owned_by(f, SQLOCK_OWNED_BY_THREAD);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_tx *tx;

    lock_take(lock, 0);
    tx = guard_in(f, registry, lock);
    assert_fails(SQLOCK_EINUSE, sqlock_registry_close(registry, &f->err));
    assert_true(sqlock_is_held(lock));
    assert_ok(sqlock_tx_commit(tx, &f->err));
    registry_end(registry);
    assert_true(fixture_is_free(f, f->name));
}

static int take_and_give(struct worker *worker)
{
    sqlock_lock *lock = worker->context;

    worker_expect(worker, 0, lock_try(lock, PATIENCE_MS, 0, &worker->err));
    worker_expect(worker, 0, sqlock_release(lock, &worker->err));
    return 0;
}

/* The lease is over, and another thread of the process has had the lock: what
 * the late holder is told is that, not that it never was the owner. */
static void
test_the_guard_of_an_overdue_lease_says_that_it_is_over(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_tx *tx;
    int rc;

    lock_take(lock, 100 * SLOWNESS);
    fixture_await_expiry(f, f->name);
    worker_run(take_and_give, lock);
    assert_ok(sqlock_tx_begin(&tx, f->a, &f->err));
    rc = sqlock_tx_guard(tx, lock, &f->err);
    assert_code_of(SQLOCK_EEXPIRED, SQLOCK_ELOST, rc, &f->err);
    assert_ok(sqlock_tx_rollback(tx, &f->err));
    rc = sqlock_renew(lock, 0, &f->err);
    assert_code_of(SQLOCK_EEXPIRED, SQLOCK_ELOST, rc, &f->err);
    rc = lock_try(lock, 0, 0, &f->err);
    assert_code_of(SQLOCK_EEXPIRED, SQLOCK_ELOST, rc, &f->err);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

static const struct test tests[] = {
    TEST(test_an_abandoned_lock_is_released_with_its_guard),
    TEST(test_abandon_releases_what_is_not_guarded_at_once),
    TEST(test_the_last_guard_releases_an_abandoned_lock),
    TEST(test_a_lost_lease_that_was_abandoned_spares_the_next),
    TEST(test_an_undone_acquire_leaves_the_release_to_the_guard),
    TEST(test_a_registry_is_not_closed_under_a_transaction),
    TEST(test_the_guard_of_an_overdue_lease_says_that_it_is_over),
};
const struct topic topic_order = TOPIC(tests);
