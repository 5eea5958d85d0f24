/*
 * test_again_mysql.c - a connection to MariaDB that is adopted again and again:
 * what may change in its session, or is another session
 */
#include "again.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lock/registry.h"

TEST_ON(test_a_guarded_transaction_takes_three_trips, ON_MYSQL, 0)
{
    struct counted c;

    counted_open_mariadb(f, &c);
    expect_trips(&c, 4, 2, 2);
    expect_trips(&c, 8, 1, 1); /* prepares the statements */
    for (int i = 0; i < 3; i++)
        expect_trips(&c, 1, 1, 1);
    assert_int_equal(prepared_by_name(&c.app), 3);
    assert_int_equal(stock_value(f, 1), 105);
    counted_close(&c);
}

/* Oracle's MySQL keeps no blocks of statements. */
TEST_ON(test_each_adoption_on_mysql_is_as_the_first, ON_MYSQL, 0)
{
    struct counted c;

    if (!fixture_is_oracles(f)) /* make test-mysql */
        return;
    counted_open_own(f, &c);
    work_often(f, &c.app, c.lock, 3);
    expect_trips(&c, 5, 2, 2);
    counted_close(&c);
}

/* --- the session forgets the statements --- */

enum forgets { RESET, CHANGE_USER };

/* The application would have them forgotten again, so they are not prepared
 * again. */
TEST_ON(test_statements_that_are_forgotten_are_not_prepared_again, ON_MYSQL, 0)
{
    for (int how = RESET; how <= CHANGE_USER; how++) {
        long long before;
        struct counted c;

        counted_open_known(f, &c);
        app_forget(&c.app, how == CHANGE_USER);
        before = prepared_by_name(&c.app);
        expect_trips(&c, 5, 2, 2);
        for (int i = 0; i < 2; i++)
            expect_trips(&c, 4, 2, 2);
        assert_int_equal(prepared_by_name(&c.app), before);
        assert_int_equal(stock_value(f, 1), 106 + 6 * how);
        counted_close(&c);
    }
}

/* --- another session --- */

/* The handle stays, and its session is another one. */
TEST_ON(test_a_handle_may_get_another_session, ON_MYSQL, 0)
{
    struct counted c;

    counted_open_known(f, &c);
    app_reset(&c.app);
    expect_trips(&c, 4, 2, 2);
    assert_int_equal(prepared_by_name(&c.app), 0);
    expect_trips(&c, 8, 1, 1);
    expect_trips(&c, 1, 1, 1);
    counted_close(&c);
}

/* A pooler tells the client library another number than the server's. */
TEST_ON(test_nothing_is_prepared_behind_a_pooler, ON_MYSQL, 0)
{
    struct counted c;

    counted_open_mariadb(f, &c);
    app_renumber(&c.app);
    work(f, &c.app, c.lock);
    expect_trips(&c, 5, 2, 2);
    expect_trips(&c, 4, 2, 2);
    counted_close(&c);
}

/* --- the session has changed --- */

/* Choose another database, and write the name of the one before to `left`. */
static void leave_database(struct app *app, char left[256])
{
    app_run(app, "SELECT DATABASE()");
    (void)snprintf(left, 256, "%s", app->first);
    app_run(app, "USE information_schema");
}

/* Another database is refused, as at the first adoption; what was prepared is
 * of use again once the application is back. */
TEST_ON(test_a_session_in_another_database_is_refused, ON_MYSQL, 0)
{
    sqlock_tx *tx = NULL;
    struct counted c;
    char database[256];

    counted_open_known(f, &c);
    leave_database(&c.app, database);
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_adopt(&tx, f->a, c.app.native, &f->err));
    assert_contains(f->err.message, "another database");
    app_run(&c.app, "USE %s", database);
    expect_trips(&c, 1, 1, 1);
    counted_close(&c);
}

/* In such a transaction, too, the session must have the registry's database. */
TEST_ON(test_such_a_transaction_in_another_database_is_refused, ON_MYSQL, 0)
{
    sqlock_tx *tx = NULL;
    struct counted c;
    char database[256];

    counted_open_known(f, &c);
    app_run(&c.app, "SET autocommit = 0");
    leave_database(&c.app, database);
    assert_int_not_equal(app_try(&c.app, "INSERT INTO %s.%s (id) VALUES (1)",
                                 database, stock_name(f)),
                         0);
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_adopt(&tx, f->a, c.app.native, &f->err));
    app_run(&c.app, "ROLLBACK");
    counted_close(&c);
}

