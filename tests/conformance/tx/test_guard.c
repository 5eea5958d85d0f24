/*
 * test_guard.c - the database checks a lease inside a transaction, and nobody
 * else can take the lock until the transaction ends
 */
#include "suite.h"
#include "sqlock/many.h"

#include <stdio.h>
#include <string.h>

/* TTL of a lease that is to expire soon. */
#define SHORT_TTL_MS (150 * SLOWNESS)
/* TTL of a lease that a busy machine has time to renew or to guard. */
#define KEPT_TTL_MS (2000 * SLOWNESS)

static void write_as_application(struct fixture *f, struct session *s, int id)
{
    app_run(&s->app, "UPDATE %s SET a = a + 1 WHERE id = %d", stock_name(f),
            id);
}

static void test_guarded_write_is_committed(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct session s;

    lock_take(lock, 0);
    session_open(f, &s, NULL);
    assert_ok(sqlock_tx_guard(s.tx, lock, &f->err));
    assert_ok(sqlock_tx_guard(s.tx, lock, &f->err));
    write_as_application(f, &s, 1);
    session_commit(f, &s);
    assert_int_equal(stock_value(f, 1), 101);
    assert_true(sqlock_is_held(lock));
    lock_end(lock);
    session_close(&s);
}

static void test_guard_on_our_own_connection(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_value key = sqlock_integer(1);
    char text[160];
    sqlock_tx *tx;

    lock_take(lock, 0);
    assert_ok(sqlock_tx_begin(&tx, f->a, &f->err));
    assert_ok(sqlock_tx_guard(tx, lock, &f->err));
    (void)snprintf(text, sizeof text, "UPDATE %s SET a = 9 WHERE id = ?",
                   stock_name(f));
    assert_ok(sqlock_tx_execute(tx, text, &key, 1, NULL, &f->err));
    assert_ok(sqlock_tx_commit(tx, &f->err));
    assert_int_equal(stock_value(f, 1), 9);
    lock_end(lock);
}

/* The lease has expired, and another holder has the lock: nothing is committed,
 * and the error says who has it. */
static void test_lost_lease_cannot_be_committed(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    struct session s;

    lock_take(lock, SHORT_TTL_MS);
    assert_ok(lock_try(other, PATIENCE_MS, 0, &f->err));
    session_open(f, &s, NULL);
    write_as_application(f, &s, 1);
    assert_fails(SQLOCK_ELOST, sqlock_tx_guard(s.tx, lock, &f->err));
    assert_contains(f->err.message, f->name);
    if (f->layout == SQLOCK_LAYOUT_SQLOCK)
        assert_contains(f->err.message, "fixture"); /* the holder's note */
    assert_fails(SQLOCK_ELOST, sqlock_tx_guard(s.tx, lock, &f->err));
    session_commit_fails(SQLOCK_ELOST, f, &s);
    assert_false(app_in_transaction(&s.app));
    assert_int_equal(stock_value(f, 1), 100);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_end(other);
    lock_drop(lock);
    session_close(&s);
}

static void test_expired_lease_is_told_from_a_lost_one(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct session s;

    lock_take(lock, SHORT_TTL_MS);
    fixture_await_expiry(f, f->name);
    session_open(f, &s, NULL);
    assert_fails(SQLOCK_EEXPIRED, sqlock_tx_guard(s.tx, lock, &f->err));
    session_commit_fails(SQLOCK_EEXPIRED, f, &s);
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(lock, &f->err));
    lock_drop(lock);
    session_close(&s);
}

