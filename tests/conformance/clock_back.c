/*
 * clock_back.c - the database's clock is set back while a lease is held (F15):
 * the lease lasts longer, and each statement about it works
 *
 * Seen from a clock that was set back by an hour, the times of a row lie an
 * hour in the future: so the tests move the row, and no clock.
 */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

#include "sqlock/many.h"
#include "support/tap.h"

#define HOUR_US INT64_C(3600000000)

/* Move the times of a row by an hour, into the future. */
static void set_back(struct fixture *f, const char *key)
{
    static const char *const an_hour[] = {"+ interval '1 hour'",
                                          "+ INTERVAL 1 HOUR", "+ 3600000000"};
    const char *later = an_hour[f->database - databases];
    char end[80] = "";

    if (f->layout != SQLOCK_LAYOUT_SPRING6)
        (void)snprintf(end, sizeof end, ", EXPIRED_AFTER = EXPIRED_AFTER %s",
                       later);
    assert_int_equal(sql_run(&f->sql,
                             "UPDATE %s SET CREATED_DATE = CREATED_DATE %s%s "
                             "WHERE LOCK_KEY = '%s'",
                             f->table, later, end, key),
                     1);
}

/* Assert that the lease ends within its TTL by the present clock, so that a
 * holder that dies does not keep the lock for the hour. */
static void expect_end(struct fixture *f, sqlock_lock *lock)
{
    struct row row = fixture_row(f, sqlock_name(lock));

    assert_string_equal(row.key, sqlock_key(lock));
    assert_true(row.expires_us > sql_now_us(&f->sql));
    assert_true(row.expires_us <=
                sql_now_us(&f->sql) + LONG_TTL_MS * INT64_C(1000) + 1000000);
}

static void check_usual(struct fixture *f, sqlock_lock *lock)
{
    sqlock_lock *other = lock_obtain(f->b, sqlock_name(lock));

    assert_true(sqlock_is_held(lock));
    assert_busy(other);
    lock_give(lock);
    lock_take_and_give(other);
    lock_drop(other);
}

static void test_F15_a_lease_is_renewed_after_the_clock_went_back(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    int64_t token;

    lock_take(lock, 0);
    token = sqlock_token(lock);
    set_back(f, sqlock_key(lock));
    lock_renew(lock, 0);
    expect_end(f, lock);
    assert_true(sqlock_token(lock) == token);
    lock_renew(lock, 0);
    check_usual(f, lock);
    lock_drop(lock);
}

/* One lease was acquired before the clock went back, the other after that. */
static void test_F15_many_are_renewed_after_the_clock_went_back(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *locks[2];
    char name[80];
    int results[2];

    locks[0] = lock_obtain(f->a, f->name);
    (void)snprintf(name, sizeof name, "%s-new", f->name);
    locks[1] = lock_obtain(f->a, name);
    lock_take(locks[0], 0);
    set_back(f, sqlock_key(locks[0]));
    lock_take(locks[1], 0);
    for (size_t i = 0; i < 2; i++)
        assert_ok(sqlock_renew_many(locks, 2, results, &f->err));
    for (size_t i = 0; i < 2; i++) {
        expect_end(f, locks[i]);
        check_usual(f, locks[i]);
        lock_drop(locks[i]);
    }
}

/* The release, the hand-off, the break and the guard of such a lease. */
static void
test_F15_a_lease_is_given_away_after_the_clock_went_back(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);

    for (int i = 0; i < 2; i++) {
        lock_take(lock, 0);
        set_back(f, sqlock_key(lock));
        if (i == 1)
            lock_renew(lock, 0);
        check_usual(f, lock);
        lock_take(lock, 0);
        set_back(f, sqlock_key(lock));
        lock_break(f, lock, true);
        assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    }
    lock_drop(lock);
}

/* --- a claim whose answer is lost, and the clock goes back before it is
 * repeated --- */

struct between {
    struct fixture *f;
    sqlock_lock *const *locks;
    size_t count;
    bool was_lost;
};

/* Lose the answer to the first statement that writes, and move the rows. */
static int lose_first(void *context, const struct tap_event *event, int rc)
{
    struct between *between = context;

    if (event->call != TAP_EXECUTE || rc < 0 || between->was_lost ||
        strstr(event->text, "INSERT") == NULL)
        return rc;
    between->was_lost = true;
    for (size_t i = 0; i < between->count; i++)
        set_back(between->f, sqlock_key(between->locks[i]));
    return SQLOCK_EUNCERTAIN;
}

static void check_repetition(struct fixture *f, size_t count)
{
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_lock *locks[2];
    struct between between = {.f = f, .locks = locks, .count = count};
    char name[80];

    for (size_t i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "%s-%zu", f->name, i);
        locks[i] = lock_obtain(registry, name);
    }
    tap_hooks(NULL, lose_first, &between);
    assert_ok(sqlock_acquire_many(locks, count, 0, NULL, NULL, &f->err));
    tap_hooks(NULL, NULL, NULL);
    assert_true(between.was_lost);
    for (size_t i = 0; i < count; i++) {
        expect_end(f, locks[i]);
        check_usual(f, locks[i]);
        lock_drop(locks[i]);
    }
    registry_end(registry);
}

static void test_F15_a_claim_is_repeated_after_the_clock_went_back(void **state)
{
    check_repetition(*state, 1);
    fixture_next(*state);
    check_repetition(*state, 2);
}

static const struct test tests[] = {
    TEST(test_F15_a_lease_is_renewed_after_the_clock_went_back),
    TEST(test_F15_many_are_renewed_after_the_clock_went_back),
    TEST(test_F15_a_lease_is_given_away_after_the_clock_went_back),
    TEST(test_F15_a_claim_is_repeated_after_the_clock_went_back),
};
const struct topic topic_clock_back = TOPIC(tests);
