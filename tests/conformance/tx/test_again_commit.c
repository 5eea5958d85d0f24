/*
 * test_again_commit.c - the commit on a connection to MariaDB that is adopted
 * again and again: it takes the guard's savepoint for the proof that the lease
 * is still locked, and checks the lease again where that proves nothing
 */
#include "again.h"

/* The application commits by itself and begins again: so the lease is checked
 * again by its row. */
TEST_ON(test_a_transaction_begun_again_is_checked, ON_MYSQL, 0)
{
    struct counted c;
    sqlock_tx *tx;

    counted_open_known(f, &c);
    for (int is_lost = 0; is_lost < 2; is_lost++) {
        tx = tx_guarded(&c);
        app_run(&c.app, "COMMIT");
        if (is_lost)
            lock_break(f, c.lock, true);
        app_run(&c.app, "BEGIN");
        change(f, &c.app);
        (void)trips(&c);
        commit_guarded(&c, tx, is_lost);
        assert_int_equal(trips(&c), is_lost ? 5 : 3);
        assert_int_equal(stock_value(f, 1), 104);
    }
    take_anew(&c);
    counted_close(&c);
}

/* Two transactions of the library on one connection, the second of which was
 * begun after the application had committed the first: the first one's commit
 * does not take the second one's savepoint for its own. */
TEST_ON(test_a_transaction_resumed_again_is_checked, ON_MYSQL, 0)
{
    sqlock_lock *other;
    sqlock_tx *first;
    sqlock_tx *second;
    struct counted c;

    counted_open_mariadb(f, &c);
    other = take_other(f, f->a);
    work_often(f, &c.app, c.lock, 3);
    first = tx_guarded(&c);
    app_run(&c.app, "COMMIT");
    lock_break(f, c.lock, true);
    second = tx_adopt(f, &c.app);
    assert_ok(sqlock_tx_guard(second, other, &f->err));
    change(f, &c.app);
    assert_fails(SQLOCK_ELOST, sqlock_tx_commit(first, &f->err));
    (void)sqlock_tx_rollback(second, NULL);
    assert_int_equal(stock_value(f, 1), 103);
    take_anew(&c);
    lock_end(other);
    counted_close(&c);
}

/* A ROLLBACK TO SAVEPOINT before the guard releases the row, if InnoDB had no
 * part in the transaction yet.  A savepoint after it changes nothing. */
TEST_ON(test_a_guard_is_checked_after_a_savepoint, ON_MYSQL, 0)
{
    struct counted c;
    sqlock_tx *tx;

    counted_open_known(f, &c);
    for (int is_lost = 0; is_lost < 2; is_lost++) {
        tx = tx_adopt(f, &c.app);
        app_run(&c.app, "SAVEPOINT before_it");
        assert_ok(sqlock_tx_guard(tx, c.lock, &f->err));
        app_run(&c.app, "ROLLBACK TO SAVEPOINT before_it");
        if (is_lost)
            lock_break(f, c.lock, true);
        change(f, &c.app);
        (void)trips(&c);
        commit_guarded(&c, tx, is_lost);
        assert_int_equal(trips(&c), is_lost ? 5 : 3);
        assert_int_equal(stock_value(f, 1), 104);
    }
    take_anew(&c);
    tx = tx_guarded(&c);
    app_run(&c.app, "SAVEPOINT after_it");
    app_run(&c.app, "ROLLBACK TO SAVEPOINT after_it");
    app_run(&c.app, "RELEASE SAVEPOINT after_it");
    (void)trips(&c);
    assert_ok(sqlock_tx_commit(tx, &f->err));
    assert_int_equal(trips(&c), 1);
    counted_close(&c);
}

/* Without the answer to the commit nobody knows whether it happened. */
TEST_ON(test_a_commit_without_an_answer_is_uncertain, ON_MYSQL, 0)
{
    for (int point = PROXY_BEFORE; point <= PROXY_SENT; point++) {
        struct proxy_plan plan = {.point = (enum proxy_point)point,
                                  .act = PROXY_CUT,
                                  .containing = "_commit`"};
        struct counted c;
        sqlock_tx *tx;

        counted_open_known(f, &c);
        tx = tx_guarded(&c);
        change(f, &c.app);
        proxy_arm(c.proxy, &plan);
        assert_fails(SQLOCK_EUNCERTAIN, sqlock_tx_commit(tx, &f->err));
        assert_true(proxy_await(c.proxy, PATIENCE_MS));
        proxy_heal(c.proxy);
        assert_true(proxy_await_quiet(c.proxy, PATIENCE_MS));
        assert_int_equal(stock_value(f, 1), point == PROXY_SENT ? 107 : 103);
        counted_close(&c);
    }
}

/* Each registry has names of its own: the first one's commit does not take the
 * savepoint of the second one's guard for its own. */
TEST_ON(test_two_registries_adopt_one_connection, ON_MYSQL, 0)
{
    sqlock_lock *other;
    struct counted c;
    sqlock_tx *first;
    sqlock_tx *second;

    counted_open_mariadb(f, &c);
    other = take_other(f, f->b);
    for (int i = 0; i < 4; i++) {
        work(f, &c.app, c.lock);
        assert_ok(sqlock_tx_adopt(&second, f->b, c.app.native, &f->err));
        assert_ok(sqlock_tx_guard(second, other, &f->err));
        assert_ok(sqlock_tx_commit(second, &f->err));
    }
    assert_int_equal(prepared_by_name(&c.app), 6);
    expect_trips(&c, 1, 1, 1);
    first = tx_guarded(&c);
    app_run(&c.app, "COMMIT");
    lock_break(f, c.lock, true);
    assert_ok(sqlock_tx_adopt(&second, f->b, c.app.native, &f->err));
    assert_ok(sqlock_tx_guard(second, other, &f->err));
    change(f, &c.app);
    assert_fails(SQLOCK_ELOST, sqlock_tx_commit(first, &f->err));
    (void)sqlock_tx_rollback(second, NULL);
    assert_int_equal(stock_value(f, 1), 105);
    take_anew(&c);
    lock_end(other);
    counted_close(&c);
}
