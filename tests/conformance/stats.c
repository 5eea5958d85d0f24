/*
 * stats.c - what a registry counts, and the events that it tells
 */
#include "conformance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "sqlock/async.h"
#include "sqlock/event.h"
#include "sqlock/many.h"
#include "sqlock/stats.h"

static sqlock_stats stats_of(struct fixture *f, sqlock_registry *registry)
{
    sqlock_stats stats = SQLOCK_STATS_INIT;
    int rc = sqlock_registry_stats(registry, &stats, &f->err);

    assert_lock_ok(rc, &f->err);
    assert_true(stats.attempts == stats.granted + stats.nested + stats.busy +
                                      stats.timed_out + stats.cancelled +
                                      stats.uncertain + stats.failed);
    assert_true(stats.wait.count == stats.granted);
    return stats;
}

static void test_each_end_of_an_acquisition_counts(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_registry(f, NULL);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    sqlock_stats stats = stats_of(f, registry);

    assert_int_equal(stats.attempts, 0);
    lock_take(lock, 0);
    lock_take(lock, 0);
    lock_give(lock);
    lock_give(lock);
    stats = stats_of(f, registry);
    assert_int_equal(stats.granted, 1);
    assert_int_equal(stats.nested, 1);
    assert_int_equal(stats.released, 1);
    assert_int_equal(stats.hold.count, 1);
    assert_true(stats.statement.count >= 2);
    assert_true(stats.pool_wait.count >= 1);
    assert_true(stats.connections >= 1);
    assert_true(stats.connections <= stats.connections_opened);
    assert_int_equal(stats.reconnects, 0);
    lock_take(other, 0);
    assert_code(SQLOCK_EBUSY, lock_try(lock, 0, 0, &f->err), &f->err);
    assert_code(SQLOCK_ETIMEDOUT, lock_try(lock, 20, 0, &f->err), &f->err);
    assert_code(SQLOCK_EINVAL, lock_try(lock, 0, 1, &f->err), &f->err);
    stats = stats_of(f, registry);
    assert_int_equal(stats.busy, 1);
    assert_int_equal(stats.timed_out, 1);
    assert_int_equal(stats.attempts, 4); /* one was refused before it began */
    lock_give(other);
    lock_drop(other);
    lock_drop(lock);
    registry_end(registry);
}

static void test_many_count_each(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_registry(f, NULL);
    sqlock_lock *locks[3];
    sqlock_stats stats;
    int rc;

    for (size_t i = 0; i < 3; i++) {
        fixture_next(f);
        locks[i] = lock_obtain(registry, f->name);
    }
    rc = sqlock_acquire_many(locks, 3, 0, NULL, NULL, &f->err);
    assert_lock_ok(rc, &f->err);
    assert_lock_ok(sqlock_renew_many(locks, 3, NULL, &f->err), &f->err);
    assert_lock_ok(sqlock_release_many(locks, 3, NULL, &f->err), &f->err);
    stats = stats_of(f, registry);
    assert_int_equal(stats.granted, 3);
    assert_int_equal(stats.renewed, 3);
    assert_int_equal(stats.released, 3);
    for (size_t i = 0; i < 3; i++)
        lock_drop(locks[i]);
    registry_end(registry);
}

/* The events of the lock of that name: their numbers, and the last ones. */
static struct {
    pthread_mutex_t mutex;
    const char *lock;
    unsigned times[SQLOCK_EVENT_ITEM_MISSING + 1];
    sqlock_event last[SQLOCK_EVENT_ITEM_MISSING + 1];
} told = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void note(void *context, const sqlock_event *event)
{
    (void)context;
    pthread_mutex_lock(&told.mutex);
    if (event->lock != NULL && strcmp(event->lock, told.lock) == 0) {
        assert_true(check_one_line(event->text));
        told.times[event->kind]++;
        told.last[event->kind] = *event;
    }
    pthread_mutex_unlock(&told.mutex);
}

static unsigned times_of(sqlock_event_kind kind)
{
    unsigned times;

    pthread_mutex_lock(&told.mutex);
    times = told.times[kind];
    pthread_mutex_unlock(&told.mutex);
    return times;
}

static sqlock_event last_of(sqlock_event_kind kind)
{
    sqlock_event last;

    pthread_mutex_lock(&told.mutex);
    last = told.last[kind];
    pthread_mutex_unlock(&told.mutex);
    return last;
}

static sqlock_registry *listening(struct fixture *f, sqlock_level level)
{
    sqlock_options options = fixture_options(f);

    memset(told.times, 0, sizeof told.times);
    told.lock = f->name;
    options.on_event = note;
    options.event_level = level;
    return fixture_registry(f, &options);
}

