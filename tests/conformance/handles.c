/*
 * handles.c - obtaining and dropping handles, opening and closing registries,
 * and arguments that are missing or out of bounds
 */
#include "conformance.h"

#include "sqlock/tx.h"

#include <stdio.h>
#include <string.h>

#define FOO_KEY "acbd18db-4cc2-385c-adef-654fccc4a4d8"

TEST(test_one_handle_for_one_key)
{
    sqlock_lock *foo = lock_obtain(f->a, "foo");
    sqlock_lock *key = lock_obtain(f->a, FOO_KEY);
    sqlock_lock *upper =
        lock_obtain(f->a, "ACBD18DB-4CC2-385C-ADEF-654FCCC4A4D8");
    sqlock_lock *other = lock_obtain(f->b, "foo");

    assert_ptr_equal(foo, key);
    assert_ptr_equal(foo, upper);
    assert_ptr_not_equal(foo, other);
    assert_string_equal(sqlock_key(foo), FOO_KEY);
    assert_string_equal(sqlock_name(upper), "foo"); /* as obtained first */
    lock_take(foo, 0);
    lock_take(upper, 0); /* nested, not a second owner */
    assert_busy(other);
    lock_give(key);
    lock_give(foo);
    lock_drop(foo);
    lock_drop(key);
    lock_drop(upper);
    lock_drop(other);
}

TEST(test_name_is_copied)
{
    char name[64];
    sqlock_lock *lock;

    (void)snprintf(name, sizeof name, "%s", f->name);
    lock = lock_obtain(f->a, name);
    memset(name, 'x', sizeof name - 1);
    assert_string_equal(sqlock_name(lock), f->name);
    lock_drop(lock);
}

TEST(test_a_dropped_lock_can_be_obtained_anew)
{
    int i;

    for (i = 0; i < 100; i++) {
        sqlock_lock *lock = lock_obtain(f->a, f->name);

        assert_int_equal(sqlock_hold_count(lock), 0);
        lock_drop(lock);
    }
}

TEST(test_registries_open_and_close)
{
    int i;

    for (i = 0; i < 5; i++) {
        sqlock_registry *registry = fixture_registry(f, NULL);

        assert_int_equal(sqlock_registry_layout(registry), f->layout);
        registry_end(registry);
    }
}

TEST(test_missing_arguments_with_an_open_registry)
{
    sqlock_lock *lock = (sqlock_lock *)1;
    sqlock_info *rows = (sqlock_info *)1;
    size_t count = 3;

    assert_fails(SQLOCK_EINVAL, sqlock_obtain(&lock, f->a, NULL, &f->err));
    assert_null(lock);
    assert_fails(SQLOCK_EINVAL, sqlock_obtain(NULL, f->a, "x", &f->err));
    assert_fails(SQLOCK_EINVAL, list_all(f->a, NULL, &count, &f->err));
    assert_fails(SQLOCK_EINVAL, list_all(f->a, &rows, NULL, &f->err));
    assert_fails(SQLOCK_EINVAL, sqlock_show(f->a, NULL, &rows, &f->err));
    assert_null(rows);
    assert_fails(SQLOCK_EINVAL, sqlock_show(f->a, "x", NULL, &f->err));
    assert_fails(SQLOCK_EINVAL, sqlock_break(f->a, "x", NULL, &f->err));
    assert_ok(sqlock_reap(f->a, SQLOCK_RETENTION_DEFAULT_MS, NULL, &f->err));
}

TEST(test_errors_may_be_left_out)
{
    sqlock_lock *lock = NULL;
    sqlock_lock *other = lock_obtain(f->b, f->name);
    int rc = sqlock_obtain(&lock, f->a, f->name, NULL);

    assert_int_equal(rc, 0);
    rc = sqlock_acquire(lock, 0, NULL, NULL);
    assert_int_equal(rc, 0);
    rc = sqlock_acquire(other, 0, NULL, NULL);
    assert_int_equal(rc, SQLOCK_EBUSY);
    rc = sqlock_renew(lock, 0, NULL);
    assert_int_equal(rc, 0);
    rc = sqlock_release(lock, NULL);
    assert_int_equal(rc, 0);
    rc = sqlock_release(lock, NULL);
    assert_int_equal(rc, SQLOCK_EOWNER);
    assert_int_equal(sqlock_drop(lock, NULL), 0);
    lock_drop(other);
}

TEST(test_acquire_options_out_of_bounds_are_refused)
{
    static const uint32_t bad_ttls[] = {1, 9, 604800001, UINT32_MAX};
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    size_t i;

    for (i = 0; i < sizeof bad_ttls / sizeof *bad_ttls; i++) {
        options.ttl_ms = bad_ttls[i];
        assert_fails(SQLOCK_EINVAL, sqlock_acquire(lock, 0, &options, &f->err));
    }
    options.ttl_ms = 1000;
    options.size = 0;
    assert_fails(SQLOCK_EINVAL, sqlock_acquire(lock, 0, &options, &f->err));
    options.size = sizeof options + 1;
    assert_fails(SQLOCK_EINVAL, sqlock_acquire(lock, 0, &options, &f->err));
    assert_false(sqlock_is_held(lock));
    assert_false(fixture_row(f, f->name).exists);
    /* the longest TTL allowed */
    options.size = sizeof options;
    options.ttl_ms = 604800000;
    assert_ok(sqlock_acquire(lock, 0, &options, &f->err));
    assert_true(sqlock_remaining_ms(lock) > 500000000);
    lock_give(lock);
    lock_drop(lock);
}

/* The TCP probes of a connection are as far apart as the system allows, but no
 * farther. */
TEST(test_a_registry_of_the_longest_ttl_opens)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry = NULL;
    sqlock_lock *lock;
    sqlock_tx *tx = NULL;

    options.ttl_ms = 604800000;
    assert_ok(sqlock_registry_open(&registry, f->url, &options, &f->err));
    lock = lock_obtain(registry, f->name);
    lock_take(lock, 0);
    assert_ok(sqlock_tx_begin(&tx, registry, &f->err));
    assert_ok(sqlock_tx_execute(tx, "SELECT 1", NULL, 0, NULL, &f->err));
    assert_ok(sqlock_tx_commit(tx, &f->err));
    lock_end(lock);
    registry_end(registry);
}
