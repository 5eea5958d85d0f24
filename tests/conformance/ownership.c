/*
 * ownership.c - owners of a held lock: the thread, or the registry
 */
#include "conformance.h"

#include <string.h>

#include "sqlock/lease.h"
#include "support/workers.h"

/* Each acquisition has one of its own, also in one registry, so that a late
 * statement of an old one does not match the row of a later one (F6). */
TEST(test_the_client_id_is_the_rows)
{
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

TEST(test_registry_ownership_under_many_threads)
{
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
