/*
 * clock_back.c - the database's clock is set back between a claim whose answer
 * is lost and its repetition (F15); scenes/clock.scene has what is simpler
 */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

#include "sqlock/many.h"
#include "support/tap.h"

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
        fixture_set_back(between->f, sqlock_key(between->locks[i]));
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
    TEST(test_F15_a_claim_is_repeated_after_the_clock_went_back),
};
const struct topic topic_clock_back = TOPIC(tests);
