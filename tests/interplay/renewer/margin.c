/*
 * margin.c - a lease's deadline is at least the margin before the row's end:
 * after each way to get or renew a lease, however late the answer comes, while
 * renewals pass the row over, and when a renewal changes nothing
 */
#include "renewer.h"

#include <stdio.h>

#include "base/clock.h"
#include "locks/registry.h"
#include "sqlock/lease.h"
#include "sqlock/many.h"
#include "support/tap.h"

#define MARGIN_MS (400 * SLOWNESS)
#define ANSWER_MS (100 * SLOWNESS) /* delay of each answer */
#define MANY 3

/* A reading of the database's clock that takes longer is too inexact: it is
 * repeated. */
#define READING_MAX_NS (20 * LK_NS_PER_MS * SLOWNESS)

/* SQLite's clock may tell milliseconds only. */
#define TICK_NS (2 * LK_NS_PER_MS)

/* Return the latest time, CLOCK_BOOTTIME, at which the row may end. */
static int64_t row_ends_by(struct fixture *f, const char *name)
{
    int64_t ends_us = fixture_row(f, name).expires_us;
    int64_t began;
    int64_t now_us;
    int64_t ended;

    do {
        began = lk_boottime_ns();
        now_us = sql_now_us(&f->sql);
        ended = lk_boottime_ns();
    } while (ended - began > READING_MAX_NS);
    return ended + (ends_us - now_us) * LK_NS_PER_US + TICK_NS;
}

/* Assert that the lock's deadline is at least margin_ms before the row's end.
 * The row is read last: a renewal in between can only make its end later. */
#define expect_margin(f, lock, name, margin_ms)                                \
    do {                                                                       \
        int64_t deadline_ns_ = lock_deadline(lock);                            \
                                                                               \
        assert_less(deadline_ns_ + (margin_ms)*LK_NS_PER_MS,                   \
                    row_ends_by((f), (name)));                                 \
    } while (0)

/* Delay every answer, so that a deadline which is not counted from before its
 * statement was sent is too late. */
static int answer_late(void *context, const struct tap_event *event, int rc)
{
    int64_t until = check_deadline_ns(ANSWER_MS);

    (void)context;
    while (event->call == TAP_EXECUTE && check_pause(until))
        ;
    return rc;
}

static sqlock_registry *late_registry(struct fixture *f)
{
    sqlock_options options = renewer_options(f);
    sqlock_registry *registry;

    options.margin_ms = MARGIN_MS;
    registry = fixture_tapped(f, &options);
    tap_hooks(NULL, answer_late, NULL);
    return registry;
}

static void test_one_lease_keeps_its_margin(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = late_registry(f);
    sqlock_lock *lock = lock_obtain(registry, f->name);

    lock_take(lock, RENEWED_MS);
    expect_margin(f, lock, f->name, MARGIN_MS);
    assert_ok(sqlock_renew(lock, 0, &f->err));
    expect_margin(f, lock, f->name, MARGIN_MS);
    assert_ok(sqlock_renew(lock, 2 * RENEWED_MS, &f->err));
    expect_margin(f, lock, f->name, MARGIN_MS);
    lock_end(lock);
    registry_end(registry);
}

static void test_a_renewed_lease_keeps_its_margin(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = late_registry(f);
    sqlock_lock *lock = lock_obtain(registry, f->name);

    take_renewed(lock, RENEWED_MS, NULL);
    for (int i = 0; i < 3; i++) {
        await_renewals(lock, 1);
        expect_margin(f, lock, f->name, MARGIN_MS);
    }
    lock_end(lock);
    registry_end(registry);
}

static void test_many_leases_keep_their_margin(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = late_registry(f);
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *locks[MANY];
    char name[96];

    options.ttl_ms = RENEWED_MS;
    for (size_t i = 0; i < MANY; i++)
        locks[i] = nth_lock(f, registry, i);
    assert_ok(sqlock_acquire_many(locks, MANY, 0, &options, NULL, &f->err));
    for (size_t i = 0; i < MANY; i++)
        expect_margin(f, locks[i], nth_name(f, name, i), MARGIN_MS);
    assert_ok(sqlock_renew_many(locks, MANY, NULL, &f->err));
    for (size_t i = 0; i < MANY; i++)
        expect_margin(f, locks[i], nth_name(f, name, i), MARGIN_MS);
    assert_ok(sqlock_release_many(locks, MANY, NULL, &f->err));
    registry_end(registry);
}

