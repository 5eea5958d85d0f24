/*
 * lost.c - each lease has an identity of its own, and what the release of an
 * expired one leaves in the table
 */
#include "conformance.h"

#include <string.h>

#define SHORT_MS 150

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
    TEST(test_F6_every_acquisition_has_an_identity_of_its_own),
    TEST(test_expired_and_free_again),
};
const struct topic topic_lost = TOPIC(tests);
