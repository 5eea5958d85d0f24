/*
 * many.c - several locks acquired, renewed or released in one call, and the
 * result of each lock
 */
#include "renewer.h"

#include <sys/resource.h>

#include "sqlock/many.h"
#include "support/tap.h"

#define SOME 6
#define TAKEN 3 /* index of the lock that is another's or is lost */

struct some {
    sqlock_lock *locks[SOME];
    int results[SOME];
};

static void obtain_some(struct fixture *f, sqlock_registry *registry,
                        struct some *some)
{
    for (size_t i = 0; i < SOME; i++) {
        some->locks[i] = nth_lock(f, registry, i);
        some->results[i] = 1;
    }
}

static void drop_some(struct some *some)
{
    for (size_t i = 0; i < SOME; i++)
        lock_drop(some->locks[i]);
}

/* Assert that the result of lock TAKEN is `taken`, of each other one
 * `others`. */
static void expect_results(const struct some *some, int taken, int others)
{
    for (size_t i = 0; i < SOME; i++)
        assert_int_equal(some->results[i], i == TAKEN ? taken : others);
}

static void expect_none_is_held(const struct some *some)
{
    for (size_t i = 0; i < SOME; i++)
        assert_int_equal(sqlock_hold_count(some->locks[i]), 0);
}

static void acquire_some(struct fixture *f, struct some *some,
                         const sqlock_acquire_options *options, int expected)
{
    assert_code(expected,
                sqlock_acquire_many(some->locks, SOME, 0, options,
                                    some->results, &f->err),
                &f->err);
}

static void release_some(struct fixture *f, struct some *some, int expected)
{
    assert_code(expected,
                sqlock_release_many(some->locks, SOME, some->results, &f->err),
                &f->err);
}

static void take_some(struct fixture *f, struct some *some)
{
    acquire_some(f, some, NULL, 0);
    expect_results(some, 0, 0);
    for (size_t i = 0; i < SOME; i++) {
        assert_true(sqlock_is_held(some->locks[i]));
        assert_int_equal(sqlock_hold_count(some->locks[i]), 1);
    }
}

static void give_some(struct fixture *f, struct some *some)
{
    release_some(f, some, 0);
    expect_results(some, 0, 0);
    expect_none_is_held(some);
}

static void expect_refused(struct fixture *f, sqlock_lock *const *locks,
                           size_t count)
{
    int rc = sqlock_acquire_many(locks, count, 0, NULL, NULL, &f->err);

    assert_code(SQLOCK_EINVAL, rc, &f->err);
    assert_fails(SQLOCK_EINVAL, sqlock_renew_many(locks, count, NULL, &f->err));
    rc = sqlock_release_many(locks, count, NULL, &f->err);
    assert_code(SQLOCK_EINVAL, rc, &f->err);
}

static void test_what_is_refused(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *tapped = renewer_tapped(f);
    static sqlock_lock *crowd[SQLOCK_MANY_MAX + 1];
    struct some mine;
    sqlock_lock *odd[3];
    int rc;

    obtain_some(f, tapped, &mine);
    tap_reset();
    odd[0] = mine.locks[0];
    odd[1] = mine.locks[1];
    odd[2] = nth_lock(f, tapped, 0); /* the handle odd[0] again */
    expect_refused(f, odd, 3);
    lock_drop(odd[2]);
    odd[2] = nth_lock(f, f->a, 2);
    expect_refused(f, odd, 3);
    lock_drop(odd[2]);
    odd[2] = NULL;
    expect_refused(f, odd, 3);
    expect_refused(f, odd, 0);
    expect_refused(f, NULL, 2);
    for (size_t i = 0; i <= SQLOCK_MANY_MAX; i++)
        crowd[i] = mine.locks[0];
    expect_refused(f, crowd, SQLOCK_MANY_MAX + 1);
    rc = sqlock_acquire_many(mine.locks, SOME, -2, NULL, NULL, &f->err);
    assert_code(SQLOCK_EINVAL, rc, &f->err);
    assert_int_equal(tap_sent(), 0);
    expect_none_is_held(&mine);
    drop_some(&mine);
    registry_end(tapped);
}

