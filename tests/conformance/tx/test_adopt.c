/*
 * test_adopt.c - values that statements bind, and connections that are not
 * adopted in silence
 */
#include "suite.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/workers.h"

TEST(test_statement_binds_and_gives_rows)
{
    sqlock_tx *tx = tx_begin(f);
    const sqlock_value values[] = {sqlock_text("it's ? \"x\""),
                                   sqlock_integer(-7), sqlock_text(NULL),
                                   sqlock_integer(2)};
    sqlock_result result = {0};
    char text[512];

    (void)snprintf(text, sizeof text,
                   "UPDATE %s SET state = ?, a = ?, owner = ? /* ? */ -- ?%s"
                   "WHERE id = ? AND state <> '?' -- ?",
                   stock_name(f),
                   f->database->bit == ON_POSTGRES ? "\r" : "\n");
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
TEST_ON(test_a_pipeline_is_not_adopted, ON_POSTGRES, 0)
{
    static struct adopting adopting;
    static struct worker worker;
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
TEST(test_adopting_prints_nothing)
{
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
