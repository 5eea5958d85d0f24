/*
 * ownership.c - owners of a held lock: the thread, or the registry
 */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

#include "sqlock/lease.h"
#include "sqlock/many.h"
#include "support/tap.h"
#include "support/workers.h"

static void test_hold_count_follows_nesting(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    uint32_t depth;
    int64_t token;

    assert_int_equal(sqlock_hold_count(lock), 0);
    assert_true(sqlock_token(lock) == 0);
    assert_int_equal(sqlock_remaining_ms(lock), 0);
    lock_take(lock, 0);
    token = sqlock_token(lock);
    assert_true(token > 0);
    for (depth = 2; depth <= 10; depth++) {
        lock_take(lock, 0);
        assert_int_equal(sqlock_hold_count(lock), depth);
        assert_true(sqlock_token(lock) == token);
    }
    for (depth = 9; depth >= 1; depth--) {
        lock_give(lock);
        assert_int_equal(sqlock_hold_count(lock), depth);
        assert_true(sqlock_is_held(lock));
        assert_true(sqlock_remaining_ms(lock) > 0);
    }
    lock_give(lock);
    assert_int_equal(sqlock_hold_count(lock), 0);
    assert_false(sqlock_is_held(lock));
    assert_true(sqlock_token(lock) == 0);
    assert_fails(SQLOCK_EOWNER, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

static void note_loss(void *context, sqlock_lock *lock, int code)
{
    (void)context;
    (void)lock;
    (void)code;
}

/* A nested acquire shares the lease of the first one, so it cannot have options
 * that the first one did not have.  Options equal to the first ones, or none,
 * are accepted. */
static void test_a_nested_acquire_cannot_ask_for_more(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_acquire_options more[5];
    sqlock_acquire_options first = SQLOCK_ACQUIRE_INIT;

    for (size_t i = 0; i < 5; i++)
        more[i] = (sqlock_acquire_options)SQLOCK_ACQUIRE_INIT;
    more[0].ttl_ms = 54321;
    more[1].auto_renew = true;
    more[2].fenced = true;
    more[3].max_hold_ms = 54321;
    more[4].on_lost = note_loss;
    lock_take(lock, 0);
    for (size_t i = 0; i < 5; i++) {
        assert_fails(SQLOCK_EINVAL, sqlock_acquire(lock, 0, &more[i], &f->err));
        assert_int_equal(sqlock_hold_count(lock), 1);
    }
    lock_give(lock);

    first.auto_renew = true;
    first.ttl_ms = 54321;
    assert_ok(sqlock_acquire(lock, 0, &first, &f->err));
    assert_ok(sqlock_acquire(lock, 0, &first, &f->err));
    assert_ok(sqlock_acquire(lock, 0, NULL, &f->err));
    assert_int_equal(sqlock_hold_count(lock), 3);
    for (int i = 0; i < 3; i++)
        lock_give(lock);
    lock_drop(lock);
}

static void test_the_client_id_is_the_rows(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    char id[SQLOCK_KEY_SIZE] = "before";
    char last[SQLOCK_KEY_SIZE] = "";
    int round;

    sqlock_client_id(lock, id);
    assert_string_equal(id, "");
    for (round = 0; round < 3; round++) {
        lock_take(lock, 0);
        sqlock_client_id(lock, id);
        assert_string_equal(id, fixture_row(f, f->name).client);
        assert_string_not_equal(id, last);
        memcpy(last, id, sizeof last);
        sqlock_client_id(other, id);
        assert_string_equal(id, "");
        lock_give(lock);
        sqlock_client_id(lock, id);
        assert_string_equal(id, "");
    }
    lock_drop(other);
    lock_drop(lock);
}

static void test_fewer_releases_than_acquires_keep_the_lock(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);

    lock_take(lock, 0);
    lock_take(lock, 0);
    lock_take(lock, 0);
    lock_give(lock);
    lock_give(lock);
    assert_busy(other);
    lock_give(lock);
    lock_take_and_give(other);
    lock_drop(other);
    lock_drop(lock);
}

static int sees_nothing(struct worker *worker)
{
    sqlock_lock *lock = worker->context;

    if (sqlock_is_held(lock))
        return worker_fail(worker, "held by a thread that did not acquire");
    if (sqlock_hold_count(lock) != 0 || sqlock_remaining_ms(lock) != 0)
        return worker_fail(worker, "another thread's count or time");
    return 0;
}

static void test_another_thread_holds_nothing(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);

    lock_take(lock, 0);
    worker_run(sees_nothing, lock);
    lock_give(lock);
    lock_drop(lock);
}

/* Open a registry with SQLOCK_OWNED_BY_REGISTRY. */
static sqlock_registry *shared_registry(struct fixture *f)
{
    sqlock_options options = fixture_options(f);

    options.ownership = SQLOCK_OWNED_BY_REGISTRY;
    return fixture_registry(f, &options);
}

static int acquire_one_more(struct worker *worker)
{
    sqlock_lock *lock = worker->context;

    if (!sqlock_is_held(lock))
        return worker_fail(worker, "the registry holds it, and so do I");
    worker_expect(worker, 0, lock_try(lock, 0, 0, &worker->err));
    return 0;
}

static int release_one(struct worker *worker)
{
    worker_expect(worker, 0, sqlock_release(worker->context, &worker->err));
    return 0;
}