static void test_one_statement_for_all(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *tapped = renewer_tapped(f);
    struct some mine;

    obtain_some(f, tapped, &mine);
    take_some(f, &mine); /* opens the connection */
    give_some(f, &mine);
    tap_reset();
    take_some(f, &mine);
    assert_int_equal(tap_sent(), fixture_claims_of_many(f));
    tap_reset();
    assert_ok(sqlock_renew_many(mine.locks, SOME, NULL, &f->err));
    assert_int_equal(tap_sent(), 1);
    tap_reset();
    give_some(f, &mine);
    assert_int_equal(tap_sent(), 1);
    drop_some(&mine);
    registry_end(tapped);
}

/* Delay the answer to the statement with the text `context` by TTL_MS, when the
 * leases that it claims are over. */
static int dawdle(void *context, const struct tap_event *event, int rc)
{
    int64_t until = check_deadline_ns(TTL_MS);

    while (event->text == context && check_pause(until))
        ;
    return rc;
}

static void test_a_claim_that_outlasts_its_leases_is_given_back(void **state)
{
    struct fixture *f = *state;
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;
    sqlock_registry *tapped = renewer_tapped(f);
    const char *claim = census_text(tapped, SQLOCK_SQL_CLAIM_MANY);
    struct some mine;
    char name[96];

    obtain_some(f, tapped, &mine);
    how.ttl_ms = TTL_MS / 2;
    {
        union {
            const char *text;
            void *context;
        } claim_text = {.text = claim};

        tap_hooks(NULL, dawdle, claim_text.context);
    }
    acquire_some(f, &mine, &how, SQLOCK_ETIMEDOUT);
    for (size_t i = 0; i < SOME; i++) {
        assert_true(mine.results[i] < 0);
        assert_int_equal(sqlock_hold_count(mine.locks[i]), 0);
        assert_string_equal(fixture_row(f, nth_name(f, name, i)).client, "");
    }
    tap_reset();
    drop_some(&mine);
    registry_end(tapped);
}

/* Acquire the locks with auto_renew, and return the result, while the process
 * can open no descriptor, so that the renewer's thread cannot start. */
static int acquire_without_descriptors(struct fixture *f, struct some *some)
{
    sqlock_acquire_options how = renewed_options(LONG_TTL_MS, NULL);
    struct rlimit before;
    struct rlimit none;
    int rc;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 3; /* poll() fails with more descriptors than this */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    rc =
        sqlock_acquire_many(some->locks, SOME, 0, &how, some->results, &f->err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    return rc;
}

static void check_none_is_held(struct fixture *f, struct some *some)
{
    char name[96];

    for (size_t i = 0; i < SOME; i++) {
        assert_int_equal(sqlock_hold_count(some->locks[i]), 0);
        assert_int_equal(some->results[i], SQLOCK_ERESOURCE);
        assert_true(fixture_is_free(f, nth_name(f, name, i)));
    }
}

static void test_what_cannot_be_renewed_is_not_held(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *third = renewer_registry(f);
    struct some some;
    int rc;

    obtain_some(f, third, &some);
    take_some(f, &some); /* opens the connection */
    give_some(f, &some);
    rc = acquire_without_descriptors(f, &some);
    assert_code(SQLOCK_ERESOURCE, rc, &f->err);
    check_none_is_held(f, &some);
    take_some(f, &some);
    give_some(f, &some);
    registry_end(third);
}

static const struct test tests[] = {
    TEST(test_what_is_refused),
    TEST_ON(test_what_cannot_be_renewed_is_not_held, ON_ALL, IN_ALL),
    TEST(test_one_statement_for_all),
    TEST(test_a_claim_that_outlasts_its_leases_is_given_back),
};
const struct topic topic_many = TOPIC(tests);
