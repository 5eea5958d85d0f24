/*
 * callback.c - calls of the library in its own callbacks are refused where they
 * would wait for themselves, and what was not called can be called afterwards
 */
#include "renewer.h"

#include <string.h>

#include "sqlock/async.h"
#include "sqlock/event.h"
#include "sqlock/many.h"

/* A callback calls the library, and notes what each call answered. */
struct within {
    sqlock_registry *registry;
    sqlock_lock *lock;
    sqlock_lock *other;
    bool was_held; /* a query of the other lock */
    int close, obtain, acquire, renew, release, release_many, drop, request;
    int other_release;
    atomic_int times;
};

static void use_lock(struct within *within)
{
    sqlock_lock *both[] = {within->lock, within->other};
    sqlock_lock *one = NULL;
    sqlock_request *request = NULL;

    within->close = sqlock_registry_close(within->registry, NULL);
    within->obtain = sqlock_obtain(&one, within->registry, "another", NULL);
    if (one != NULL)
        (void)sqlock_drop(one, NULL);
    within->acquire = sqlock_acquire(within->lock, SQLOCK_FOREVER, NULL, NULL);
    within->renew = sqlock_renew(within->lock, 0, NULL);
    within->release = sqlock_release(within->lock, NULL);
    within->release_many = sqlock_release_many(both, 2, NULL, NULL);
    within->drop = sqlock_drop(within->lock, NULL);
    within->request = sqlock_request_release(&request, within->lock, 0, NULL);
    within->was_held = sqlock_is_held(within->other);
}

static void expect_refused(const struct within *within)
{
    assert_int_equal(within->close, SQLOCK_EINUSE);
    assert_int_equal(within->acquire, SQLOCK_EINUSE);
    assert_int_equal(within->renew, SQLOCK_EINUSE);
    assert_int_equal(within->release, SQLOCK_EINUSE);
    assert_int_equal(within->release_many, SQLOCK_EINUSE);
    assert_int_equal(within->drop, SQLOCK_EINUSE);
    assert_int_equal(within->request, SQLOCK_EINUSE);
}

static void use_when_lost(void *context, sqlock_lock *lock, int code)
{
    struct within *within = context;

    (void)lock;
    (void)code;
    use_lock(within);
    within->other_release = sqlock_release(within->other, NULL);
    (void)atomic_fetch_add(&within->times, 1);
}

/* In on_lost the lock and its registry are refused, and other locks are not.
 * Ownership by handle lets the library's thread release them. */
TEST(test_on_lost_cannot_wait_for_itself)
{
    sqlock_options options = renewer_options(f);
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;
    struct within within;

    memset(&within, 0, sizeof within);
    options.ownership = SQLOCK_OWNED_BY_HANDLE;
    within.registry = fixture_registry(f, &options);
    within.lock = lock_obtain(within.registry, f->name);
    within.other = nth_lock(f, within.registry, 1);
    lock_take(within.other, 0);
    how.ttl_ms = TTL_MS;
    how.on_lost = use_when_lost;
    how.lost_context = &within;
    take_briefly(within.lock, &how);
    assert_becomes_true(atomic_load(&within.times) > 0, PATIENCE_MS);
    expect_refused(&within);
    assert_int_equal(within.obtain, 0);
    assert_true(within.was_held);
    assert_int_equal(within.other_release, 0);
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(within.lock, &f->err));
    lock_take_and_give(within.lock);
    lock_drop(within.lock);
    lock_drop(within.other);
    registry_end(within.registry);
    assert_int_equal(atomic_load(&within.times), 1);
}

/* Two callbacks of two registries, of which each releases the lock that the
 * other one is told of, or closes the other's registry. */
struct crossing {
    atomic_int *running, *ended;
    sqlock_lock *other;
    sqlock_registry *closes; /* NULL: it releases */
    int rc;
};

static void cross(void *context, sqlock_lock *lock, int code)
{
    struct crossing *crossing = context;

    (void)lock;
    (void)code;
    (void)atomic_fetch_add(crossing->running, 1);
    (void)wait_until(atomic_load(crossing->running) == 2, PATIENCE_MS);
    crossing->rc = crossing->closes != NULL
                       ? sqlock_registry_close(crossing->closes, NULL)
                       : sqlock_release(crossing->other, NULL);
    (void)atomic_fetch_add(crossing->ended, 1);
}

static void check_crossing(struct fixture *f, bool closes)
{
    atomic_int running = 0;
    atomic_int ended = 0;
    struct crossing crossings[2];
    sqlock_options options = renewer_options(f);
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;
    sqlock_registry *registries[2];
    sqlock_lock *locks[2];

    options.ownership = SQLOCK_OWNED_BY_HANDLE;
    for (size_t i = 0; i < 2; i++) {
        registries[i] = fixture_registry(f, &options);
        locks[i] = nth_lock(f, registries[i], (unsigned)i);
    }
    for (size_t i = 0; i < 2; i++)
        crossings[i] =
            (struct crossing){&running, &ended, locks[1 - i],
                              closes && i == 0 ? registries[1] : NULL, 1};
    how.ttl_ms = TTL_MS;
    how.on_lost = cross;
    for (size_t i = 0; i < 2; i++) {
        how.lost_context = &crossings[i];
        take_briefly(locks[i], &how);
    }
    assert_becomes_true(atomic_load(&ended) == 2, PATIENCE_MS);
    assert_true((crossings[0].rc == SQLOCK_EINUSE) !=
                (crossings[1].rc == SQLOCK_EINUSE));
    for (size_t i = 0; i < 2; i++) {
        if (i == 1 && closes && crossings[0].rc != SQLOCK_EINUSE)
            continue; /* it was closed, and released its lock */
        if (crossings[1 - i].closes != NULL ||
            crossings[1 - i].rc == SQLOCK_EINUSE)
            assert_fails(SQLOCK_EEXPIRED, sqlock_release(locks[i], &f->err));
        lock_drop(locks[i]);
        registry_end(registries[i]);
    }
}

