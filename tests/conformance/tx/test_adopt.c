/*
 * test_adopt.c - beginning a transaction, adopting a connection, and ending
 */
#include "suite.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/server.h"
#include "support/tap.h"
#include "support/workers.h"

static void add_one(struct fixture *f, sqlock_tx *tx, int id)
{
    sqlock_result result = {0};
    sqlock_value key = sqlock_integer(id);
    char text[256];

    (void)snprintf(text, sizeof text, "UPDATE %s SET a = a + 1 WHERE id = ?",
                   stock_name(f));
    assert_ok(sqlock_tx_execute(tx, text, &key, 1, &result, &f->err));
    assert_int_equal(result.affected, 1);
    sqlock_result_clear(&result);
}

static void test_commit_keeps_and_rollback_undoes(void **state)
{
    struct fixture *f = *state;
    sqlock_tx *tx = tx_begin(f);

    add_one(f, tx, 1);
    assert_ok(sqlock_tx_commit(tx, &f->err));
    assert_int_equal(stock_value(f, 1), 101);

    tx = tx_begin(f);
    add_one(f, tx, 1);
    assert_ok(sqlock_tx_rollback(tx, &f->err));
    assert_int_equal(stock_value(f, 1), 101);
    assert_ok(sqlock_tx_rollback(NULL, &f->err));
}

static void test_statement_binds_and_gives_rows(void **state)
{
    struct fixture *f = *state;
    sqlock_tx *tx = tx_begin(f);
    const sqlock_value values[] = {sqlock_text("it's ? \"x\""),
                                   sqlock_integer(-7), sqlock_text(NULL),
                                   sqlock_integer(2)};
    sqlock_result result = {0};
    char text[512];

    (void)snprintf(text, sizeof text,
                   "UPDATE %s SET state = ?, a = ?, owner = ? /* ? */ "
                   "WHERE id = ? AND state <> '?' -- ?",
                   stock_name(f));
    assert_ok(sqlock_tx_execute(tx, text, values, 4, &result, &f->err));
    assert_int_equal(result.affected, 1);
    (void)snprintf(text, sizeof text,
                   "SELECT state, a, owner, version FROM %s WHERE id = ?",
                   stock_name(f));
    assert_ok(sqlock_tx_execute(tx, text, &values[3], 1, &result, &f->err));
    assert_int_equal(result.rows, 1);
    assert_int_equal(result.columns, 4);
    assert_string_equal(result.cells[0].text, "it's ? \"x\"");
    assert_int_equal(result.cells[1].integer, -7);
    assert_int_equal(result.cells[2].type, SQLOCK_NULL);
    assert_int_equal(result.cells[3].integer, 1);
    sqlock_result_clear(&result);
    assert_ok(sqlock_tx_commit(tx, &f->err));
}

static void test_adopted_idle_connection_commits(void **state)
{
    struct fixture *f = *state;
    struct app app;
    sqlock_tx *tx;

    app_open(&app, f->database, f->url);
    tx = tx_adopt(f, &app);
    assert_true(app_in_transaction(&app));
    add_one(f, tx, 1);
    assert_ok(sqlock_tx_commit(tx, &f->err));
    assert_false(app_in_transaction(&app));
    assert_int_equal(stock_value(f, 1), 101);
    app_close(&app);
}

static void test_joined_transaction_is_left_to_the_application(void **state)
{
    struct fixture *f = *state;
    struct app app;
    sqlock_tx *tx;

    app_open(&app, f->database, f->url);
    app_run(&app, "BEGIN");
    app_run(&app, "UPDATE %s SET a = 7 WHERE id = 2", stock_name(f));
    tx = tx_adopt(f, &app);
    add_one(f, tx, 1);
    assert_ok(sqlock_tx_leave(tx, &f->err));
    assert_true(app_in_transaction(&app));
    assert_int_equal(stock_value(f, 1), 100);
    app_run(&app, "COMMIT");
    assert_int_equal(stock_value(f, 1), 101);
    assert_int_equal(stock_value(f, 2), 7);

    app_run(&app, "BEGIN");
    app_run(&app, "UPDATE %s SET a = 8 WHERE id = 2", stock_name(f));
    tx = tx_adopt(f, &app);
    add_one(f, tx, 1);
    assert_ok(sqlock_tx_rollback(tx, &f->err));
    assert_false(app_in_transaction(&app));
    assert_int_equal(stock_value(f, 1), 101);
    assert_int_equal(stock_value(f, 2), 7);
    app_close(&app);
}

