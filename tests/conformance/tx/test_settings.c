/*
 * test_settings.c - an adopted connection keeps every setting that it had,
 * whatever the calls return
 */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/tap.h"

/* Make settings as an application, none of them the default. */
static void make_settings(struct fixture *f, struct app *app)
{
    switch (f->database->bit) {
    case ON_POSTGRES:
        app_run(app, "SET lock_timeout = '1234ms'");
        app_run(app, "SET statement_timeout = '54321ms'");
        app_run(app, "SET TimeZone = 'America/St_Johns'");
        app_run(app, "SET DateStyle = 'German'");
        app_run(app, "SET application_name = 'back office'");
        app_run(app, "PREPARE mine AS SELECT 1");
        break;
    case ON_MYSQL:
        app_run(app, "SET innodb_lock_wait_timeout = 37");
        app_run(app, "SET time_zone = '-03:30'");
        app_run(app, "SET sql_mode = 'ANSI_QUOTES'");
        app_run(app, "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci");
        if (app_try(app, "SET max_statement_time = 41.5") != 0)
            app_run(app, "SET max_execution_time = 41500");
        break;
    default:
        app_run(app, "PRAGMA busy_timeout = 1234");
        app_run(app, "PRAGMA foreign_keys = 1");
        app_run(app, "PRAGMA cache_size = 77");
        break;
    }
}

/* Lock names and rows of the application, with and without success, and leave
 * the transaction; another session has locked the name `held` and row 3. */
static void do_everything(struct fixture *f, struct app *app, const char *held)
{
    sqlock_table table = stock_table(f);
    sqlock_value one = sqlock_integer(1);
    sqlock_value three = sqlock_integer(3);
    sqlock_value none = sqlock_integer(999);
    const char *free_name = f->name;
    sqlock_tx *tx;

    assert_ok(sqlock_tx_adopt(&tx, f->a, app->native, &f->err));
    assert_ok(sqlock_tx_lock(tx, &free_name, 1, 0, false, NULL, &f->err));
    assert_ok(sqlock_tx_lock_row(tx, &table, &one, false, 0, &f->err));
    assert_fails(SQLOCK_ENOTFOUND,
                 sqlock_tx_lock_row(tx, &table, &none, false, 100, &f->err));
    if (f->database->bit != ON_SQLITE) {
        assert_fails(SQLOCK_EBUSY,
                     sqlock_tx_lock(tx, &held, 1, 0, false, NULL, &f->err));
        assert_fails(SQLOCK_ETIMEDOUT,
                     sqlock_tx_lock(tx, &held, 1, 1100, false, NULL, &f->err));
        assert_fails(
            SQLOCK_ETIMEDOUT,
            sqlock_tx_lock_row(tx, &table, &three, false, 1100, &f->err));
        assert_fails(SQLOCK_ETIMEDOUT,
                     sqlock_tx_lock_row(tx, &table, &three, true, 20, &f->err));
    }
    app_run(app, "UPDATE %s SET a = a + 1 WHERE id = 1", stock_name(f));
    assert_ok(sqlock_tx_leave(tx, &f->err));
}

static void test_adopted_connection_keeps_every_setting(void **state)
{
    struct fixture *f = *state;
    char held[80];
    struct session other = {0};
    struct app app;
    char *before;

    (void)snprintf(held, sizeof held, "%s/held", f->name);
    app_open(&app, f->database, f->url);
    make_settings(f, &app);
    if (f->database->bit != ON_SQLITE) {
        session_open(f, &other, NULL);
        assert_ok(lock_one(&other, held, 0, &f->err));
        app_run(&other.app, "UPDATE %s SET a = 1 WHERE id = 3", stock_name(f));
    }
    before = app_settings(&app);
    app_run(&app, "BEGIN");
    do_everything(f, &app, held);
    /* Compare within the transaction, and after its end. */
    settings_compare(&app, before);
    before = app_settings(&app);
    app_run(&app, "COMMIT");
    settings_compare(&app, before);
    assert_int_equal(stock_value(f, 1), 101);
    session_close(&other);
    app_close(&app);
}