/* The one that would close the circle is refused, and the other one goes on. */
TEST(test_two_on_lost_do_not_wait_for_each_other)
{
    check_crossing(f, false);
}

TEST(test_on_lost_does_not_close_what_waits_for_it)
{
    check_crossing(f, true);
}

/* Two callbacks of two registries, of which each ends the request that got the
 * lock the other one is told of. */
struct ending {
    atomic_int *running, *ended;
    sqlock_request *const *other;
    bool finishes; /* otherwise it abandons */
    int rc;
};

static void end_other(void *context, sqlock_lock *lock, int code)
{
    struct ending *ending = context;

    (void)lock;
    (void)code;
    (void)atomic_fetch_add(ending->running, 1);
    (void)wait_until(atomic_load(ending->running) == 2, PATIENCE_MS);
    (void)wait_until(sqlock_request_status(*ending->other) ==
                         SQLOCK_REQUEST_LOST,
                     PATIENCE_MS);
    ending->rc = ending->finishes
                     ? sqlock_request_finish(*ending->other, NULL)
                     : sqlock_request_abandon(*ending->other, NULL);
    (void)atomic_fetch_add(ending->ended, 1);
}

static void check_endings(struct fixture *f, bool finishes)
{
    atomic_int running = 0;
    atomic_int ended = 0;
    struct ending endings[2];
    sqlock_options options = renewer_options(f);
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;
    sqlock_registry *registries[2];
    sqlock_request *requests[2] = {NULL};
    sqlock_lock *locks[2];

    options.ownership = SQLOCK_OWNED_BY_HANDLE;
    how.ttl_ms = TTL_MS;
    how.on_lost = end_other;
    for (size_t i = 0; i < 2; i++) {
        registries[i] = fixture_registry(f, &options);
        locks[i] = nth_lock(f, registries[i], (unsigned)i);
        endings[i] =
            (struct ending){&running, &ended, &requests[1 - i], finishes, 1};
        how.lost_context = &endings[i];
        assert_ok(sqlock_request_acquire(&requests[i], locks[i], 0, &how, 0,
                                         &f->err));
    }
    assert_becomes_true(atomic_load(&ended) == 2, PATIENCE_MS);
    assert_true((endings[0].rc == SQLOCK_EINUSE) !=
                (endings[1].rc == SQLOCK_EINUSE));
    for (size_t i = 0; i < 2; i++) {
        if (endings[1 - i].rc == SQLOCK_EINUSE)
            assert_ok(sqlock_request_abandon(requests[i], &f->err));
        else
            assert_int_equal(endings[1 - i].rc, finishes ? SQLOCK_EEXPIRED : 0);
        lock_drop(locks[i]);
        registry_end(registries[i]);
    }
}

TEST(test_two_on_lost_do_not_abandon_what_they_wait_for)
{
    check_endings(f, false);
}

TEST(test_two_on_lost_do_not_finish_what_they_wait_for)
{
    check_endings(f, true);
}

static void use_when_told(void *context, const sqlock_event *event)
{
    struct within *within = context;

    if (event->kind != SQLOCK_EVENT_LOST || atomic_load(&within->times) > 0)
        return;
    use_lock(within);
    within->other_release = sqlock_release(within->other, NULL);
    (void)atomic_fetch_add(&within->times, 1);
}

/* In on_event all calls of the registry are refused, and none is half done. */
TEST(test_on_event_cannot_wait_for_itself)
{
    sqlock_options options = renewer_options(f);
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;
    struct told told = {0};
    struct within within;

    memset(&within, 0, sizeof within);
    options.ownership = SQLOCK_OWNED_BY_HANDLE;
    options.on_event = use_when_told;
    options.event_context = &within;
    within.registry = fixture_registry(f, &options);
    within.lock = lock_obtain(within.registry, f->name);
    within.other = nth_lock(f, within.registry, 1);
    lock_take(within.other, 0);
    how.ttl_ms = TTL_MS;
    how.on_lost = told_note;
    how.lost_context = &told;
    take_briefly(within.lock, &how);
    assert_becomes_true(atomic_load(&told.times) > 0, PATIENCE_MS);
    assert_int_equal(atomic_load(&within.times), 1);
    expect_refused(&within);
    assert_int_equal(within.obtain, SQLOCK_EINUSE);
    assert_int_equal(within.other_release, SQLOCK_EINUSE);
    assert_true(within.was_held);
    lock_give(within.other);
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(within.lock, &f->err));
    lock_drop(within.lock);
    lock_drop(within.other);
    registry_end(within.registry);
}

/* An event in a call of the application's own thread: closing the registry
 * there would free it under that call. */
static void close_when_acquired(void *context, const sqlock_event *event)
{
    struct within *within = context;

    if (event->kind == SQLOCK_EVENT_ACQUIRED && within->registry != NULL)
        within->close = sqlock_registry_close(within->registry, NULL);
}

TEST(test_an_event_within_a_call_cannot_close_its_registry)
{
    sqlock_options options = renewer_options(f);
    struct within within;
    sqlock_lock *lock;

    memset(&within, 0, sizeof within);
    options.on_event = close_when_acquired;
    options.event_context = &within;
    options.event_level = SQLOCK_LEVEL_DEBUG;
    within.registry = fixture_registry(f, &options);
    lock = lock_obtain(within.registry, f->name);
    lock_take(lock, 0);
    assert_int_equal(within.close, SQLOCK_EINUSE);
    lock_give(lock);
    lock_drop(lock);
    registry_end(within.registry);
}