/* A garbage collector is late: the application has rolled back, and is in
 * another transaction by then, which goes on. */
static void test_abandoning_leaves_the_next_transaction_alone(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct app app;
    sqlock_tx *tx;

    lock_take(lock, 0);
    app_open(&app, f->database, f->url);
    tx = tx_adopt(f, &app);
    assert_ok(sqlock_tx_guard(tx, lock, &f->err));
    add_one(f, tx, 1);
    app_run(&app, "ROLLBACK");
    app_run(&app, "BEGIN");
    app_run(&app, "UPDATE %s SET a = 7 WHERE id = 2", stock_name(f));
    assert_ok(sqlock_tx_abandon(tx, &f->err));
    assert_true(app_in_transaction(&app));
    app_run(&app, "COMMIT");
    assert_int_equal(stock_value(f, 1), 100);
    assert_int_equal(stock_value(f, 2), 7);
    lock_give(lock); /* not guarded any more */
    lock_drop(lock);
    app_close(&app);
    assert_ok(sqlock_tx_abandon(NULL, &f->err));
}

/* Nor is a connection touched that the application has closed by then, and
 * whose memory is another's.  (SQLite keeps a handle with statements open.) */
static void test_abandoning_spares_a_closed_connection(void **state)
{
    struct fixture *f = *state;
    struct app app;
    struct app next;
    sqlock_tx *tx;

    app_open(&app, f->database, f->url);
    tx = tx_adopt(f, &app);
    add_one(f, tx, 1);
    app_run(&app, "ROLLBACK");
    app_close(&app);
    app_open(&next, f->database, f->url);
    app_run(&next, "BEGIN");
    app_run(&next, "UPDATE %s SET a = 8 WHERE id = 2", stock_name(f));
    assert_ok(sqlock_tx_abandon(tx, &f->err));
    app_run(&next, "COMMIT");
    app_close(&next);
    assert_int_equal(stock_value(f, 1), 100);
    assert_int_equal(stock_value(f, 2), 8);
    tx = tx_begin(f);
    add_one(f, tx, 1);
    assert_ok(sqlock_tx_abandon(tx, &f->err));
    assert_int_equal(stock_value(f, 1), 100);
}

static void test_own_transaction_cannot_be_left(void **state)
{
    struct fixture *f = *state;
    sqlock_tx *tx = tx_begin(f);

    assert_fails(SQLOCK_EINVAL, sqlock_tx_leave(tx, &f->err));
    assert_ok(sqlock_tx_commit(tx, &f->err));
}

struct adopting {
    struct fixture *f;
    struct app app;
    atomic_bool is_over;
};

static int adopt_a_pipeline(struct worker *worker)
{
    struct adopting *adopting = worker->context;
    sqlock_tx *tx = NULL;
    int rc = sqlock_tx_adopt(&tx, adopting->f->a, adopting->app.native,
                             &worker->err);

    atomic_store(&adopting->is_over, true);
    worker_expect(worker, SQLOCK_EINVAL, rc);
    if (tx != NULL || strstr(worker->err.message, "pipeline") == NULL)
        return worker_fail(worker, "%s", worker->err.message);
    return 0;
}

/* In a pipeline our statements would go behind those of the application, and
 * their results, too: the call would wait for ever. */
static void test_a_pipeline_is_not_adopted(void **state)
{
    static struct adopting adopting;
    static struct worker worker;
    struct fixture *f = *state;
    struct app app;
    sqlock_tx *tx;

    app_open(&app, f->database, f->url);
    if (!app_pipeline(&app, true))
        skip();
    adopting = (struct adopting){.f = f, .app = app};
    worker_start(&worker, adopt_a_pipeline, &adopting);
    assert_becomes_true(atomic_load(&adopting.is_over), PATIENCE_MS);
    worker_join(&worker);
    (void)app_pipeline(&app, false);
    tx = tx_adopt(f, &app);
    assert_ok(sqlock_tx_rollback(tx, &f->err));
    app_close(&app);
}