/* A session with settings that are not the default, and their values before the
 * adoption. */
struct kept {
    struct session session;
    char *before;
};

static void kept_open(struct fixture *f, struct kept *kept)
{
    app_open(&kept->session.app, f->database, f->url);
    make_settings(f, &kept->session.app);
    kept->before = app_settings(&kept->session.app);
    assert_ok(sqlock_tx_adopt(&kept->session.tx, f->a, kept->session.app.native,
                              &f->err));
}

/* Roll back what has not been committed, and compare. */
static void kept_close(struct kept *kept)
{
    (void)sqlock_tx_rollback(kept->session.tx, NULL);
    kept->session.tx = NULL;
    assert_false(app_in_transaction(&kept->session.app));
    settings_compare(&kept->session.app, kept->before);
    session_close(&kept->session);
}

static void test_settings_are_kept_after_an_error(void **state)
{
    struct fixture *f = *state;
    struct kept kept;

    kept_open(f, &kept);
    assert_fails(SQLOCK_ESCHEMA,
                 sqlock_tx_execute(kept.session.tx,
                                   "SELECT 1 FROM nowhere_at_all", NULL, 0,
                                   NULL, &f->err));
    kept_close(&kept);
}

static void test_settings_are_kept_after_a_timeout(void **state)
{
    struct fixture *f = *state;
    struct session holder;

    session_open(f, &holder, NULL);
    assert_ok(lock_one(&holder, f->name, 0, &f->err));
    for (int commits = 1; commits >= 0; commits--) {
        struct kept kept;

        kept_open(f, &kept);
        assert_fails(SQLOCK_ETIMEDOUT,
                     lock_one(&kept.session, f->name, 1200, &f->err));
        if (commits == 1)
            session_commit(f, &kept.session);
        kept_close(&kept);
    }
    session_close(&holder);
}

/* In both sessions: the one that gets ERETRY, and the one that commits. */
static void test_settings_are_kept_after_a_deadlock(void **state)
{
    struct kept a;
    struct kept b;

    kept_open(*state, &a);
    kept_open(*state, &b);
    sessions_deadlock(*state, &a.session, &b.session);
    kept_close(&a);
    kept_close(&b);
}

