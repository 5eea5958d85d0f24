/*
 * lease.c - how long a lease lasts, which clock decides, and renewals
 */
#include "conformance.h"

#include <string.h>

#include "support/workers.h"

/* Short enough to wait for, long enough for a busy machine to do something
 * within it. */
#define SHORT_MS 300

static void test_lease_in_the_table_is_as_long_as_asked(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    int64_t before = sql_now_us(&f->sql);
    struct row row;
    int64_t after;

    lock_take(lock, 7000);
    after = sql_now_us(&f->sql);
    row = fixture_row(f, f->name);
    assert_true(row.exists);
    /* SQLite's clock has milliseconds on some versions */
    assert_true(row.expires_us >= before - 1000 + 7000000);
    assert_true(row.expires_us <= after + 1000 + 7000000);
    lock_give(lock);
    lock_drop(lock);
}

static void test_holder_believes_no_longer_than_the_database(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    int64_t now;
    struct row row;
    int i;

    lock_take(lock, 5000);
    for (i = 0; i < 5; i++) {
        row = fixture_row(f, f->name);
        now = sql_now_us(&f->sql);
        /* the remaining time is asked for after `now`, so it is less */
        assert_true(sqlock_remaining_ms(lock) * 1000 <= row.expires_us - now);
    }
    lock_give(lock);
    assert_int_equal(sqlock_remaining_ms(lock), 0);
    lock_drop(lock);
}

static void test_belief_ends_without_asking_and_before_the_lease(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    sqlock_lock *lock;
    struct row row;

    options.margin_ms = 400; /* of a TTL of 500 ms */
    registry = fixture_registry(f, &options);
    lock = lock_obtain(registry, f->name);
    lock_take(lock, LONG_TTL_MS);
    assert_true(sqlock_remaining_ms(lock) <= LONG_TTL_MS - 400);
    lock_give(lock);
    lock_take(lock, 500);
    assert_becomes_true(!sqlock_is_held(lock), PATIENCE_MS);
    assert_int_equal(sqlock_remaining_ms(lock), 0);
    assert_int_equal(sqlock_hold_count(lock), 1);
    row = fixture_row(f, f->name);
    assert_string_not_equal(row.client, "");
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(lock, &f->err));
    registry_end(registry);
}

/* Another registry waits for a lease to end.  It is granted the lock only when
 * the database's clock is past the end, not at the end itself. */
static void test_takeover_is_never_before_the_ttl(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *first = lock_obtain(f->a, f->name);
    sqlock_lock *second = lock_obtain(f->b, f->name);
    struct row row;

    lock_take(first, SHORT_MS);
    row = fixture_row(f, f->name);
    assert_ok(lock_try(second, PATIENCE_MS, 0, &f->err));
    /* the token is the database's clock at the grant */
    assert_less(row.expires_us, sqlock_token(second));
    if (f->layout == SQLOCK_LAYOUT_SQLOCK)
        assert_less(row.expires_us, fixture_row(f, f->name).created_us);
    assert_fails(SQLOCK_ELOST, sqlock_release(first, &f->err));
    lock_give(second);
    lock_drop(first);
    lock_drop(second);
}

static void test_lease_that_is_not_over_cannot_be_taken(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *first = lock_obtain(f->a, f->name);
    sqlock_lock *second = lock_obtain(f->b, f->name);
    struct row row;

    lock_take(first, SHORT_MS);
    row = fixture_row(f, f->name);
    for (;;) {
        int rc = lock_try(second, 0, 0, &f->err);

        if (rc == 0)
            break;
        assert_code(SQLOCK_EBUSY, rc, &f->err);
    }
    assert_less(row.expires_us, sqlock_token(second));
    lock_give(second);
    assert_fails(SQLOCK_ELOST, sqlock_release(first, &f->err));
    lock_drop(first);
    lock_drop(second);
}

