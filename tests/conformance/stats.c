/*
 * stats.c - counters of a registry, and the events that it sends
 */
#include "conformance.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>

#include "sqlock/async.h"
#include "sqlock/event.h"
#include "sqlock/many.h"
#include "sqlock/stats.h"

static sqlock_stats stats_of(struct fixture *f, sqlock_registry *registry)
{
    sqlock_stats stats = SQLOCK_STATS_INIT;

    assert_ok(sqlock_registry_stats(registry, &stats, &f->err));
    assert_true(stats.attempts == stats.granted + stats.nested + stats.busy +
                                      stats.timed_out + stats.cancelled +
                                      stats.uncertain + stats.failed);
    assert_true(stats.wait.count == stats.granted);
    return stats;
}

TEST(test_each_end_of_an_acquisition_counts)
{
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
    assert_fails(SQLOCK_EBUSY, lock_try(lock, 0, 0, &f->err));
    assert_fails(SQLOCK_ETIMEDOUT, lock_try(lock, 20, 0, &f->err));
    assert_fails(SQLOCK_EINVAL, lock_try(lock, 0, 1, &f->err));
    stats = stats_of(f, registry);
    assert_int_equal(stats.busy, 1);
    assert_int_equal(stats.timed_out, 1);
    assert_int_equal(stats.attempts, 4); /* one was refused before it began */
    lock_give(other);
    lock_drop(other);
    lock_drop(lock);
    registry_end(registry);
}

/* Of a server that may have forgotten leases also that. */
TEST(test_opening_asks_one_question)
{
    sqlock_registry *registry = fixture_registry(f, NULL);
    char epoch[SQLOCK_EPOCH_SIZE] = "";
    bool may_forget;

    (void)sqlock_registry_epoch(registry, epoch);
    may_forget = f->layout == SQLOCK_LAYOUT_SQLOCK &&
                 f->database->bit != ON_SQLITE && epoch[0] != '\0';

    assert_int_equal(stats_of(f, registry).statement.count, may_forget ? 2 : 1);
    registry_end(registry);
}

TEST(test_a_thread_alone_needs_one_connection)
{
    sqlock_registry *registry = fixture_registry(f, NULL);
    sqlock_lock *lock = lock_obtain(registry, f->name);

    lock_take(lock, 0);
    lock_give(lock);
    assert_int_equal(stats_of(f, registry).connections_opened, 1);
    lock_drop(lock);
    registry_end(registry);
}

TEST(test_many_count_each)
{
    sqlock_registry *registry = fixture_registry(f, NULL);
    sqlock_lock *locks[3];
    sqlock_stats stats;

    for (size_t i = 0; i < 3; i++) {
        fixture_next(f);
        locks[i] = lock_obtain(registry, f->name);
    }
    assert_ok(sqlock_acquire_many(locks, 3, 0, NULL, NULL, &f->err));
    assert_ok(sqlock_renew_many(locks, 3, NULL, &f->err));
    assert_ok(sqlock_release_many(locks, 3, NULL, &f->err));
    stats = stats_of(f, registry);
    assert_int_equal(stats.granted, 3);
    assert_int_equal(stats.renewed, 3);
    assert_int_equal(stats.released, 3);
    for (size_t i = 0; i < 3; i++)
        lock_drop(locks[i]);
    registry_end(registry);
}

struct events {
    unsigned times;
    sqlock_event last;
};

/* The events about the lock `lock`, by kind. */
static struct {
    pthread_mutex_t mutex;
    const char *lock;
    struct events of[SQLOCK_EVENT_ITEM_MISSING + 1];
} told = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void note(void *context, const sqlock_event *event)
{
    (void)context;
    pthread_mutex_lock(&told.mutex);
    if (event->lock != NULL && strcmp(event->lock, told.lock) == 0) {
        assert_true(check_one_line(event->text));
        told.of[event->kind].times++;
        told.of[event->kind].last = *event;
    }
    pthread_mutex_unlock(&told.mutex);
}

static struct events events_of(sqlock_event_kind kind)
{
    struct events events;

    pthread_mutex_lock(&told.mutex);
    events = told.of[kind];
    pthread_mutex_unlock(&told.mutex);
    return events;
}

static sqlock_registry *listening(struct fixture *f, sqlock_level level)
{
    sqlock_options options = fixture_options(f);

    memset(told.of, 0, sizeof told.of);
    told.lock = f->name;
    options.on_event = note;
    options.event_level = level;
    options.ownership = SQLOCK_OWNED_BY_HANDLE;
    return fixture_registry(f, &options);
}

TEST(test_grants_and_releases_are_events_of_debugging)
{
    sqlock_registry *registry = listening(f, SQLOCK_LEVEL_DEBUG);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    struct events acquired;
    int64_t token;

    lock_take(lock, 0);
    token = sqlock_token(lock);
    acquired = events_of(SQLOCK_EVENT_ACQUIRED);
    assert_int_equal(acquired.times, 1);
    assert_true(acquired.last.token == token);
    assert_string_equal(acquired.last.name, "acquired");
    assert_int_equal(acquired.last.level, SQLOCK_LEVEL_DEBUG);
    lock_give(lock);
    assert_int_equal(events_of(SQLOCK_EVENT_RELEASED).times, 1);
    assert_int_equal(events_of(SQLOCK_EVENT_RELEASED).last.code, 0);
    lock_drop(lock);
    registry_end(registry);
}

