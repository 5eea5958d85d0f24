/*
 * lease_id.c - what is no id of a lease, or has none, is refused
 */
#include "conformance.h"
#include "sqlock/lease.h"
#include "sqlock/operator.h"
#include "sqlock/shared.h"

TEST(test_what_is_no_id_is_refused)
{
    static const char *const ids[] = {
        "",
        "key",
        "a:1:30000:",
        "a:1:30000",
        ":1:30000:",
        "a::30000:k",
        "a:-1:30000:k",
        "a:1:0:k",
        "a:1:x:k",
        "a:1:30000x:",
        "a:1: 30000:k",
        "a:9999999999999999999:9000:k",
        NULL,
    };
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
    assert_ok(sqlock_lease_guard_text(&text, registry,
                                      "a:1000000000000000000:9000:k", &f->err));
    sqlock_free(text);
    registry_end(registry);
}

TEST(test_ttl_of_an_id_out_of_range_is_refused)
{
    static const uint32_t bad[] = {0, 1, UINT32_MAX};
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    char id[SQLOCK_LEASE_ID_SIZE];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_fails(SQLOCK_EINVAL, sqlock_lease_id(id, lock, bad[i], &f->err));
        assert_contains(f->err.message, "must be 10 to 604800000");
    }
    assert_fails(SQLOCK_EINVAL, sqlock_act_for(f->a, f->name, &f->err));
    assert_contains(f->err.message, "CLIENT_ID");
    lock_drop(lock);
}

TEST(test_a_lease_that_is_over_has_no_id)
{
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

TEST_ON(test_a_share_has_no_guard, ON_ALL, IN_SQLOCK)
{
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    char id[SQLOCK_LEASE_ID_SIZE];
    char *text = NULL;

    options.mode = SQLOCK_SHARED;
    assert_ok(sqlock_acquire(lock, 0, &options, &f->err));
    assert_ok(sqlock_lease_id(id, lock, LONG_TTL_MS, &f->err));
    assert_fails(SQLOCK_ENOTSUP,
                 sqlock_lease_guard_text(&text, f->b, id, &f->err));
    assert_null(text);
    assert_contains(f->err.message, "alone");
    lock_give(lock);
    lock_drop(lock);
}
