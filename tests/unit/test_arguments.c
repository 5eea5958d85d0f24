/*
 * test_arguments.c - NULL in place of arguments of public functions: the
 * documented result, usually EINVAL, and no crash
 *
 * The conformance suite does the same with an open registry.
 */
#include "support/test.h"

#include "db/driver.h"
#include "sqlock/lease.h"
#include "sqlock/operator.h"

#define assert_refused(rc) assert_code(SQLOCK_EINVAL, (rc), &err)

TEST(test_opening_without_a_place_or_a_url)
{
    sqlock_registry *registry = (sqlock_registry *)1;
    sqlock_error err = {0};
    int rc = sqlock_registry_open(NULL, "sqlite:x", NULL, &err);

    assert_refused(rc);
    rc = sqlock_registry_open(&registry, NULL, NULL, &err);
    assert_refused(rc);
    assert_null(registry);
    rc = sqlock_registry_open(NULL, NULL, NULL, NULL);
    assert_int_equal(rc, SQLOCK_EINVAL);
}

TEST(test_nothing_may_be_closed_dropped_and_freed)
{
    sqlock_error err = {0};
    int rc = sqlock_registry_close(NULL, &err);

    assert_lock_ok(rc, &err);
    rc = sqlock_drop(NULL, &err);
    assert_lock_ok(rc, &err);
    assert_int_equal(sqlock_registry_close(NULL, NULL), 0);
    assert_int_equal(sqlock_drop(NULL, NULL), 0);
    sqlock_free(NULL);
    sqlock_info_free(NULL, 0);
    sqlock_info_free(NULL, 3);
}

TEST(test_locks_without_a_registry)
{
    sqlock_lock *lock = (sqlock_lock *)1;
    sqlock_error err = {0};
    int rc = sqlock_obtain(&lock, NULL, "name", &err);

    assert_refused(rc);
    assert_null(lock);
    rc = sqlock_obtain(NULL, NULL, "name", &err);
    assert_refused(rc);
    rc = sqlock_acquire(NULL, 0, NULL, &err);
    assert_refused(rc);
    assert_string_equal(err.message, "lock must not be NULL");
    rc = sqlock_release(NULL, &err);
    assert_refused(rc);
    rc = sqlock_renew(NULL, 0, &err);
    assert_refused(rc);
    rc = sqlock_acquire(NULL, 0, NULL, NULL);
    assert_int_equal(rc, SQLOCK_EINVAL);
}

TEST(test_questions_about_nothing)
{
    char epoch[SQLOCK_EPOCH_SIZE] = "x";

    assert_false(sqlock_is_held(NULL));
    assert_int_equal(sqlock_hold_count(NULL), 0);
    assert_int_equal(sqlock_remaining_ms(NULL), 0);
    assert_int_equal(sqlock_token(NULL), 0);
    (void)sqlock_name(NULL);
    (void)sqlock_key(NULL);
    sqlock_client_id(NULL, NULL);
    sqlock_session_tag(NULL, NULL);
    assert_int_equal(sqlock_act_for(NULL, NULL, NULL), SQLOCK_EINVAL);
    (void)sqlock_registry_layout(NULL);
    assert_int_equal(sqlock_registry_epoch(NULL, epoch), 0);
    assert_string_equal(epoch, "");
    assert_int_equal(sqlock_registry_grace_ms(NULL), 0);
    assert_int_equal(sqlock_grace_end(NULL, "reason", NULL), SQLOCK_EINVAL);
}

TEST(test_administration_without_a_registry)
{
    sqlock_break_options expected = SQLOCK_BREAK_INIT;
    sqlock_info *rows = (sqlock_info *)1;
    sqlock_error err = {0};
    int64_t removed = 7;
    size_t count = 7;
    int rc = list_all(NULL, &rows, &count, &err);

    assert_refused(rc);
    rc = sqlock_show(NULL, "name", &rows, &err);
    assert_refused(rc);
    expected.token = 1;
    rc = sqlock_break(NULL, "name", &expected, &err);
    assert_refused(rc);
    rc = sqlock_reap(NULL, 0, &removed, &err);
    assert_refused(rc);
    assert_int_equal(removed, 7); /* scalars stay untouched on failure */
}

TEST(test_schema_calls_without_arguments)
{
    sqlock_error err = {0};
    char *text = (char *)1;
    int rc =
        sqlock_schema_text(NULL, "sqlite:", NULL, SQLOCK_LAYOUT_SQLOCK, &err);

    assert_refused(rc);
    assert_string_equal(err.message, "text must not be NULL");
    rc = sqlock_schema_text(&text, NULL, NULL, SQLOCK_LAYOUT_SQLOCK, &err);
    assert_refused(rc);
    assert_null(text);
    rc = sqlock_schema_create(NULL, NULL, SQLOCK_LAYOUT_SQLOCK, &err);
    assert_refused(rc);
}

TEST(test_keys_without_arguments)
{
    char key[SQLOCK_KEY_SIZE] = "unchanged";
    sqlock_error err = {0};
    int rc = sqlock_key_of(NULL, "name", SQLOCK_KEY_CURRENT, &err);

    assert_refused(rc);
    assert_string_equal(err.message, "key must not be NULL");
    rc = sqlock_key_of(key, NULL, SQLOCK_KEY_CURRENT, &err);
    assert_refused(rc);
    assert_string_equal(err.message, "the name of a lock must not be NULL");
    rc = sqlock_key_of(key, NULL, SQLOCK_KEY_RAW, NULL);
    assert_int_equal(rc, SQLOCK_EINVAL);
    assert_string_equal(key, "unchanged");
}

TEST(test_results_without_arguments)
{
    sqlock_result result = {0};

    sqlock_result_clear(NULL);
    sqlock_result_clear(&result);
    assert_int_equal(result.rows, 0);
}
