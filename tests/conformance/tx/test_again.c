/*
 * test_again.c - a connection of the application that is adopted again and
 * again: it takes fewer round trips, and what was learnt of it is not believed
 * of another session, or once it is no longer so
 */
#include "again.h"

#include <stdio.h>

#include "support/pooler.h"

TEST_ON(test_a_guarded_transaction_takes_three_trips, ON_POSTGRES, 0)
{
    struct counted c;

    counted_open_own(f, &c);
    expect_trips(&c, 2, 1, 1);
    expect_trips(&c, 3, 1, 1); /* prepares the statements */
    for (int i = 0; i < 3; i++)
        expect_trips(&c, 1, 1, 1);
    assert_int_equal(stock_value(f, 1), 105);
    counted_close(&c);
}

static long long prepared(struct app *app)
{
    return app_integer(app, "SELECT count(*) FROM pg_prepared_statements");
}

/* The application would deallocate them again, so they are not prepared
 * again. */
TEST_ON(test_statements_that_are_deallocated_are_not_prepared_again,
        ON_POSTGRES, 0)
{
    struct counted c;

    counted_open_own(f, &c);
    work_often(f, &c.app, c.lock, 3);
    assert_int_equal(prepared(&c.app), 2);
    app_run(&c.app, "DISCARD ALL");
    work(f, &c.app, c.lock);
    assert_int_equal(prepared(&c.app), 0);
    work(f, &c.app, c.lock);
    expect_trips(&c, 2, 1, 1);
    assert_int_equal(prepared(&c.app), 0);
    assert_int_equal(stock_value(f, 1), 106);
    counted_close(&c);
}

/* The handle stays, and its session is another one. */
TEST_ON(test_a_handle_may_get_another_session, ON_POSTGRES, 0)
{
    struct counted c;

    counted_open_own(f, &c);
    work_often(f, &c.app, c.lock, 3);
    app_reset(&c.app);
    expect_trips(&c, 2, 1, 1);
    assert_int_equal(prepared(&c.app), 0);
    expect_trips(&c, 3, 1, 1);
    expect_trips(&c, 1, 1, 1);
    counted_close(&c);
}

/* Each registry has names of its own. */
TEST_ON(test_two_registries_adopt_one_connection, ON_POSTGRES, 0)
{
    sqlock_lock *other;
    struct counted c;
    char name[96];

    counted_open_own(f, &c);
    (void)snprintf(name, sizeof name, "%s/other", f->name);
    other = lock_obtain(f->b, name);
    lock_take(other, 0);
    for (int i = 0; i < 4; i++) {
        sqlock_tx *tx;

        work(f, &c.app, c.lock);
        assert_ok(sqlock_tx_adopt(&tx, f->b, c.app.native, &f->err));
        assert_ok(sqlock_tx_guard(tx, other, &f->err));
        assert_ok(sqlock_tx_commit(tx, &f->err));
    }
    assert_int_equal(prepared(&c.app), 4);
    expect_trips(&c, 1, 1, 1);
    lock_end(other);
    counted_close(&c);
}

/* The connection is cut while the transaction begins: nothing is adopted, and
 * the server rolls back. */
TEST_ON(test_a_connection_is_cut_while_it_is_recognized, ON_POSTGRES, 0)
{
    struct counted c;
    int rc;

    for (int point = PROXY_BEFORE; point <= PROXY_SENT; point++) {
        struct proxy_plan plan = {.point = (enum proxy_point)point,
                                  .act = PROXY_CUT,
                                  .containing = "BEGIN"};
        sqlock_tx *tx = NULL;

        counted_open(f, &c);
        work_often(f, &c.app, c.lock, 3);
        proxy_arm(c.proxy, &plan);
        rc = sqlock_tx_adopt(&tx, f->a, c.app.native, &f->err);
        assert_code(SQLOCK_EUNREACHABLE, rc, &f->err);
        assert_null(tx);
        proxy_heal(c.proxy);
        assert_int_equal(stock_value(f, 1), 103 + 3 * point);
        counted_close(&c);
    }
}

/* In a pipeline that the application has begun after the adoption, a statement
 * would stand behind its own. */
TEST_ON(test_a_pipeline_begun_after_the_adoption_is_refused, ON_POSTGRES, 0)
{
    struct counted c;
    sqlock_tx *tx;

    counted_open(f, &c);
    work_often(f, &c.app, c.lock, 3);
    tx = tx_adopt(f, &c.app);
    if (!app_pipeline(&c.app, true))
        skip();
    assert_fails(SQLOCK_EINVAL, sqlock_tx_guard(tx, c.lock, &f->err));
    assert_contains(f->err.message, "pipeline");
    (void)app_pipeline(&c.app, false);
    assert_fails(SQLOCK_EINVAL, sqlock_tx_commit(tx, &f->err));
    assert_false(app_in_transaction(&c.app));
    work(f, &c.app, c.lock);
    counted_close(&c);
}

/* A pooler lends sessions to others, which find nothing of ours there. */
TEST_ON(test_nothing_is_prepared_behind_a_pooler, ON_POSTGRES, 0)
{
    struct pooler pooler;
    sqlock_lock *lock;
    struct app app;

    if (database_is_pooled(f->database))
        skip();
    pooler_start(&pooler, f, "default_pool_size = 1");
    lock = lock_obtain(f->a, f->name);
    lock_take(lock, 0);
    app_open(&app, f->database, pooler.url);
    work_often(f, &app, lock, 4);
    assert_int_equal(prepared(&app), 0);
    assert_int_equal(stock_value(f, 1), 104);
    app_close(&app);
    lock_end(lock);
    pooler_end(&pooler);
}
