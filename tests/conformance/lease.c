/*
 * lease.c - a lease is as long as asked, and renewals in a row are no loss
 */
#include "conformance.h"

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
    TEST(test_F19_renewing_twice_in_a_moment_is_no_loss),
};
const struct topic topic_lease = TOPIC(tests);