/* On a connection of ours, too, where the commit does not ask again. */
static void test_expired_lease_is_refused_on_our_own_connection(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_tx *tx;

    lock_take(lock, SHORT_TTL_MS);
    fixture_await_expiry(f, f->name);
    assert_ok(sqlock_tx_begin(&tx, f->a, &f->err));
    assert_fails(SQLOCK_EEXPIRED, sqlock_tx_guard(tx, lock, &f->err));
    assert_fails(SQLOCK_EEXPIRED, sqlock_tx_commit(tx, &f->err));
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

/* ROLLBACK TO SAVEPOINT releases a row that was locked after the savepoint, so
 * a further guard checks the lease again, and notices that it was broken. */
static void test_guard_is_asked_again_after_a_savepoint(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct session s;

    lock_take(lock, 0);
    session_open(f, &s, "BEGIN");
    app_run(&s.app, "SAVEPOINT before_it");
    assert_ok(sqlock_tx_guard(s.tx, lock, &f->err));
    assert_ok(sqlock_tx_guard(s.tx, lock, &f->err));
    app_run(&s.app, "ROLLBACK TO SAVEPOINT before_it");
    assert_ok(sqlock_tx_guard(s.tx, lock, &f->err));
    app_run(&s.app, "ROLLBACK TO SAVEPOINT before_it");
    lock_break(f, lock, true);
    assert_fails(SQLOCK_ELOST, sqlock_tx_guard(s.tx, lock, &f->err));
    session_close(&s);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

static void test_broken_lease_is_lost(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct session s;

    lock_take(lock, 0);
    lock_break(f, lock, false);
    session_open(f, &s, NULL);
    assert_fails(SQLOCK_ELOST, sqlock_tx_guard(s.tx, lock, &f->err));
    session_close(&s);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

static void test_guard_needs_a_held_lock_of_the_registry(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *foreign = lock_obtain(f->b, f->name);
    struct session s;

    session_open(f, &s, NULL);
    assert_fails(SQLOCK_EOWNER, sqlock_tx_guard(s.tx, lock, &f->err));
    assert_fails(SQLOCK_EOWNER, sqlock_tx_commit(s.tx, &f->err));
    app_close(&s.app);
    lock_take(foreign, 0);
    session_open(f, &s, NULL);
    assert_fails(SQLOCK_EINVAL, sqlock_tx_guard(s.tx, foreign, &f->err));
    session_close(&s);
    session_open(f, &s, NULL);
    assert_fails(SQLOCK_EINVAL, sqlock_tx_guard(s.tx, NULL, &f->err));
    session_close(&s);
    lock_end(foreign);
    lock_drop(lock);
}

static void test_release_under_an_open_guard_is_refused_at_once(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *const locks[] = {lock};
    struct session s;
    int result = 0;

    lock_take(lock, 0);
    session_open(f, &s, NULL);
    assert_ok(sqlock_tx_guard(s.tx, lock, &f->err));
    assert_fails(SQLOCK_EINUSE, sqlock_release(lock, &f->err));
    assert_fails(SQLOCK_EINUSE,
                 sqlock_release_many(locks, 1, &result, &f->err));
    assert_int_equal(result, SQLOCK_EINUSE);
    assert_fails(SQLOCK_EBUSY, sqlock_renew(lock, 0, &f->err));
    assert_fails(SQLOCK_EINUSE, sqlock_drop(lock, &f->err));
    assert_true(sqlock_is_held(lock));
    session_commit(f, &s);
    lock_end(lock);
    session_close(&s);
}

/* --- a takeover at every point --- */

/* A thread that tries to acquire the lock until it succeeds, or `stop` is
 * set. */
struct rival {
    sqlock_lock *lock;
    atomic_bool stop;
    atomic_uint refused; /* attempts that found the lock busy */
    atomic_bool has_it;  /* it has acquired the lock */
};

static int try_again_and_again(struct worker *worker)
{
    struct rival *rival = worker->context;

    while (!atomic_load(&rival->stop)) {
        int rc = lock_try(rival->lock, 0, 0, &worker->err);

        if (rc == 0) {
            atomic_store(&rival->has_it, true);
            worker_expect(worker, 0, sqlock_release(rival->lock, &worker->err));
            return 0;
        }
        if (rc != SQLOCK_EBUSY)
            return worker_fail(worker, "%d: %s", rc, worker->err.message);
        atomic_fetch_add(&rival->refused, 1);
    }
    return 0;
}

/* Wait until an attempt that has begun after this call is refused. */
static bool is_refused_again(struct rival *rival)
{
    unsigned before = atomic_load(&rival->refused);

    /* The first refusal may be of an attempt that had begun before. */
    return wait_until(atomic_load(&rival->refused) >= before + 2, PATIENCE_MS);
}

/* Acquire the lock for KEPT_TTL_MS, and guard it in a new session; again if the
 * lease has expired before the guard, as it may on a busy machine. */
static void guard_in_time(struct fixture *f, struct session *s,
                          sqlock_lock *lock)
{
    int64_t end_ns = check_deadline_ns(PATIENCE_MS);
    int rc;

    for (;;) {
        lock_take(lock, KEPT_TTL_MS);
        session_open(f, s, NULL);
        rc = sqlock_tx_guard(s->tx, lock, &f->err);
        if (rc != SQLOCK_EEXPIRED || !check_pause(end_ns))
            break;
        session_close(s);
        assert_fails(SQLOCK_EEXPIRED, sqlock_release(lock, &f->err));
    }
    assert_ok(rc);
}

static void test_guard_holds_against_takeover_until_commit(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct rival rival = {.lock = lock_obtain(f->b, f->name)};
    struct worker worker;
    struct session s;

    guard_in_time(f, &s, lock);
    worker_start(&worker, try_again_and_again, &rival);
    assert_true(is_refused_again(&rival)); /* between guard and write */
    write_as_application(f, &s, 1);
    assert_true(is_refused_again(&rival)); /* between write and commit */
    fixture_await_expiry(f, f->name);
    assert_true(is_refused_again(&rival)); /* after the lease's end */
    assert_false(atomic_load(&rival.has_it));
    write_as_application(f, &s, 1);
    session_commit(f, &s);
    assert_becomes_true(atomic_load(&rival.has_it), PATIENCE_MS);
    atomic_store(&rival.stop, true);
    worker_join(&worker);
    assert_int_equal(stock_value(f, 1), 102);
    assert_code_of(SQLOCK_ELOST, SQLOCK_EEXPIRED, sqlock_release(lock, &f->err),
                   &f->err);
    lock_drop(rival.lock);
    lock_drop(lock);
    session_close(&s);
}

/* --- the renewer --- */

#define KEPT 100

static void test_other_leases_are_kept_beside_a_guarded_one(void **state)
{
    struct fixture *f = *state;
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_registry *registry;
    sqlock_lock *locks[KEPT];
    struct session s;
    int64_t until;
    int held = 0;
    int rc;

    registry = fixture_registry(f, NULL);
    options.ttl_ms = KEPT_TTL_MS;
    options.auto_renew = true;
    for (int i = 0; i < KEPT; i++) {
        fixture_next(f);
        locks[i] = lock_obtain(registry, f->name);
    }
    assert_ok(sqlock_acquire_many(locks, KEPT, 0, &options, NULL, &f->err));
    app_open(&s.app, f->database, f->url);
    assert_ok(sqlock_tx_adopt(&s.tx, registry, s.app.native, &f->err));
    assert_ok(sqlock_tx_guard(s.tx, locks[7], &f->err));
    until = sqlock_monotonic_ns() + INT64_C(3) * KEPT_TTL_MS * 1000000;
    while (check_pause(until))
        for (int i = 0; i < KEPT; i++)
            if (i != 7)
                assert_true(sqlock_is_held(locks[i]));
    for (int i = 0; i < KEPT; i++)
        held += sqlock_is_held(locks[i]);
    assert_int_equal(held, KEPT - 1);
    /* The guarded lease is over, but nobody can have taken it: the transaction
     * may commit. */
    session_commit(f, &s);
    assert_false(sqlock_is_held(locks[7]));
    rc = sqlock_release_many(locks, KEPT, NULL, &f->err);
    assert_code_of(SQLOCK_EEXPIRED, SQLOCK_ELOST, rc, &f->err);
    for (int i = 0; i < KEPT; i++)
        lock_drop(locks[i]);
    session_close(&s);
    registry_end(registry);
}

/* Short guarded transactions follow one another for longer than the TTL: the
 * lease is renewed between them, and stays held. */
static void test_renewed_lease_survives_its_guards(void **state)
{
    struct fixture *f = *state;
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct session s;
    int64_t until;

    options.ttl_ms = 3 * KEPT_TTL_MS;
    options.auto_renew = true;
    assert_ok(sqlock_acquire(lock, 0, &options, &f->err));
    app_open(&s.app, f->database, f->url);
    until = sqlock_monotonic_ns() + INT64_C(4) * KEPT_TTL_MS * 1000000;
    do {
        assert_ok(sqlock_tx_adopt(&s.tx, f->a, s.app.native, &f->err));
        assert_ok(sqlock_tx_guard(s.tx, lock, &f->err));
        write_as_application(f, &s, 2);
        assert_ok(sqlock_tx_commit(s.tx, &f->err));
    } while (check_pause(until));
    assert_true(sqlock_is_held(lock));
    app_close(&s.app);
    lock_end(lock);
}

/* --- isolation --- */

/* A guard that is the first statement succeeds at each isolation level.  After
 * a snapshot older than the last renewal, the guard succeeds or returns
 * ERETRY. */
static void test_isolation_levels_of_the_caller_with_a_guard(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < LEVELS; i++) {
        sqlock_lock *lock;
        struct session s;
        int rc;

        fixture_next(f);
        lock = lock_obtain(f->a, f->name);
        lock_take(lock, 0);
        app_open(&s.app, f->database, f->url);
        app_begin_at(&s.app, app_levels[i]);
        lock_renew(lock, 0);
        assert_ok(sqlock_tx_adopt(&s.tx, f->a, s.app.native, &f->err));
        lock_renew(lock, 0);
        assert_ok(sqlock_tx_guard(s.tx, lock, &f->err));
        assert_ok(sqlock_tx_commit(s.tx, &f->err));

        app_begin_at(&s.app, app_levels[i]);
        (void)app_integer(&s.app, "SELECT count(*) FROM %s", stock_name(f));
        assert_ok(sqlock_tx_adopt(&s.tx, f->a, s.app.native, &f->err));
        lock_renew(lock, 0);
        rc = sqlock_tx_guard(s.tx, lock, &f->err);
        if (keeps_its_snapshot(f) && i > 0) {
            assert_fails(SQLOCK_ERETRY, rc);
            assert_fails(SQLOCK_ERETRY, sqlock_tx_commit(s.tx, &f->err));
        } else {
            assert_ok(rc);
            assert_ok(sqlock_tx_commit(s.tx, &f->err));
        }
        app_close(&s.app);
        lock_end(lock);
    }
}

/* Another session keeps the lease's row locked: the guard returns EBUSY, and
 * does not wait without end. */
static void test_guard_of_a_locked_row_is_busy(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct sql dba;
    struct session s;

    lock_take(lock, 0);
    fixture_lock_row(f, &dba, lock);
    session_open(f, &s, NULL);
    assert_fails(SQLOCK_EBUSY, sqlock_tx_guard(s.tx, lock, &f->err));
    session_close(&s);
    fixture_unlock_row(&dba);
    lock_end(lock);
}

static const struct test tests[] = {
    TEST_OF_ROWS(test_guarded_write_is_committed, ON_ALL, IN_ALL),
    TEST_OF_ROWS(test_guard_on_our_own_connection, ON_ALL, 0),
    TEST_OF_ROWS(test_lost_lease_cannot_be_committed, ON_ALL, HAS_EXPIRY),
    TEST_OF_ROWS(test_expired_lease_is_refused_on_our_own_connection, ON_ALL,
                 HAS_EXPIRY),
    TEST_OF_ROWS(test_expired_lease_is_told_from_a_lost_one, ON_ALL,
                 HAS_EXPIRY),
    TEST_OF_ROWS(test_broken_lease_is_lost, ON_ALL, IN_ALL),
    TEST_ON(test_guard_is_asked_again_after_a_savepoint, ON_POSTGRES,
            IN_SQLOCK),
    TEST_OF_ROWS(test_guard_needs_a_held_lock_of_the_registry, ON_ALL, 0),
    TEST_OF_ROWS(test_release_under_an_open_guard_is_refused_at_once, ON_ALL,
                 0),
    TEST_OF_ROWS(test_guard_holds_against_takeover_until_commit, ON_ALL, 0),
    TEST_OF_ROWS(test_other_leases_are_kept_beside_a_guarded_one, ON_SERVERS,
                 IN_SQLOCK),
    TEST_OF_ROWS(test_renewed_lease_survives_its_guards, ON_ALL, 0),
    TEST_OF_ROWS(test_isolation_levels_of_the_caller_with_a_guard, ON_SERVERS,
                 IN_SQLOCK),
    TEST_OF_ROWS(test_guard_of_a_locked_row_is_busy, ON_SERVERS, IN_SQLOCK),
};
const struct topic topic_guard = TOPIC(tests);