static void test_renewing_with_another_ttl(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    int64_t old_end;

    lock_take(lock, 1000);
    old_end = fixture_row(f, f->name).expires_us;
    lock_renew(lock, LONG_TTL_MS);
    assert_true(sqlock_remaining_ms(lock) > LONG_TTL_MS / 2);
    assert_less(old_end + (int64_t)LONG_TTL_MS * 500,
                fixture_row(f, f->name).expires_us);
    /* and shorter again */
    lock_renew(lock, 500);
    assert_true(sqlock_remaining_ms(lock) <= 500);
    assert_ok(lock_try(other, PATIENCE_MS, 0, &f->err));
    lock_give(other);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(other);
    lock_drop(lock);
}

static void test_renewing_with_a_ttl_out_of_bounds_is_refused(void **state)
{
    static const uint32_t bad[] = {1, 9, 604800001, UINT32_MAX};
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    int64_t left;
    size_t i;

    lock_take(lock, 0);
    left = sqlock_remaining_ms(lock);
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        int rc = sqlock_renew(lock, bad[i], &f->err);

        assert_code(SQLOCK_EINVAL, rc, &f->err);
    }
    assert_true(sqlock_remaining_ms(lock) <= left);
    assert_true(sqlock_is_held(lock));
    lock_give(lock);
    lock_drop(lock);
}

/* The row is changed so that the lease is over in the database, while the
 * holder's own deadline has not passed.  The renewal is refused, does not
 * change the row, and ends the lease for the holder, too. */
static void test_F7_the_database_refuses_to_renew_what_is_over(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct row row;
    char earlier[160];

    lock_take(lock, 0);
    row = fixture_row(f, f->name);
    (void)fixture_time(f, earlier, -(int64_t)PEER_TTL_MS * 1000 - 1000000);
    if (f->layout == SQLOCK_LAYOUT_SQLOCK)
        (void)sql_run(&f->sql,
                      "UPDATE %s SET CREATED_DATE = %s WHERE LOCK_KEY = '%s'",
                      f->table, earlier, row.key);
    (void)fixture_time(f, earlier,
                       f->layout == SQLOCK_LAYOUT_SPRING6
                           ? -(int64_t)PEER_TTL_MS * 1000 - 1000
                           : -1000);
    (void)sql_run(
        &f->sql, "UPDATE %s SET %s = %s WHERE LOCK_KEY = '%s'", f->table,
        f->layout == SQLOCK_LAYOUT_SPRING6 ? "CREATED_DATE" : "EXPIRED_AFTER",
        earlier, row.key);
    row = fixture_row(f, f->name);
    assert_true(sqlock_is_held(lock));
    assert_fails(SQLOCK_EEXPIRED, sqlock_renew(lock, LONG_TTL_MS, &f->err));
    assert_true(fixture_row(f, f->name).expires_us == row.expires_us);
    assert_false(sqlock_is_held(lock)); /* the lease stays over */
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

/* A database may count the rows that were changed, not those that matched.
 * Renewals so close that they write equal values are not taken for a loss. */
static void test_F19_renewing_twice_in_a_moment_is_no_loss(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    unsigned i;

    lock_take(lock, 0);
    for (i = 0; i < check_scale(100, 10000); i++)
        lock_renew(lock, 0);
    assert_true(sqlock_is_held(lock));
    lock_give(lock);
    lock_drop(lock);
}

static const struct test tests[] = {
    TEST(test_lease_in_the_table_is_as_long_as_asked),
    TEST(test_holder_believes_no_longer_than_the_database),
    TEST(test_belief_ends_without_asking_and_before_the_lease),
    TEST(test_takeover_is_never_before_the_ttl),
    TEST(test_lease_that_is_not_over_cannot_be_taken),
    TEST(test_renewing_with_another_ttl),
    TEST(test_renewing_with_a_ttl_out_of_bounds_is_refused),
    TEST(test_F7_the_database_refuses_to_renew_what_is_over),
    TEST(test_F19_renewing_twice_in_a_moment_is_no_loss),
};
const struct topic topic_lease = TOPIC(tests);
