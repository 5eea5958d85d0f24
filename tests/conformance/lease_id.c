/*
 * lease_id.c - a lease by its id: one that shares its lock, in another registry
 * than its holder's; and what is no id of a lease is refused
 */
#include "conformance.h"
#include "sqlock/lease.h"
#include "sqlock/shared.h"

static void test_what_is_no_id_is_refused(void **state)
{
    static const char *const ids[] = {
        "",          "key",         "a:1:30000:",   "a:1:30000",
        ":1:30000:", "a::30000:k",  "a:-1:30000:k", "a:1:0:k",
        "a:1:x:k",   "a:1:30000x:", "a:1: 30000:k", NULL,
    };
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_registry(f, NULL);
    char *text = NULL;

    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        check_row(ids[i] != NULL ? ids[i] : "NULL");
        assert_fails(SQLOCK_EINVAL,
                     sqlock_lease_release(registry, ids[i], &f->err));
        assert_fails(SQLOCK_EINVAL,
                     sqlock_lease_renew(registry, ids[i], 0, NULL, &f->err));
        assert_fails(SQLOCK_EINVAL,
                     sqlock_lease_guard_text(&text, registry, ids[i], &f->err));
        assert_null(text);
    }
    check_row(NULL);
    registry_end(registry);
}

static void test_ttl_of_an_id_out_of_range_is_refused(void **state)
{
    static const uint32_t bad[] = {0, 1, UINT32_MAX};
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    char id[SQLOCK_LEASE_ID_SIZE];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_fails(SQLOCK_EINVAL, sqlock_lease_id(id, lock, bad[i], &f->err));
        assert_contains(f->err.message, "must be 10 to 604800000");
    }
    lock_drop(lock);
}

static void test_a_lease_that_is_over_has_no_id(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    char id[SQLOCK_LEASE_ID_SIZE];
    char client[SQLOCK_KEY_SIZE];
    char tag[SQLOCK_TAG_SIZE];

    lock_take(lock, 0);
    sqlock_client_id(lock, client);
    assert_string_not_equal(client, "");
    fixture_delete(f, f->name);
    assert_fails(SQLOCK_ELOST, sqlock_renew(lock, 0, &f->err));
    assert_fails(SQLOCK_EEXPIRED,
                 sqlock_lease_id(id, lock, LONG_TTL_MS, &f->err));
    assert_string_equal(id, "");
    sqlock_client_id(lock, client);
    assert_string_equal(client, "");
    sqlock_session_tag(lock, tag);
    assert_string_equal(tag, "");
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

/* --- of a share --- */

/* Take two of the lock's three permits, and write the id of that lease. */
static void share(struct fixture *f, sqlock_lock *lock, uint32_t ttl_ms,
                  char id[SQLOCK_LEASE_ID_SIZE])
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    int rc;

    options.ttl_ms = ttl_ms;
    options.mode = SQLOCK_SHARED;
    options.permits = 3;
    options.weight = 2;
    do
        rc = sqlock_acquire(lock, 0, &options, &f->err);
    while (rc == SQLOCK_ETIMEDOUT); /* a claim longer than the lease */
    assert_ok(rc);
    assert_ok(sqlock_lease_id(id, lock, LONG_TTL_MS, &f->err));
}

/* Return how many sharers the lock has, and how many permits they have. */
static int sharers(struct fixture *f, uint32_t *taken)
{
    sqlock_info *info = NULL;
    int count;

    assert_ok(sqlock_show(f->b, f->name, &info, &f->err));
    count = info->sharers;
    *taken = info->taken;
    sqlock_info_free(info, 1);
    return count;
}

static void test_a_share_is_renewed_and_released_by_its_id(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    sqlock_acquire_options one = SQLOCK_ACQUIRE_INIT;
    char id[SQLOCK_LEASE_ID_SIZE];
    int64_t remaining_ms = 0;
    uint32_t taken;
    int64_t expires_us;

    share(f, lock, 10000, id);
    expires_us = fixture_row(f, f->name).expires_us;
    assert_ok(sqlock_lease_renew(f->b, id, 0, &remaining_ms, &f->err));
    assert_less(10000, remaining_ms);
    assert_less(expires_us, fixture_row(f, f->name).expires_us);
    one.mode = SQLOCK_SHARED;
    one.permits = 3;
    assert_ok(sqlock_acquire(other, 0, &one, &f->err));
    assert_int_equal(sharers(f, &taken), 2);
    assert_int_equal(taken, 3);
    assert_ok(sqlock_lease_release(f->b, id, &f->err));
    assert_int_equal(sharers(f, &taken), 1);
    assert_int_equal(taken, 1);
    assert_fails(SQLOCK_ELOST, sqlock_lease_renew(f->b, id, 0, NULL, &f->err));
    assert_fails(SQLOCK_ELOST, sqlock_lease_release(f->b, id, &f->err));
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_give(other);
    lock_drop(other);
    lock_drop(lock);
}

static void test_a_share_that_is_over_is_told_by_its_id(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    char id[SQLOCK_LEASE_ID_SIZE];

    share(f, lock, 2000, id);
    fixture_await_expiry(f, f->name);
    assert_fails(SQLOCK_EEXPIRED,
                 sqlock_lease_renew(f->b, id, 0, NULL, &f->err));
    assert_fails(SQLOCK_EEXPIRED, sqlock_lease_release(f->b, id, &f->err));
    assert_true(fixture_is_free(f, f->name));
    assert_int_not_equal(sqlock_release(lock, &f->err), 0);
    lock_drop(lock);
}

/* The id was made of the exclusive lease. */
static void test_an_id_is_valid_after_a_downgrade(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    char id[SQLOCK_LEASE_ID_SIZE];
    int64_t expires_us;

    lock_take(lock, 10000);
    assert_ok(sqlock_lease_id(id, lock, LONG_TTL_MS, &f->err));
    assert_ok(sqlock_downgrade(lock, &f->err));
    expires_us = fixture_row(f, f->name).expires_us;
    assert_ok(sqlock_lease_renew(f->b, id, 0, NULL, &f->err));
    assert_less(expires_us, fixture_row(f, f->name).expires_us);
    assert_ok(sqlock_lease_release(f->b, id, &f->err));
    assert_true(fixture_is_free(f, f->name));
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

static void test_a_share_has_no_guard(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    char id[SQLOCK_LEASE_ID_SIZE];
    char *text = NULL;

    share(f, lock, LONG_TTL_MS, id);
    assert_fails(SQLOCK_ENOTSUP,
                 sqlock_lease_guard_text(&text, f->b, id, &f->err));
    assert_null(text);
    assert_contains(f->err.message, "alone");
    lock_give(lock);
    lock_drop(lock);
}

static const struct test tests[] = {
    TEST_ON(test_a_share_is_renewed_and_released_by_its_id, ON_ALL, IN_SQLOCK),
    TEST_ON(test_a_share_that_is_over_is_told_by_its_id, ON_ALL, IN_SQLOCK),
    TEST_ON(test_an_id_is_valid_after_a_downgrade, ON_ALL, IN_SQLOCK),
    TEST_ON(test_a_share_has_no_guard, ON_ALL, IN_SQLOCK),
    TEST(test_a_lease_that_is_over_has_no_id),
    TEST(test_what_is_no_id_is_refused),
    TEST(test_ttl_of_an_id_out_of_range_is_refused),
};
const struct topic topic_lease_id = TOPIC(tests);