/* Standard error belongs to the application: no message may go there. */
static void test_adopting_prints_nothing(void **state)
{
    struct fixture *f = *state;
    FILE *printed = tmpfile();
    int errors = dup(STDERR_FILENO);
    struct app app;
    sqlock_tx *tx;
    int rc;

    assert_non_null(printed);
    assert_true(errors >= 0);
    app_open(&app, f->database, f->url);
    (void)fflush(stderr);
    assert_true(dup2(fileno(printed), STDERR_FILENO) >= 0);
    rc = sqlock_tx_adopt(&tx, f->a, app.native, &f->err);
    if (rc == 0)
        rc = sqlock_tx_commit(tx, &f->err);
    (void)fflush(stderr);
    assert_true(dup2(errors, STDERR_FILENO) >= 0);
    (void)close(errors);
    assert_ok(rc);
    assert_int_equal(lseek(fileno(printed), 0, SEEK_END), 0);
    (void)fclose(printed);
    app_close(&app);
}

/* --- results of the end --- */

/* A statement fails.  On PostgreSQL that aborts the transaction, so the commit
 * returns the error (F26); elsewhere the transaction goes on, and commits. */
static void test_commit_of_an_aborted_transaction_says_so(void **state)
{
    struct fixture *f = *state;
    sqlock_tx *tx = tx_begin(f);
    int rc;

    add_one(f, tx, 1);
    assert_fails(SQLOCK_ESCHEMA,
                 sqlock_tx_execute(tx, "SELECT 1 FROM nowhere_at_all", NULL, 0,
                                   NULL, &f->err));
    rc = sqlock_tx_commit(tx, &f->err);
    if (f->database->bit == ON_POSTGRES) {
        assert_fails(SQLOCK_ESCHEMA, rc);
        assert_int_equal(stock_value(f, 1), 100);
    } else {
        assert_ok(rc);
        assert_int_equal(stock_value(f, 1), 101);
    }
}

static void test_transaction_ended_behind_our_back_is_noticed(void **state)
{
    struct fixture *f = *state;
    const char *name = f->name;
    struct app app;
    sqlock_tx *tx;

    app_open(&app, f->database, f->url);
    tx = tx_adopt(f, &app);
    app_run(&app, "COMMIT");
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_lock(tx, &name, 1, 0, false, NULL, &f->err));
    assert_fails(SQLOCK_EINVAL, sqlock_tx_commit(tx, &f->err));

    tx = tx_adopt(f, &app);
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_execute(tx, "COMMIT", NULL, 0, NULL, &f->err));
    assert_fails(SQLOCK_EINVAL, sqlock_tx_commit(tx, &f->err));
    app_close(&app);
}

/* sqlock_tx_leave() frees the transaction, although the application has ended
 * it: the result is ELOST, not EINVAL, which would say that nothing was
 * done. */
static void test_transaction_ended_before_it_is_left_is_lost(void **state)
{
    struct fixture *f = *state;
    struct app app;
    sqlock_tx *tx;

    app_open(&app, f->database, f->url);
    tx = tx_adopt(f, &app);
    app_run(&app, "COMMIT");
    assert_fails(SQLOCK_ELOST, sqlock_tx_leave(tx, &f->err));
    assert_contains(f->err.message, "ended the transaction itself");
    app_close(&app);
}

static void test_killed_session_is_lost_not_committed(void **state)
{
    struct fixture *f = *state;

    /* The loss is noticed by a statement, or only by the commit. */
    for (int notices = 1; notices >= 0; notices--) {
        struct app app;
        sqlock_tx *tx;
        int64_t id;
        int rc;

        app_open(&app, f->database, f->url);
        id = app_session(&app);
        tx = tx_adopt(f, &app);
        add_one(f, tx, 1);
        server_end_sessions(&f->sql, &id, 1);
        if (notices == 1)
            assert_fails(SQLOCK_ELOST, sqlock_tx_execute(tx, "SELECT 1", NULL,
                                                         0, NULL, &f->err));
        rc = sqlock_tx_commit(tx, &f->err);
        assert_code_of(SQLOCK_ELOST,
                       notices == 1 ? SQLOCK_ELOST : SQLOCK_EUNCERTAIN, rc,
                       &f->err);
        assert_int_equal(stock_value(f, 1), 100);
        app_close(&app);
    }
}

/* The server ends an idle transaction that has a name locked (F44): another
 * transaction gets the name, and calls on the ended one return ELOST. */