/* A result that the application has not read yet is told as such. */
TEST_ON(test_a_result_in_progress_is_refused, ON_MYSQL, 0)
{
    sqlock_tx *tx = NULL;
    struct counted c;

    counted_open_known(f, &c);
    app_begin_result(&c.app, "SELECT 1");
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_adopt(&tx, f->a, c.app.native, &f->err));
    assert_contains(f->err.message, "a result is in progress");
    app_end_result(&c.app);
    expect_trips(&c, 1, 1, 1);
    counted_close(&c);
}

/* An answer may have more results than the one that was read. */
TEST_ON(test_a_result_that_is_still_to_come_is_refused, ON_MYSQL, 0)
{
    sqlock_tx *tx = NULL;
    struct counted c;

    counted_open_known(f, &c);
    app_begin_result(&c.app, "BEGIN NOT ATOMIC SELECT 1; SELECT 2; END");
    app_end_result(&c.app);
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_adopt(&tx, f->a, c.app.native, &f->err));
    assert_contains(f->err.message, "a result is in progress");
    counted_close(&c);
}

/* --- a beginning that is none --- */

/* Let the session run something else when a transaction is to begin there. */
static void replace_begin(struct fixture *f, struct app *app, const char *body)
{
    app_run(app, "PREPARE `sqlock_%s_begin` FROM '%s'", f->a->store.number,
            body);
}

/* Nothing has begun, or something has in spite of an error: the transaction is
 * begun as at the first adoption, and is whole. */
TEST_ON(test_a_transaction_begins_whatever_the_session_runs, ON_MYSQL, 0)
{
    static const char *const bodies[] = {
        "DO ?",
        "BEGIN NOT ATOMIC IF ? IS NULL OR TRUE THEN START TRANSACTION; "
        "SIGNAL SQLSTATE ''45001'' SET MYSQL_ERRNO = 30001; END IF; END",
    };
    struct counted c;
    sqlock_tx *tx;

    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        int64_t before;

        counted_open_known(f, &c);
        before = stock_value(f, 1);
        replace_begin(f, &c.app, bodies[i]);
        tx = tx_adopt(f, &c.app);
        assert_ok(sqlock_tx_guard(tx, c.lock, &f->err));
        change(f, &c.app);
        assert_ok(sqlock_tx_rollback(tx, &f->err));
        assert_int_equal(stock_value(f, 1), before);
        replace_begin(f, &c.app, bodies[i]);
        tx = tx_adopt(f, &c.app);
        assert_ok(sqlock_tx_guard(tx, c.lock, &f->err));
        change(f, &c.app);
        assert_ok(sqlock_tx_commit(tx, &f->err));
        assert_int_equal(stock_value(f, 1), before + 1);
        counted_close(&c);
    }
}

/* --- the registry --- */

/* A registry uses nothing that another one has left in the session. */
TEST_ON(test_a_connection_outlives_a_registry, ON_MYSQL, 0)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry = fixture_registry(f, &options);
    sqlock_lock *other;
    struct counted c;

    counted_open_mariadb(f, &c);
    other = take_other(f, registry);
    for (int i = 0; i < 3; i++) {
        sqlock_tx *tx = NULL;

        assert_ok(sqlock_tx_adopt(&tx, registry, c.app.native, &f->err));
        assert_ok(sqlock_tx_guard(tx, other, &f->err));
        assert_ok(sqlock_tx_commit(tx, &f->err));
    }
    lock_end(other);
    assert_ok(sqlock_registry_close(registry, &f->err));
    expect_trips(&c, 4, 2, 2);
    expect_trips(&c, 8, 1, 1);
    expect_trips(&c, 1, 1, 1);
    assert_int_equal(prepared_by_name(&c.app), 6);
    counted_close(&c);
}

/* A new connection may get the address of the old one's handle. */
TEST_ON(test_a_registry_outlives_connections, ON_MYSQL, 0)
{
    for (int i = 0; i < 3; i++) {
        struct counted c;

        counted_open_mariadb(f, &c);
        expect_trips(&c, 4, 2, 2);
        expect_trips(&c, 8, 1, 1);
        expect_trips(&c, 1, 1, 1);
        counted_close(&c);
    }
}

/* A child process inherits the connection, and may not use the registry. */
TEST_ON(test_a_child_process_is_refused, ON_MYSQL, 0)
{
    sqlock_tx *tx = NULL;
    struct counted c;
    int status = -1;
    pid_t pid;

    counted_open_known(f, &c);
    (void)trips(&c);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(sqlock_tx_adopt(&tx, f->a, c.app.native, NULL) == SQLOCK_EFORK
                  ? 0
                  : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(trips(&c), 0);
    expect_trips(&c, 1, 1, 1);
    counted_close(&c);
}
