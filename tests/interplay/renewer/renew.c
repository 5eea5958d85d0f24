/*
 * renew.c - a lease is renewed only if that was asked for, and as long as it
 * was; one statement renews many leases
 */
#include "renewer.h"

#include <string.h>

#include "base/clock.h"
#include "support/tap.h"

static void test_a_lease_is_not_renewed_unless_asked_for(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *tapped = renewer_tapped(f);
    sqlock_lock *lock = lock_obtain(tapped, f->name);
    size_t threads = check_entries("/proc/self/task");
    int64_t deadline;
    struct row row;

    lock_take(lock, TTL_MS);
    assert_int_equal(tap_count(TAP_EXECUTE), 1);
    deadline = lock_deadline(lock);
    row = fixture_row(f, f->name);
    assert_int_equal(check_entries("/proc/self/task"), threads);
    fixture_await_expiry(f, f->name);
    assert_true(fixture_row(f, f->name).expires_us == row.expires_us);
    assert_true(lock_deadline(lock) == deadline);
    assert_int_equal(tap_count(TAP_EXECUTE), 1);
    assert_false(sqlock_is_held(lock));
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(lock, &f->err));
    lock_drop(lock);
    registry_end(tapped);
}

#define SOME 40

static void test_one_statement_renews_all(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *tapped = renewer_tapped(f);
    sqlock_lock *locks[SOME];
    struct census census = {0};
    size_t i;

    for (i = 0; i < SOME; i++) {
        locks[i] = nth_lock(f, tapped, i);
        take_renewed(locks[i], RENEWED_MS, NULL);
    }
    /* From now on all go together: the leases taken last were renewed early,
     * with the first. */
    await_renewals(locks[SOME - 1], 2);
    census_begin(&census, tapped);
    for (i = 0; i < SOME; i++)
        await_renewals(locks[i], i == 0 ? 5 : 0);
    assert_becomes_true(atomic_load(&census.renewals) >= 5, PATIENCE_MS);
    assert_int_equal(atomic_load(&census.least), SOME);
    for (i = 0; i < SOME; i++)
        assert_true(sqlock_is_held(locks[i]));
    /* Only renewals were sent.  The tap counts each before the census does, so
     * one may be counted by the tap alone. */
    assert_true(tap_count(TAP_EXECUTE) <= atomic_load(&census.renewals) + 1);
    for (i = 0; i < SOME; i++)
        lock_end(locks[i]);
    registry_end(tapped);
}

/* TTL of the brief lease, which is renewed at every quarter of that. */
#define BRIEF_MS (2000 * SLOWNESS)

static void test_each_lease_is_renewed_by_its_own_ttl(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *tapped = fixture_tapped(f, NULL);
    sqlock_lock *brief = nth_lock(f, tapped, 0);
    sqlock_lock *lasting = nth_lock(f, tapped, 1);
    struct census census = {.key = sqlock_key(lasting)};
    char name[96];
    int64_t ends;

    take_renewed(brief, BRIEF_MS, NULL);
    take_renewed(lasting, 5 * BRIEF_MS, NULL);
    ends = fixture_row(f, nth_name(f, name, 1)).expires_us;
    census_begin(&census, tapped);
    await_renewals(lasting, 2);
    assert_true(atomic_load(&census.renewals) >
                2 * atomic_load(&census.with_key));
    assert_true(sqlock_is_held(brief));
    assert_true(fixture_row(f, name).expires_us > ends);
    /* The row of the brief lease was renewed for the brief TTL. */
    nth_name(f, name, 0);
    assert_true(fixture_row(f, name).expires_us <
                sql_now_us(&f->sql) + BRIEF_MS * 1000);
    lock_give(brief);
    lock_give(lasting);
    lock_drop(brief);
    lock_drop(lasting);
    registry_end(tapped);
}

#define HOUR_MS (60 * 60 * 1000)

/* After it has renewed a lease of an hour, the renewer pauses for long.  A
 * brief lease does not wait for the end of that pause, whether it was acquired
 * after the renewal or was held already but not due. */
static void test_a_brief_lease_is_renewed_beside_one_of_an_hour(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_registry(f, NULL);
    sqlock_lock *brief = nth_lock(f, registry, 0);
    sqlock_lock *lasting = nth_lock(f, registry, 1);
    struct told told = {0};

    take_renewed(lasting, HOUR_MS, NULL);
    renew_now(lasting);
    take_renewed(brief, RENEWED_MS, &told);
    await_renewals(brief, 2);
    renew_now(lasting);
    await_renewals(brief, 2);
    assert_int_equal(atomic_load(&told.times), 0);
    lock_give(brief);
    lock_give(lasting);
    lock_drop(brief);
    lock_drop(lasting);
    registry_end(registry);
}