TEST_ON(test_a_lost_lease_is_told_and_counted_once, ON_ALL, HAS_EXPIRY)
{
    sqlock_registry *registry = listening(f, SQLOCK_LEVEL_INFO);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    sqlock_stats stats;

    lock_take(lock, 0);
    fixture_expire(f, f->name);
    lock_take(other, 0);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    assert_int_equal(events_of(SQLOCK_EVENT_ACQUIRED).times, 0);
    assert_int_equal(events_of(SQLOCK_EVENT_LOST).times, 1);
    assert_int_equal(events_of(SQLOCK_EVENT_LOST).last.code, SQLOCK_ELOST);
    assert_int_equal(events_of(SQLOCK_EVENT_LOST).last.level,
                     SQLOCK_LEVEL_WARNING);
    stats = stats_of(f, registry);
    assert_int_equal(stats.lost, 1);
    assert_int_equal(stats.expired, 0);
    lock_give(other);
    lock_drop(other);
    lock_drop(lock);
    registry_end(registry);
}

TEST(test_a_watched_lease_that_ends_is_told)
{
    sqlock_registry *registry = listening(f, SQLOCK_LEVEL_WARNING);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    int fd = -1;

    assert_int_equal(sqlock_lost_fd(&fd, lock, &f->err), 0);
    lock_take(lock, 100);
    assert_becomes_true(stats_of(f, registry).expired == 1, PATIENCE_MS);
    assert_becomes_true(events_of(SQLOCK_EVENT_LOST).times == 1, PATIENCE_MS);
    assert_int_equal(events_of(SQLOCK_EVENT_LOST).last.code, SQLOCK_EEXPIRED);
    assert_true(events_of(SQLOCK_EVENT_LOST).last.token == sqlock_token(lock));
    assert_true(sqlock_release(lock, &f->err) < 0);
    assert_int_equal(stats_of(f, registry).expired, 1);
    assert_int_equal(events_of(SQLOCK_EVENT_LOST).times, 1);
    lock_drop(lock);
    registry_end(registry);
}

static void assert_readable(int fd)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};

    assert_int_equal(poll(&wanted, 1, PATIENCE_MS), 1);
}

/* A descriptor that is asked for after the loss tells of it, too. */
TEST(test_a_loss_is_one_event_when_it_is_watched_again)
{
    sqlock_registry *registry = listening(f, SQLOCK_LEVEL_WARNING);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    eventfd_t count;
    int fd = -1;

    assert_int_equal(sqlock_lost_fd(&fd, lock, &f->err), 0);
    lock_take(lock, 100);
    assert_becomes_true(events_of(SQLOCK_EVENT_LOST).times == 1, PATIENCE_MS);
    assert_readable(fd);
    assert_int_equal(eventfd_read(fd, &count), 0);
    assert_int_equal(sqlock_lost_fd(&fd, lock, &f->err), 0);
    assert_readable(fd);
    /* waits until all is told */
    assert_true(sqlock_release(lock, &f->err) < 0);
    assert_int_equal(events_of(SQLOCK_EVENT_LOST).times, 1);
    lock_drop(lock);
    registry_end(registry);
}

/* Nobody watches the lease, which another owner of the process gets. */
TEST(test_a_lease_that_was_set_aside_is_told_by_its_release)
{
    sqlock_registry *registry = listening(f, SQLOCK_LEVEL_WARNING);
    sqlock_lock *first = lock_obtain(registry, f->name);
    sqlock_lock *second = lock_obtain(registry, f->name);

    lock_take(first, 100);
    assert_ok(sqlock_acquire(second, PATIENCE_MS, NULL, &f->err));
    lock_give(second);
    assert_int_equal(events_of(SQLOCK_EVENT_LOST).times, 0);
    assert_fails(SQLOCK_ELOST, sqlock_release(first, &f->err));
    assert_int_equal(events_of(SQLOCK_EVENT_LOST).times, 1);
    assert_int_equal(events_of(SQLOCK_EVENT_LOST).last.code, SQLOCK_ELOST);
    assert_int_equal(stats_of(f, registry).expired, 1);
    lock_drop(first);
    lock_drop(second);
    registry_end(registry);
}

TEST(test_a_struct_of_another_size_is_refused)
{
    sqlock_stats stats = {0};
    size_t first = offsetof(sqlock_stats, granted);

    assert_fails(SQLOCK_EINVAL, sqlock_registry_stats(f->a, &stats, &f->err));
    stats.size = sizeof stats + 1;
    assert_fails(SQLOCK_EINVAL, sqlock_registry_stats(f->a, &stats, &f->err));
    assert_fails(SQLOCK_EINVAL, sqlock_registry_stats(f->a, NULL, &f->err));
    assert_fails(SQLOCK_EINVAL, sqlock_registry_stats(NULL, &stats, &f->err));
    /* The size of an older header's struct: later members are not written. */
    stats.size = first;
    stats.granted = 7777777;
    assert_ok(sqlock_registry_stats(f->a, &stats, &f->err));
    assert_int_equal(stats.size, first);
    assert_int_equal(stats.granted, 7777777);
}