/* ------------------------------------------------ rows that are passed over */

/* Another session has the row locked until the lease is lost.  Renewals are
 * tried all the time, and none makes the deadline later. */
static void test_a_lease_that_is_passed_over_keeps_its_margin(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct told told = {0};
    struct sql sql;
    int64_t last;

    take_renewed(lock, RENEWED_MS, &told); /* the margin is a twentieth */
    fixture_lock_row(f, &sql, lock);
    /* A renewal that was carried out before may not have been answered yet. */
    assert_becomes_true(is_alone(lock), PATIENCE_MS);
    last = lock_deadline(lock);
    while (atomic_load(&told.times) == 0) {
        int64_t deadline = lock_deadline(lock);

        assert_true(deadline <= last);
        last = deadline;
        expect_margin(f, lock, f->name, RENEWED_MS / 20);
    }
    fixture_unlock_row(&sql);
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

/* Another session has one of the rows locked: for its lock, renewing many and
 * renewing one both return EBUSY, and the deadline stays. */
static void test_a_renewal_that_was_passed_over_is_told(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *locks[MANY];
    int results[MANY];
    int64_t before[MANY];
    struct sql sql;
    int rc;

    for (size_t i = 0; i < MANY; i++) {
        locks[i] = nth_lock(f, f->a, i);
        lock_take(locks[i], LONG_TTL_MS);
    }
    fixture_lock_row(f, &sql, locks[1]);
    for (size_t i = 0; i < MANY; i++)
        before[i] = lock_deadline(locks[i]);
    rc = sqlock_renew_many(locks, MANY, results, &f->err);
    assert_code(SQLOCK_EBUSY, rc, &f->err);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(results[i], i == 1 ? SQLOCK_EBUSY : 0);
        assert_true(lock_deadline(locks[i]) == before[i] ||
                    (i != 1 && lock_deadline(locks[i]) > before[i]));
    }
    assert_fails(SQLOCK_EBUSY, sqlock_renew(locks[1], 0, &f->err));
    assert_true(lock_deadline(locks[1]) == before[1]);
    fixture_unlock_row(&sql);
    assert_ok(sqlock_renew_many(locks, MANY, results, &f->err));
    assert_less(before[1], lock_deadline(locks[1]));
    for (size_t i = 0; i < MANY; i++)
        lock_end(locks[i]);
}

/* ------------------------------------------ renewals that changed nothing */

/* Context of hooks that let a renewal change nothing: before the renewal is
 * sent, the row gets another CLIENT_ID; before the row is read afterwards, it
 * gets back its own.  (On MySQL a row that already has the new end counts as
 * unchanged, too.) */
struct unchanged {
    struct fixture *f;
    const char *renewal; /* text of the statement */
    const char *reading; /* text of the statement */
    const char *key;
    /* the row's own CLIENT_ID */
    char client[SQLOCK_KEY_SIZE];
    int64_t row_ms;   /* time that the row has left when it is read */
    bool is_lost;     /* the answer to a renewal before that one is lost */
    unsigned changes; /* number of changes of the row by the hooks */
};

static void change_row(struct unchanged *unchanged, const char *client)
{
    char ends[160];

    (void)sql_run(&unchanged->f->sql,
                  "UPDATE %s SET CLIENT_ID = '%s', EXPIRED_AFTER = %s "
                  "WHERE LOCK_KEY = '%s'",
                  unchanged->f->table, client,
                  fixture_time(unchanged->f, ends, unchanged->row_ms * 1000),
                  unchanged->key);
    unchanged->changes++;
}

static int take_row_away(void *context, const struct tap_event *event)
{
    struct unchanged *unchanged = context;

    if (event->text == unchanged->renewal && !unchanged->is_lost)
        change_row(unchanged, "nobody");
    else if (event->text == unchanged->reading)
        change_row(unchanged, unchanged->client);
    return 0;
}

static int lose_once(void *context, const struct tap_event *event, int rc)
{
    struct unchanged *unchanged = context;

    if (event->text != unchanged->renewal || !unchanged->is_lost)
        return rc;
    unchanged->is_lost = false;
    return SQLOCK_EUNCERTAIN;
}