static void test_settings_are_kept_after_a_failed_guard(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct kept kept;

    lock_take(lock, 200 * SLOWNESS);
    fixture_await_expiry(f, f->name);
    kept_open(f, &kept);
    assert_fails(SQLOCK_EEXPIRED,
                 sqlock_tx_guard(kept.session.tx, lock, &f->err));
    session_commit_fails(SQLOCK_EEXPIRED, f, &kept.session);
    kept_close(&kept);
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

static void test_settings_are_kept_after_a_busy_guard(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct sql dba;
    struct kept kept;

    lock_take(lock, 0);
    kept_open(f, &kept);
    fixture_lock_row(f, &dba, lock);
    assert_fails(SQLOCK_EBUSY, sqlock_tx_guard(kept.session.tx, lock, &f->err));
    kept_close(&kept);
    fixture_unlock_row(&dba);
    lock_end(lock);
}

/* --- a connection of the registry --- */

static void execute_and_commit(struct fixture *f, sqlock_registry *registry,
                               const char *const *texts, size_t count)
{
    sqlock_tx *tx;

    assert_ok(sqlock_tx_begin(&tx, registry, &f->err));
    for (size_t i = 0; i < count; i++)
        assert_ok(sqlock_tx_execute(tx, texts[i], NULL, 0, NULL, &f->err));
    assert_ok(sqlock_tx_commit(tx, &f->err));
}

/* With a setting left on the connection, the registry's next statements would
 * not find the lock table, or not be allowed to write.  Savepoints leave none,
 * so their connection is used again. */
static void test_no_setting_stays_on_a_connection_of_the_registry(void **state)
{
    static const char *const kept[] = {"SAVEPOINT s", "ROLLBACK TO SAVEPOINT s",
                                       "RELEASE SAVEPOINT s"};
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    const char *setting =
        f->database->bit == ON_POSTGRES ? "SET search_path = pg_catalog"
        : f->database->bit == ON_MYSQL  ? "USE information_schema"
                                        : "PRAGMA query_only = 1";
    sqlock_registry *registry;
    sqlock_lock *lock;
    uint64_t opened;

    options.pool_size = 1;
    registry = fixture_tapped(f, &options);
    lock = lock_obtain(registry, f->name);
    execute_and_commit(f, registry, &setting, 1);
    lock_take(lock, 0);
    lock_give(lock);
    execute_and_commit(f, registry, kept, 3); /* no more are opened from here */
    opened = tap_count(TAP_OPEN);
    execute_and_commit(f, registry, kept, 3);
    lock_take(lock, 0);
    lock_give(lock);
    assert_int_equal(tap_count(TAP_OPEN), opened);
    lock_drop(lock);
    registry_end(registry);
}

/* Of the connections that the registry may use again, no setting and no lock of
 * the session's may be left by a function either. */
static void test_no_function_leaves_a_setting_on_a_connection(void **state)
{
    static const char *const on_postgres[] = {
        "SELECT set_config('search_path', 'pg_catalog', false)",
        "/* */ SELECT SET_CONFIG ('search_path', 'pg_catalog', 'false')",
        "SELECT pg_advisory_lock(20281)",
    };
    static const char *const on_mysql[] = {
        "/*!80000 SET SESSION TRANSACTION READ ONLY */",
        "/*M! SET SESSION TRANSACTION READ ONLY */",
        "SELECT GET_LOCK('sqlock test', 0)",
    };
    struct fixture *f = *state;
    bool is_postgres = f->database->bit == ON_POSTGRES;
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    sqlock_lock *lock;

    options.pool_size = 1;
    registry = fixture_tapped(f, &options);
    lock = lock_obtain(registry, f->name);
    for (size_t i = 0; i < 3; i++) {
        uint64_t opened;

        lock_take_and_give(lock);
        opened = tap_count(TAP_OPEN);
        execute_and_commit(f, registry,
                           is_postgres ? &on_postgres[i] : &on_mysql[i], 1);
        lock_take_and_give(lock);
        assert_int_equal(tap_count(TAP_OPEN), opened + 1);
    }
    lock_drop(lock);
    registry_end(registry);
}

/* As query taggers, query builders and people write them. */
static void test_a_statement_about_rows_costs_no_connection(void **state)
{
    static const char *const texts[] = {
        "/* app:web */ SELECT 1",
        "-- app:web\n  -- again\r\n\tSELECT 1",
        "EXPLAIN SELECT 1",
        "WITH one AS (SELECT 1) SELECT * FROM one",
    };
    static const char *const of_postgres[] = {
        "/**/(SELECT 1)",
        "SHOW TimeZone",
        "VALUES (1)",
        "SELECT set_config('application_name', 'me', true)",
    };
    static const char *const of_mysql[] = {
        "( /* in */ (SELECT 1))",
        "SHOW TABLES",
        "# tagged\nDESCRIBE information_schema.TABLES",
        "/* SET */ /*+ x */ SELECT 1",
    };
    const size_t usual = sizeof texts / sizeof *texts;
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    const char *const *own = of_postgres;
    sqlock_registry *registry;
    uint64_t opened;

    if (f->database->bit == ON_MYSQL)
        own = of_mysql;
    options.pool_size = 1;
    registry = fixture_tapped(f, &options);
    execute_and_commit(f, registry, texts, usual);
    opened = tap_count(TAP_OPEN);
    for (size_t i = 0; i < usual; i++)
        execute_and_commit(f, registry, &texts[i], 1);
    for (size_t i = 0; f->database->bit != ON_SQLITE && i < 4; i++)
        execute_and_commit(f, registry, &own[i], 1);
    assert_int_equal(tap_count(TAP_OPEN), opened);
    registry_end(registry);
}

/* --- a session on a standby --- */

static int refuse_to_write(void *context, const struct tap_event *event)
{
    const enum tap_call *refused = context;

    return event->call == *refused ? SQLOCK_EREADONLY : 0;
}

/* Write and commit, while the server refuses that call. */
static int write_on_standby(struct fixture *f, sqlock_registry *registry,
                            enum tap_call refused)
{
    char text[160];
    sqlock_tx *tx;
    int rc;

    (void)snprintf(text, sizeof text, "UPDATE %s SET a = 5 WHERE id = 1",
                   stock_name(f));
    tap_hooks(refuse_to_write, NULL, &refused);
    rc = sqlock_tx_begin(&tx, registry, &f->err);
    if (rc == 0) {
        rc = sqlock_tx_execute(tx, text, NULL, 0, NULL, &f->err);
        if (rc == 0)
            rc = sqlock_tx_commit(tx, &f->err);
        else
            (void)sqlock_tx_rollback(tx, NULL);
    }
    tap_hooks(NULL, NULL, NULL);
    return rc;
}

/* After a failover a pool may have sessions on a server that is a standby now:
 * the next transaction gets a new one. */
static void test_no_session_on_a_standby_is_used_again(void **state)
{
    static const enum tap_call refused[] = {TAP_BEGIN, TAP_EXECUTE, TAP_COMMIT};
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    bool is_file = f->database->bit == ON_SQLITE; /* it has no standby */
    sqlock_registry *registry;

    options.pool_size = 2;
    registry = fixture_tapped(f, &options);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        sqlock_tx *both[2];
        uint64_t opened;

        for (int j = 0; j < (is_file ? 1 : 2); j++)
            assert_ok(sqlock_tx_begin(&both[j], registry, &f->err));
        for (int j = 0; j < (is_file ? 1 : 2); j++)
            assert_ok(sqlock_tx_rollback(both[j], &f->err));
        assert_fails(SQLOCK_EREADONLY,
                     write_on_standby(f, registry, refused[i]));
        opened = tap_count(TAP_OPEN);
        assert_ok(sqlock_tx_begin(&both[0], registry, &f->err));
        assert_int_equal(tap_count(TAP_OPEN), opened + (is_file ? 0 : 1));
        assert_ok(sqlock_tx_rollback(both[0], &f->err));
    }
    registry_end(registry);
}

static const struct test tests[] = {
    TEST_OF_ROWS(test_adopted_connection_keeps_every_setting, ON_ALL, 0),
    TEST(test_settings_are_kept_after_an_error),
    TEST_OF_ROWS(test_settings_are_kept_after_a_timeout, ON_SERVERS, IN_SQLOCK),
    TEST_OF_ROWS(test_settings_are_kept_after_a_deadlock, ON_SERVERS,
                 IN_SQLOCK),
    TEST_OF_ROWS(test_settings_are_kept_after_a_failed_guard, ON_ALL, 0),
    TEST_OF_ROWS(test_settings_are_kept_after_a_busy_guard, ON_SERVERS,
                 IN_SQLOCK),
    TEST_OF_ROWS(test_no_setting_stays_on_a_connection_of_the_registry, ON_ALL,
                 IN_SQLOCK),
    TEST_ON(test_no_function_leaves_a_setting_on_a_connection, ON_SERVERS, 0),
    TEST(test_a_statement_about_rows_costs_no_connection),
    TEST_OF_ROWS(test_no_session_on_a_standby_is_used_again, ON_ALL, IN_SQLOCK),
};
const struct topic topic_settings = TOPIC(tests);
