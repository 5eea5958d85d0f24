/*
 * test_savepoint.c - the application's savepoints: what failed is undone, and
 * the transaction goes on
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

static int execute(struct fixture *f, sqlock_tx *tx, const char *text)
{
    return sqlock_tx_execute(tx, text, NULL, 0, NULL, &f->err);
}

static int set_value(struct fixture *f, sqlock_tx *tx, int id, int value)
{
    char text[160];

    (void)snprintf(text, sizeof text, "UPDATE %s SET a = %d WHERE id = %d",
                   stock_name(f), value, id);
    return execute(f, tx, text);
}

/* Insert a row whose key is taken, which must fail. */
static void insert_twice(struct fixture *f, sqlock_tx *tx)
{
    char text[160];

    (void)snprintf(text, sizeof text, "INSERT INTO %s (id, a) VALUES (1, 1)",
                   stock_name(f));
    assert_fails(SQLOCK_EBUSY, execute(f, tx, text));
}

/* Write before and behind a savepoint, fail, go back and write again. */
static void fail_and_go_back(struct fixture *f, sqlock_tx *tx)
{
    assert_ok(set_value(f, tx, 1, 5));
    assert_ok(execute(f, tx, "SAVEPOINT s"));
    for (int turn = 0; turn < 2; turn++) {
        assert_ok(set_value(f, tx, 2, 6));
        insert_twice(f, tx);
        if (f->database->bit == ON_POSTGRES)
            assert_fails(SQLOCK_EBUSY, execute(f, tx, "SELECT 1"));
        assert_ok(execute(f, tx, "ROLLBACK TO SAVEPOINT s"));
    }
    assert_ok(set_value(f, tx, 3, 7));
    assert_ok(execute(f, tx, "RELEASE SAVEPOINT s"));
    assert_ok(sqlock_tx_commit(tx, &f->err));
    assert_int_equal(stock_value(f, 1), 5);
    assert_int_equal(stock_value(f, 2), 100);
    assert_int_equal(stock_value(f, 3), 7);
}

static void test_going_back_undoes_what_failed(void **state)
{
    struct fixture *f = *state;
    struct session s;

    fail_and_go_back(f, tx_begin(f));
    stock_fill(f);
    session_open(f, &s, NULL);
    fail_and_go_back(f, s.tx);
    s.tx = NULL;
    session_close(&s);
}

/* The application goes back over its own connection. */
static void test_the_application_goes_back_by_itself(void **state)
{
    struct fixture *f = *state;
    struct session s;

    session_open(f, &s, NULL);
    app_run(&s.app, "SAVEPOINT s");
    insert_twice(f, s.tx);
    app_run(&s.app, "ROLLBACK TO SAVEPOINT s");
    assert_ok(set_value(f, s.tx, 1, 5));
    session_commit(f, &s);
    session_close(&s);
    assert_int_equal(stock_value(f, 1), 5);
}

/* Such a transaction commits nothing of what was to be undone. */
static void test_going_back_in_vain_ends_the_transaction(void **state)
{
    struct fixture *f = *state;
    sqlock_tx *tx = tx_begin(f);
    int rc;

    assert_ok(set_value(f, tx, 1, 5));
    rc = execute(f, tx, "ROLLBACK TO SAVEPOINT never_made");
    assert_true(rc < 0);
    assert_fails(rc, set_value(f, tx, 1, 6));
    assert_fails(rc, sqlock_tx_commit(tx, &f->err));
    assert_true(stock_is_untouched(f));
}

/* A guard whose row was locked behind the savepoint is checked again. */
static void test_a_guard_outlives_a_failure(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_tx *tx;

    lock_take(lock, 0);
    tx = tx_begin(f);
    assert_ok(execute(f, tx, "SAVEPOINT s"));
    assert_ok(sqlock_tx_guard(tx, lock, &f->err));
    insert_twice(f, tx);
    assert_ok(execute(f, tx, "ROLLBACK TO SAVEPOINT s"));
    assert_ok(set_value(f, tx, 1, 5));
    assert_ok(sqlock_tx_commit(tx, &f->err));
    assert_int_equal(stock_value(f, 1), 5);
    lock_end(lock);
}

static const struct test tests[] = {
    TEST(test_going_back_undoes_what_failed),
    TEST(test_the_application_goes_back_by_itself),
    TEST(test_going_back_in_vain_ends_the_transaction),
    TEST(test_a_guard_outlives_a_failure),
};
const struct topic topic_savepoint = TOPIC(tests);