/* Renew a lease by its id under these hooks, and return the remaining time that
 * sqlock_lease_renew() reports, in ms. */
static int64_t renew_unchanged(struct fixture *f, uint32_t ttl_ms,
                               int64_t row_ms, bool is_lost)
{
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    struct unchanged unchanged = {
        .f = f,
        .renewal = census_text(registry, SQLOCK_SQL_RENEW),
        .reading = census_text(registry, SQLOCK_SQL_READ),
        .key = sqlock_key(lock),
        .row_ms = row_ms,
        .is_lost = is_lost,
    };
    char id[SQLOCK_LEASE_ID_SIZE];
    int64_t remaining_ms = 0;

    lock_take(lock, LONG_TTL_MS);
    (void)snprintf(unchanged.client, sizeof unchanged.client, "%s",
                   fixture_row(f, f->name).client);
    assert_ok(sqlock_lease_id(id, lock, LONG_TTL_MS, &f->err));
    tap_hooks(take_row_away, lose_once, &unchanged);
    assert_ok(sqlock_lease_renew(registry, id, ttl_ms, &remaining_ms, &f->err));
    tap_hooks(NULL, NULL, NULL);
    assert_int_equal(unchanged.changes, 2);
    lock_end(lock);
    registry_end(registry);
    return remaining_ms;
}

static void test_an_unchanged_lease_lasts_as_long_as_its_row(void **state)
{
    struct fixture *f = *state;
    int64_t told_ms = renew_unchanged(f, LONG_TTL_MS, LONG_TTL_MS / 2, false);

    assert_true(told_ms <= LONG_TTL_MS / 2 - LONG_TTL_MS / 20);
    assert_less(0, told_ms);
}

/* The answer to a first renewal is lost.  That renewal may still arrive and
 * shorten the row, so its TTL limits the lease. */
static void test_an_unanswered_renewal_limits_an_unchanged_lease(void **state)
{
    struct fixture *f = *state;
    int64_t told_ms = renew_unchanged(f, LONG_TTL_MS / 2, LONG_TTL_MS, true);

    assert_true(told_ms <= LONG_TTL_MS / 2 - LONG_TTL_MS / 40);
    assert_less(0, told_ms);
}

/* ---------------------------------------- leases no longer than the margin */

static void test_a_lease_within_the_margin_is_refused(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;
    sqlock_registry *registry;
    sqlock_lock *lock;
    int64_t deadline;
    int rc;

    options.margin_ms = 400;
    registry = fixture_registry(f, &options);
    lock = lock_obtain(registry, f->name);
    how.ttl_ms = 400;
    assert_fails(SQLOCK_EINVAL, sqlock_acquire(lock, 0, &how, &f->err));
    assert_contains(f->err.message, "margin_ms");
    rc = sqlock_acquire_many(&lock, 1, 0, &how, NULL, &f->err);
    assert_code(SQLOCK_EINVAL, rc, &f->err);
    assert_false(fixture_row(f, f->name).exists);
    lock_take(lock, RENEWED_MS);
    deadline = lock_deadline(lock);
    assert_fails(SQLOCK_EINVAL, sqlock_renew(lock, 399, &f->err));
    assert_true(lock_deadline(lock) == deadline);
    lock_give(lock);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST_ON(test_one_lease_keeps_its_margin, ON_ALL, IN_ALL),
    TEST_ON(test_a_renewed_lease_keeps_its_margin, ON_ALL, IN_ALL),
    TEST_ON(test_many_leases_keep_their_margin, ON_ALL, IN_ALL),
    TEST_ON(test_a_lease_that_is_passed_over_keeps_its_margin, ON_SERVERS,
            IN_ALL),
    TEST_ON(test_a_renewal_that_was_passed_over_is_told, ON_SERVERS, IN_ALL),
    TEST_ON(test_an_unchanged_lease_lasts_as_long_as_its_row, ON_SERVERS,
            IN_SQLOCK),
    TEST_ON(test_an_unanswered_renewal_limits_an_unchanged_lease, ON_SERVERS,
            IN_SQLOCK),
    TEST(test_a_lease_within_the_margin_is_refused),
};
const struct topic topic_margin = TOPIC(tests);