static void test_registry_ownership_is_counted_over_threads(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *shared = shared_registry(f);
    sqlock_lock *lock = lock_obtain(shared, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    int64_t token;

    lock_take(lock, 0);
    token = sqlock_token(lock);
    worker_run(acquire_one_more, lock);
    assert_int_equal(sqlock_hold_count(lock), 2);
    assert_true(sqlock_token(lock) == token);
    lock_give(lock);
    assert_busy(other);
    worker_run(release_one, lock);
    assert_int_equal(sqlock_hold_count(lock), 0);
    lock_take(other, 0);
    assert_busy(lock);
    lock_give(other);
    lock_drop(other);
    registry_end(shared);
}

static int renew_one(struct worker *worker)
{
    worker_expect(worker, 0, sqlock_renew(worker->context, 0, &worker->err));
    return 0;
}

static void test_registry_ownership_lets_any_thread_renew(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *shared = shared_registry(f);
    sqlock_lock *lock = lock_obtain(shared, f->name);

    lock_take(lock, 0);
    worker_run(renew_one, lock);
    worker_run(release_one, lock);
    assert_fails(SQLOCK_EOWNER, sqlock_release(lock, &f->err));
    assert_fails(SQLOCK_EOWNER, sqlock_renew(lock, 0, &f->err));
    registry_end(shared);
}

/* Acquire and release in a loop: a thread of the owning registry always gets
 * the lock, nested where another thread holds it. */
static int join_in(struct worker *worker)
{
    sqlock_lock *lock = worker->context;
    int i;

    for (i = 0; i < 20; i++) {
        worker_expect(worker, 0, lock_try(lock, PATIENCE_MS, 0, &worker->err));
        if (!sqlock_is_held(lock))
            return worker_fail(worker, "acquired, but not held");
        worker_expect(worker, 0, sqlock_release(lock, &worker->err));
    }
    return 0;
}

static void test_registry_ownership_under_many_threads(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *shared = shared_registry(f);
    sqlock_lock *lock = lock_obtain(shared, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    struct workers workers;

    workers_start(&workers, 4, join_in, lock);
    workers_join(&workers);
    assert_int_equal(sqlock_hold_count(lock), 0);
    lock_take_and_give(other);
    lock_drop(other);
    registry_end(shared);
}

/* A lock that is released once, when the next statement is about to be sent. */
struct early {
    sqlock_lock *lock; /* NULL: released */
    int rc;
};

static int release_early(void *context, const struct tap_event *event)
{
    struct early *early = context;
    sqlock_lock *lock = early->lock;

    if (event->call == TAP_EXECUTE && lock != NULL) {
        early->lock = NULL;
        early->rc = sqlock_release(lock, NULL);
    }
    return 0;
}

/* An acquire of many nests in a lock and claims another one, which is busy.
 * Meanwhile a thread releases the first lock: what is undone then is the last
 * acquire. */
static void check_undone_last(struct fixture *f, int64_t wait_ms, int expected)
{
    sqlock_options options = fixture_options(f);
    sqlock_acquire_options renewed = SQLOCK_ACQUIRE_INIT;
    struct early early = {.rc = 1};
    sqlock_registry *shared;
    sqlock_lock *both[2], *busy, *other;
    char second[sizeof f->name + 2];

    options.ownership = SQLOCK_OWNED_BY_REGISTRY;
    shared = fixture_tapped(f, &options);
    (void)snprintf(second, sizeof second, "%s/2", f->name);
    both[0] = lock_obtain(shared, f->name);
    both[1] = lock_obtain(shared, second);
    other = lock_obtain(f->b, f->name);
    busy = lock_obtain(f->b, second);
    lock_take(busy, 0);
    renewed.auto_renew = true;
    assert_ok(sqlock_acquire(both[0], 0, &renewed, &f->err));
    early.lock = both[0];
    tap_hooks(release_early, NULL, &early);
    assert_fails(expected,
                 sqlock_acquire_many(both, 2, wait_ms, NULL, NULL, &f->err));
    tap_hooks(NULL, NULL, NULL);
    assert_int_equal(early.rc, 0);
    assert_int_equal(sqlock_hold_count(both[0]), 0);
    assert_fails(SQLOCK_EOWNER, sqlock_release(both[0], &f->err));
    lock_take_and_give(other);
    lock_drop(both[0]);
    lock_drop(both[1]);
    lock_end(busy);
    lock_drop(other);
    registry_end(shared);
}

static void test_the_undoing_of_the_last_acquire_releases_the_lock(void **state)
{
    check_undone_last(*state, 0, SQLOCK_EBUSY);
    fixture_next(*state);
    check_undone_last(*state, 300, SQLOCK_ETIMEDOUT);
}

static int acquire_only(struct worker *worker)
{
    worker_expect(worker, 0, lock_try(worker->context, 0, 0, &worker->err));
    return 0;
}

/* The system may give the id of an ended thread to a new one, which must not
 * own the locks of the ended thread. */
static void test_a_thread_that_ended_passes_its_lock_to_nobody(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_registry(f, NULL);
    sqlock_lock *lock = lock_obtain(registry, f->name);

    worker_run(acquire_only, lock);
    worker_run(sees_nothing, lock);
    assert_false(sqlock_is_held(lock));
    registry_end(registry); /* releases it */
    lock = lock_obtain(f->b, f->name);
    lock_take_and_give(lock);
    lock_drop(lock);
}

static const struct test tests[] = {
    TEST(test_hold_count_follows_nesting),
    TEST(test_a_nested_acquire_cannot_ask_for_more),
    TEST(test_the_client_id_is_the_rows),
    TEST(test_fewer_releases_than_acquires_keep_the_lock),
    TEST(test_another_thread_holds_nothing),
    TEST(test_registry_ownership_is_counted_over_threads),
    TEST(test_registry_ownership_lets_any_thread_renew),
    TEST(test_registry_ownership_under_many_threads),
    TEST(test_the_undoing_of_the_last_acquire_releases_the_lock),
    TEST(test_a_thread_that_ended_passes_its_lock_to_nobody),
};
const struct topic topic_ownership = TOPIC(tests);
