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

/* Each acquisition has one of its own, also in one registry, so that a late
 * statement of an old one does not match the row of a later one (F6). */
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
        assert_int_equal(strlen(id), 36);
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

/* Open a registry with SQLOCK_OWNED_BY_REGISTRY. */
static sqlock_registry *shared_registry(struct fixture *f)
{
    sqlock_options options = fixture_options(f);

    options.ownership = SQLOCK_OWNED_BY_REGISTRY;
    return fixture_registry(f, &options);
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

static const struct test tests[] = {
    TEST(test_the_client_id_is_the_rows),
    TEST(test_registry_ownership_under_many_threads),
    TEST(test_the_undoing_of_the_last_acquire_releases_the_lock),
};
const struct topic topic_ownership = TOPIC(tests);
