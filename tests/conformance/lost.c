/*
 * lost.c - leases that another holder has taken over: the old holder gets
 * ELOST, and its late statements do not change the new holder's row (F6, F32)
 */
#include "conformance.h"

#include <string.h>

#define SHORT_MS 150

static void expect_lost(struct fixture *f, sqlock_lock *lock)
{
    int rc = sqlock_renew(lock, 0, &f->err);

    assert_code_of(SQLOCK_ELOST, SQLOCK_EEXPIRED, rc, &f->err);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    assert_int_equal(sqlock_hold_count(lock), 0);
    assert_true(sqlock_token(lock) == 0);
}

static void test_F32_release_of_a_lost_lock_spares_the_new_holder(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *old = lock_obtain(f->a, f->name);
    sqlock_lock *next = lock_obtain(f->b, f->name);
    struct row row;

    lock_take(old, SHORT_MS);
    fixture_await_expiry(f, f->name);
    lock_take(next, 0);
    row = fixture_row(f, f->name);
    expect_lost(f, old);
    assert_string_equal(fixture_row(f, f->name).client, row.client);
    assert_true(fixture_row(f, f->name).expires_us == row.expires_us);
    assert_true(sqlock_is_held(next));
    lock_renew(next, 0);
    assert_busy(old);
    lock_give(next);
    lock_take_and_give(old);
    lock_drop(old);
    lock_drop(next);
}

/* The release says ELOST even if the next holder has released the lock
 * already. */
static void test_F32_release_after_another_has_come_and_gone(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *old = lock_obtain(f->a, f->name);
    sqlock_lock *next = lock_obtain(f->b, f->name);

    lock_take(old, SHORT_MS);
    fixture_await_expiry(f, f->name);
    lock_take_and_give(next);
    expect_lost(f, old);
    lock_drop(old);
    lock_drop(next);
}

/* Another program has deleted the expired row, as Spring's deleteExpired
 * does. */
static void test_release_after_the_row_was_deleted_is_lost(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);

    lock_take(lock, SHORT_MS);
    fixture_await_expiry(f, f->name);
    fixture_delete(f, f->name);
    expect_lost(f, lock);
    lock_take_and_give(lock);
    lock_drop(lock);
}

static void test_renewing_a_deleted_row_finds_it_lost_and_stays_so(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);

    lock_take(lock, 0);
    fixture_delete(f, f->name);
    assert_fails(SQLOCK_ELOST, sqlock_renew(lock, 0, &f->err));
    assert_false(sqlock_is_held(lock));
    assert_int_equal(sqlock_remaining_ms(lock), 0);
    assert_false(fixture_row(f, f->name).exists);
    assert_fails(SQLOCK_ELOST, lock_try(lock, 0, 0, &f->err));
    assert_fails(SQLOCK_ELOST, sqlock_renew(lock, 0, &f->err));
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

/* Each acquisition has a new CLIENT_ID, also in one registry, so that a late
 * statement of an old one does not match the row of a later one. */
static void test_F6_every_acquisition_has_an_identity_of_its_own(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    char last[SQLOCK_KEY_SIZE] = "";
    int i;

    for (i = 0; i < 5; i++) {
        struct row row;

        lock_take(lock, 0);
        row = fixture_row(f, f->name);
        assert_int_equal(strlen(row.client), 36);
        assert_string_not_equal(row.client, last);
        memcpy(last, row.client, sizeof last);
        lock_give(lock);
    }
    lock_drop(lock);
}

/* The row is deleted, and `registry` acquires the lock, while the old holder's
 * own deadline has not passed.  The old holder's renewal, if `renews`, and its
 * release return ELOST and leave the new row as it is. */
static void check_old_misses_next(struct fixture *f, bool renews,
                                  sqlock_registry *registry)
{
    sqlock_lock *old = lock_obtain(f->a, f->name);
    sqlock_lock *next = lock_obtain(registry, f->name);
    struct row row;

    lock_take(old, LONG_TTL_MS);
    fixture_delete(f, f->name);
    lock_take(next, LONG_TTL_MS);
    row = fixture_row(f, f->name);
    assert_true(sqlock_is_held(old));
    if (renews) {
        assert_fails(SQLOCK_ELOST, sqlock_renew(old, 0, &f->err));
        assert_true(fixture_row(f, f->name).expires_us == row.expires_us);
    }
    assert_fails(SQLOCK_ELOST, sqlock_release(old, &f->err));
    assert_string_equal(fixture_row(f, f->name).client, row.client);
    lock_renew(next, 0);
    lock_give(next);
    lock_drop(old);
    lock_drop(next);
}

/* The next owner is a third registry of this process. */
static void test_F6_an_old_renewal_misses_the_next_owner(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *third = fixture_registry(f, NULL);

    check_old_misses_next(f, true, third);
    registry_end(third);
}

static void test_F6_an_old_release_misses_the_next_owner(void **state)
{
    struct fixture *f = *state;

    check_old_misses_next(f, false, f->b);
}

static void test_expired_and_free_again(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    struct row row;

    lock_take(lock, SHORT_MS);
    fixture_await_expiry(f, f->name);
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(lock, &f->err));
    row = fixture_row(f, f->name);
    if (f->layout == SQLOCK_LAYOUT_SQLOCK)
        assert_string_equal(row.client, "");
    else
        assert_false(row.exists);
    lock_take_and_give(other);
    lock_drop(lock);
    lock_drop(other);
}

static const struct test tests[] = {
    TEST(test_F32_release_of_a_lost_lock_spares_the_new_holder),
    TEST(test_F32_release_after_another_has_come_and_gone),
    TEST(test_release_after_the_row_was_deleted_is_lost),
    TEST(test_renewing_a_deleted_row_finds_it_lost_and_stays_so),
    TEST(test_F6_every_acquisition_has_an_identity_of_its_own),
    TEST(test_F6_an_old_renewal_misses_the_next_owner),
    TEST(test_F6_an_old_release_misses_the_next_owner),
    TEST(test_expired_and_free_again),
};
const struct topic topic_lost = TOPIC(tests);
