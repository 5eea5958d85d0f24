/*
 * orphans.c - server sessions that still work for an earlier holder of a lock,
 * found by their names
 */
#include "conformance.h"
#include "sqlock/lease.h"
#include "sqlock/operator.h"

#include <string.h>

#include "support/tap.h"

static int64_t orphans_of(struct fixture *f, sqlock_lock *lock)
{
    int64_t count = -1;

    assert_ok(sqlock_stale_sessions(lock, &count, &f->err));
    return count;
}

TEST_ON(test_F74_a_session_at_work_for_an_earlier_holder, ON_POSTGRES, 0)
{
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    char first[SQLOCK_TAG_SIZE];
    char second[SQLOCK_TAG_SIZE];
    int64_t count;

    sqlock_session_tag(lock, first);
    assert_string_equal(first, "");
    assert_fails(SQLOCK_EEXPIRED, sqlock_stale_sessions(lock, &count, &f->err));
    lock_take(lock, 0);
    sqlock_session_tag(lock, first);
    assert_contains(first, "sqlock:");
    (void)sql_run(&f->sql, "SET application_name = '%s'", first);
    assert_lock_ok(sql_begin(&f->sql), &f->sql.err);
    (void)sql_integer(&f->sql, "SELECT count(*) FROM %s", f->table);
    assert_int_equal(orphans_of(f, lock), 0); /* the holder's own session */
    lock_give(lock);

    lock_take(lock, 0);
    sqlock_session_tag(lock, second);
    assert_string_not_equal(first, second);
    assert_int_equal(orphans_of(f, lock), 1);
    assert_lock_ok(sql_rollback(&f->sql), &f->sql.err);
    assert_int_equal(orphans_of(f, lock), 0); /* an idle session */
    fixture_delete(f, f->name);
    assert_fails(SQLOCK_ELOST, sqlock_renew(lock, 0, &f->err));
    assert_fails(SQLOCK_EEXPIRED, sqlock_stale_sessions(lock, &count, &f->err));
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(lock);
    (void)sql_run(&f->sql, "RESET application_name");
}

TEST_ON(test_F74_another_locks_session_is_no_orphan, ON_POSTGRES, 0)
{
    sqlock_registry *elsewhere = fixture_in_region(f, "elsewhere");
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *other = lock_obtain(elsewhere, f->name);
    char tag[SQLOCK_TAG_SIZE];

    lock_take(other, 0);
    sqlock_session_tag(other, tag);
    lock_give(other);
    (void)sql_run(&f->sql, "SET application_name = '%s'", tag);
    assert_lock_ok(sql_begin(&f->sql), &f->sql.err);
    (void)sql_integer(&f->sql, "SELECT count(*) FROM %s", f->table);
    lock_take(lock, 0);
    assert_int_equal(orphans_of(f, lock), 0);
    lock_take(other, 0);
    assert_int_equal(orphans_of(f, other), 1);
    assert_lock_ok(sql_rollback(&f->sql), &f->sql.err);
    (void)sql_run(&f->sql, "RESET application_name");
    lock_give(other);
    lock_give(lock);
    lock_drop(other);
    lock_drop(lock);
    registry_end(elsewhere);
}

/* A tap_before_fn that counts the statements that read the server's locks. */
static int count_looks(void *context, const struct tap_event *event)
{
    int *looks = context;

    *looks += event->text != NULL && strstr(event->text, "pg_lock") != NULL;
    return 0;
}

/* A command that starts waits for the answer. */
TEST_ON(test_without_a_session_of_that_name_it_is_cheap, ON_POSTGRES, 0)
{
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    char tag[SQLOCK_TAG_SIZE];
    int looks = 0;

    lock_take(lock, 0);
    sqlock_session_tag(lock, tag);
    tap_hooks(count_looks, NULL, &looks);
    assert_int_equal(orphans_of(f, lock), 0);
    assert_int_equal(looks, 0);
    lock_give(lock);
    (void)sql_run(&f->sql, "SET application_name = '%s'", tag);
    lock_take(lock, 0);
    assert_int_equal(orphans_of(f, lock), 0);
    assert_int_equal(looks, 1);
    tap_reset();
    (void)sql_run(&f->sql, "RESET application_name");
    lock_give(lock);
    lock_drop(lock);
    registry_end(registry);
}

TEST_ON(test_F74_without_names_it_is_said, ON_MYSQL | ON_SQLITE, IN_SQLOCK)
{
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    char tag[SQLOCK_TAG_SIZE] = "x";
    int64_t count = -1;

    lock_take(lock, 0);
    sqlock_session_tag(lock, tag);
    assert_string_equal(tag, "");
    assert_fails(SQLOCK_ENOTSUP, sqlock_stale_sessions(lock, &count, &f->err));
    assert_int_equal(count, 0);
    lock_give(lock);
    lock_drop(lock);
}