/* The application renews the lease for a shorter time: the renewer does not
 * wait until the longer lease would have been due. */
static void test_a_renewed_lease_gets_a_shorter_time(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_registry(f, NULL);
    sqlock_lock *lock = lock_obtain(registry, f->name);

    take_renewed(lock, HOUR_MS, NULL);
    renew_now(lock);
    assert_ok(sqlock_renew(lock, RENEWED_MS, &f->err));
    await_renewals(lock, 2);
    lock_end(lock);
    registry_end(registry);
}

static void test_F4_nothing_is_renewed_after_its_release(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *tapped = renewer_tapped(f);
    sqlock_lock *given = nth_lock(f, tapped, 0);
    sqlock_lock *renewed = nth_lock(f, tapped, 1);
    struct census census = {.key = sqlock_key(given)};

    take_renewed(given, RENEWED_MS, NULL);
    take_renewed(renewed, RENEWED_MS, NULL);
    census_begin(&census, tapped);
    await_renewals(given, 2);
    assert_true(atomic_load(&census.with_key) >= 2);
    lock_give(given);
    census_begin(&census, tapped);
    await_renewals(renewed, 6);
    /* A renewal may have been gathered before the release and sent after it. */
    assert_true(atomic_load(&census.with_key) <= 1);
    assert_int_equal(sqlock_remaining_ms(given), 0);
    lock_give(renewed);
    lock_drop(given);
    lock_drop(renewed);
    registry_end(tapped);
}

static void test_a_maximum_hold_time_ends_renewals(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *tapped = renewer_tapped(f);
    sqlock_lock *lock = lock_obtain(tapped, f->name);
    struct told told = {0};
    sqlock_acquire_options options = renewed_options(RENEWED_MS, &told);
    struct spy spy;
    struct row first;
    struct row last;

    options.max_hold_ms = 2 * TTL_MS;
    assert_ok(sqlock_acquire(lock, 0, &options, &f->err));
    first = fixture_row(f, f->name);
    /* A renewal that was gathered just before that time may be sent after. */
    check_sleep(2 * TTL_MS + TTL_MS / 4);
    assert_becomes_true(is_alone(lock), PATIENCE_MS);
    last = fixture_row(f, f->name);
    assert_less(first.expires_us, last.expires_us);
    /* Once max_hold_ms is over, no renewal is sent. */
    spy_begin(&spy, tapped, SQLOCK_SQL_RENEW_MANY);
    await_told(&told, SQLOCK_EEXPIRED);
    assert_int_equal(atomic_load(&spy.times), 0);
    assert_false(sqlock_is_held(lock));
    fixture_await_expiry(f, f->name);
    assert_true(fixture_row(f, f->name).expires_us == last.expires_us);
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(lock, &f->err));
    assert_int_equal(atomic_load(&told.times), 1);
    lock_drop(lock);
    registry_end(tapped);
}

static void test_the_period_can_be_chosen(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = renewer_options(f);
    sqlock_registry *registry;
    sqlock_lock *lock;
    int64_t first;
    int rc;

    options.ttl_ms = RENEWED_MS;
    options.renew_period_ms = RENEWED_MS / 3 + 1;
    rc = sqlock_registry_open(&registry, f->url, &options, &f->err);
    assert_code(SQLOCK_EINVAL, rc, &f->err);
    assert_null(registry);
    options.renew_period_ms = RENEWED_MS / 10;
    registry = fixture_registry(f, &options);
    lock = lock_obtain(registry, f->name);
    take_renewed(lock, 2 * RENEWED_MS, NULL);
    first = lock_deadline(lock);
    await_renewals(lock, 10);
    assert_less(lk_boottime_ns(), first);
    lock_end(lock);
    registry_end(registry);
    /* A period longer than a third of the lease: the default holds instead. */
    options.ttl_ms = 4 * RENEWED_MS;
    options.renew_period_ms = options.ttl_ms / 3;
    registry = fixture_registry(f, &options);
    lock = lock_obtain(registry, f->name);
    take_renewed(lock, options.ttl_ms / 5 * 4, NULL);
    await_renewals(lock, 1);
    lock_end(lock);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST_ON(test_a_lease_is_not_renewed_unless_asked_for, ON_ALL, IN_ALL),
    TEST(test_one_statement_renews_all),
    TEST(test_each_lease_is_renewed_by_its_own_ttl),
    TEST(test_a_brief_lease_is_renewed_beside_one_of_an_hour),
    TEST(test_a_renewed_lease_gets_a_shorter_time),
    TEST(test_F4_nothing_is_renewed_after_its_release),
    TEST(test_a_maximum_hold_time_ends_renewals),
    TEST(test_the_period_can_be_chosen),
};
const struct topic topic_renew = TOPIC(tests);