static void test_grants_and_releases_are_events_of_debugging(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = listening(f, SQLOCK_LEVEL_DEBUG);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    int64_t token;

    lock_take(lock, 0);
    token = sqlock_token(lock);
    assert_int_equal(times_of(SQLOCK_EVENT_ACQUIRED), 1);
    assert_true(last_of(SQLOCK_EVENT_ACQUIRED).token == token);
    assert_string_equal(last_of(SQLOCK_EVENT_ACQUIRED).name, "acquired");
    assert_int_equal(last_of(SQLOCK_EVENT_ACQUIRED).level, SQLOCK_LEVEL_DEBUG);
    lock_give(lock);
    assert_int_equal(times_of(SQLOCK_EVENT_RELEASED), 1);
    assert_int_equal(last_of(SQLOCK_EVENT_RELEASED).code, 0);
    lock_drop(lock);
    registry_end(registry);
}

static void test_a_lost_lease_is_told_and_counted_once(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = listening(f, SQLOCK_LEVEL_INFO);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    sqlock_stats stats;

    lock_take(lock, 0);
    fixture_expire(f, f->name);
    lock_take(other, 0);
    assert_code(SQLOCK_ELOST, sqlock_release(lock, &f->err), &f->err);
    assert_int_equal(times_of(SQLOCK_EVENT_ACQUIRED), 0);
    assert_int_equal(times_of(SQLOCK_EVENT_LOST), 1);
    assert_int_equal(last_of(SQLOCK_EVENT_LOST).code, SQLOCK_ELOST);
    assert_int_equal(last_of(SQLOCK_EVENT_LOST).level, SQLOCK_LEVEL_WARNING);
    stats = stats_of(f, registry);
    assert_int_equal(stats.lost, 1);
    assert_int_equal(stats.expired, 0);
    lock_give(other);
    lock_drop(other);
    lock_drop(lock);
    registry_end(registry);
}

static void test_a_watched_lease_that_ends_is_told(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = listening(f, SQLOCK_LEVEL_WARNING);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    int fd = -1;

    assert_int_equal(sqlock_lost_fd(&fd, lock, &f->err), 0);
    lock_take(lock, 100);
    assert_becomes_true(stats_of(f, registry).expired == 1, PATIENCE_MS);
    assert_becomes_true(times_of(SQLOCK_EVENT_LOST) == 1, PATIENCE_MS);
    assert_int_equal(last_of(SQLOCK_EVENT_LOST).code, SQLOCK_EEXPIRED);
    assert_true(last_of(SQLOCK_EVENT_LOST).token == sqlock_token(lock));
    assert_true(sqlock_release(lock, &f->err) < 0);
    assert_int_equal(stats_of(f, registry).expired, 1);
    assert_int_equal(times_of(SQLOCK_EVENT_LOST), 1);
    lock_drop(lock);
    registry_end(registry);
}

static void test_a_struct_of_another_size_is_refused(void **state)
{
    struct fixture *f = *state;
    sqlock_stats stats = {0};
    size_t first = offsetof(sqlock_stats, granted);

    assert_code(SQLOCK_EINVAL, sqlock_registry_stats(f->a, &stats, &f->err),
                &f->err);
    stats.size = sizeof stats + 1;
    assert_code(SQLOCK_EINVAL, sqlock_registry_stats(f->a, &stats, &f->err),
                &f->err);
    assert_code(SQLOCK_EINVAL, sqlock_registry_stats(f->a, NULL, &f->err),
                &f->err);
    assert_code(SQLOCK_EINVAL, sqlock_registry_stats(NULL, &stats, &f->err),
                &f->err);
    /* An older header's: what it does not have is not written. */
    stats.size = first;
    stats.granted = 7777777;
    assert_lock_ok(sqlock_registry_stats(f->a, &stats, &f->err), &f->err);
    assert_int_equal(stats.size, first);
    assert_int_equal(stats.granted, 7777777);
}

static const struct test tests[] = {
    TEST(test_each_end_of_an_acquisition_counts),
    TEST(test_many_count_each),
    TEST(test_grants_and_releases_are_events_of_debugging),
    TEST_ON(test_a_lost_lease_is_told_and_counted_once, ON_ALL, HAS_EXPIRY),
    TEST(test_a_watched_lease_that_ends_is_told),
    TEST(test_a_struct_of_another_size_is_refused),
};
const struct topic topic_stats = TOPIC(tests);