static void test_idle_transaction_timeout_is_told_as_lost(void **state)
{
    struct fixture *f = *state;
    const char *name = f->name;
    struct app app;
    sqlock_tx *tx;

    app_open(&app, f->database, f->url);
    if (f->database->bit == ON_POSTGRES)
        app_run(&app, "SET idle_in_transaction_session_timeout = 300");
    else if (app_try(&app, "SET idle_transaction_timeout = 1") != 0)
        skip_or_fail("no idle_transaction_timeout on this server");
    tx = tx_adopt(f, &app);
    assert_ok(sqlock_tx_lock(tx, &name, 1, 0, false, NULL, &f->err));
    /* Wait until the server has ended the transaction. */
    {
        sqlock_tx *other = tx_begin(f);

        assert_ok(
            sqlock_tx_lock(other, &name, 1, PATIENCE_MS, false, NULL, &f->err));
        assert_ok(sqlock_tx_rollback(other, &f->err));
    }
    assert_fails(SQLOCK_ELOST,
                 sqlock_tx_lock(tx, &name, 1, 0, false, NULL, &f->err));
    assert_fails(SQLOCK_ELOST, sqlock_tx_commit(tx, &f->err));
    app_close(&app);
}

static void test_commit_without_an_answer_is_uncertain(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *tapped = fixture_tapped(f, NULL);
    sqlock_tx *tx;

    assert_ok(sqlock_tx_begin(&tx, tapped, &f->err));
    add_one(f, tx, 1);
    tap_hooks(NULL, tap_lose_commit, NULL);
    assert_fails(SQLOCK_EUNCERTAIN, sqlock_tx_commit(tx, &f->err));
    tap_hooks(NULL, NULL, NULL);
    assert_int_equal(stock_value(f, 1), 101);
    registry_end(tapped);
}

static int lose_chain(void *context, const struct tap_event *event, int rc)
{
    (void)context;
    return event->call == TAP_EXECUTE && event->text != NULL &&
                   strcmp(event->text, "COMMIT AND CHAIN") == 0
               ? SQLOCK_EUNCERTAIN
               : rc;
}

/* The answer to COMMIT AND CHAIN is lost: the result is EUNCERTAIN, not ELOST,
 * which would say that nothing was committed. */
static void test_statement_that_may_commit_without_an_answer(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *tapped = fixture_tapped(f, NULL);
    sqlock_tx *tx;

    assert_ok(sqlock_tx_begin(&tx, tapped, &f->err));
    add_one(f, tx, 1);
    tap_hooks(NULL, lose_chain, NULL);
    assert_fails(SQLOCK_EUNCERTAIN, sqlock_tx_execute(tx, "COMMIT AND CHAIN",
                                                      NULL, 0, NULL, &f->err));
    tap_hooks(NULL, NULL, NULL);
    assert_int_equal(stock_value(f, 1), 101);
    assert_fails(SQLOCK_EUNCERTAIN, sqlock_tx_commit(tx, &f->err));
    registry_end(tapped);
}

static const struct test tests[] = {
    TEST(test_commit_keeps_and_rollback_undoes),
    TEST(test_statement_binds_and_gives_rows),
    TEST(test_adopted_idle_connection_commits),
    TEST(test_joined_transaction_is_left_to_the_application),
    TEST(test_abandoning_leaves_the_next_transaction_alone),
    TEST_ON(test_abandoning_spares_a_closed_connection, ON_SERVERS, IN_SQLOCK),
    TEST(test_own_transaction_cannot_be_left),
    TEST_ON(test_a_pipeline_is_not_adopted, ON_POSTGRES, 0),
    TEST(test_adopting_prints_nothing),
    TEST(test_commit_of_an_aborted_transaction_says_so),
    TEST_OF_ROWS(test_transaction_ended_behind_our_back_is_noticed, ON_ALL, 0),
    TEST_OF_ROWS(test_transaction_ended_before_it_is_left_is_lost, ON_ALL, 0),
    TEST_ON(test_killed_session_is_lost_not_committed, ON_SERVERS, IN_SQLOCK),
    TEST_OF_ROWS(test_idle_transaction_timeout_is_told_as_lost, ON_SERVERS,
                 IN_SQLOCK),
    TEST(test_commit_without_an_answer_is_uncertain),
    TEST_OF_ROWS(test_statement_that_may_commit_without_an_answer, ON_SERVERS,
                 IN_SQLOCK),
};
const struct topic topic_adopt = TOPIC(tests);
