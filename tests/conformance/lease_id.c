/*
 * lease_id.c - leases that are renewed and released by their id, from another
 * registry than the one that acquired them
 */
#include "conformance.h"
#include "sqlock/lease.h"

#include <string.h>

#define OTHER_TTL_MS 120000

static void hold_with_id(struct fixture *f, sqlock_lock *lock,
                         char id[SQLOCK_LEASE_ID_SIZE])
{
    lock_take(lock, LONG_TTL_MS);
    assert_ok(sqlock_lease_id(id, lock, OTHER_TTL_MS, &f->err));
}

static void test_a_lease_is_renewed_and_released_by_its_id(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *first = fixture_registry(f, NULL);
    sqlock_registry *second = fixture_registry(f, NULL);
    sqlock_lock *lock = lock_obtain(first, f->name);
    char id[SQLOCK_LEASE_ID_SIZE];
    int64_t left_ms = 0;

    hold_with_id(f, lock, id);
    assert_true(check_one_line(id));
    assert_ok(sqlock_lease_renew(second, id, 0, &left_ms, &f->err));
    assert_true(left_ms > LONG_TTL_MS && left_ms <= OTHER_TTL_MS);
    assert_ok(sqlock_lease_renew(second, id, LONG_TTL_MS, &left_ms, &f->err));
    assert_true(left_ms > 0 && left_ms <= LONG_TTL_MS);
    assert_ok(sqlock_lease_release(second, id, &f->err));
    assert_fails(SQLOCK_ELOST, sqlock_lease_release(second, id, &f->err));
    assert_fails(SQLOCK_ELOST,
                 sqlock_lease_renew(second, id, 0, &left_ms, &f->err));
    assert_int_equal(left_ms, 0);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    assert_fails(SQLOCK_EEXPIRED,
                 sqlock_lease_id(id, lock, OTHER_TTL_MS, &f->err));
    registry_end(second);
    registry_end(first);
}

/* A lock is released and acquired again by the same handle.  The id of the old
 * lease neither renews nor releases the new one. */
static void test_an_old_id_leaves_the_next_lease_alone(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_registry(f, NULL);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    char id[SQLOCK_LEASE_ID_SIZE];

    hold_with_id(f, lock, id);
    lock_give(lock);
    lock_take(lock, LONG_TTL_MS);
    assert_fails(SQLOCK_ELOST, sqlock_lease_release(registry, id, &f->err));
    assert_fails(SQLOCK_ELOST,
                 sqlock_lease_renew(registry, id, 0, NULL, &f->err));
    lock_renew(lock, 0);
    lock_give(lock);
    registry_end(registry);
}

/* Nobody has taken the lock since: the release says that the lease was over,
 * and frees the row all the same. */
static void test_an_expired_lease_is_released_by_its_id(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_registry(f, NULL);
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    char id[SQLOCK_LEASE_ID_SIZE];
    sqlock_info *info = NULL;
    int rc;

    lock_take(lock, 150);
    assert_ok(sqlock_lease_id(id, lock, 1000, &f->err));
    fixture_await_expiry(f, f->name);
    assert_fails(SQLOCK_EEXPIRED, sqlock_lease_release(registry, id, &f->err));
    rc = sqlock_show(registry, f->name, &info, &f->err);
    assert_true(rc == SQLOCK_ENOTFOUND ||
                (rc == 0 && info->state == SQLOCK_FREE));
    sqlock_info_free(info, 1);
    assert_true(sqlock_release(lock, &f->err) < 0);
    lock_drop(lock);
    registry_end(registry);
}

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

static const struct test tests[] = {
    TEST(test_a_lease_is_renewed_and_released_by_its_id),
    TEST(test_an_old_id_leaves_the_next_lease_alone),
    TEST(test_an_expired_lease_is_released_by_its_id),
    TEST(test_what_is_no_id_is_refused),
};
const struct topic topic_lease_id = TOPIC(tests);
