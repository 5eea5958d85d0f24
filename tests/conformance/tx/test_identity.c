/*
 * test_identity.c - which connections of the application lead to the database
 * that has the registry's locks, when the server that answers changes
 */
#include "suite.h"

#include <stdio.h>

#include "lease/store.h"
#include "support/around.h"

static void adopt_and_end(struct fixture *f, sqlock_registry *registry)
{
    struct app app;
    sqlock_tx *tx;

    app_open(&app, f->database, f->url);
    assert_ok(sqlock_tx_adopt(&tx, registry, app.native, &f->err));
    assert_ok(sqlock_tx_rollback(tx, &f->err));
    app_close(&app);
}

/* --- another server takes over --- */

/* A driver by which the row of a table says who the server is. */
static struct around named;
static sqlock_dialect named_dialect;
static struct lk_sql named_statements[256];
static char who[96];

/* Copy the driver's statements, but ask the row instead of the server. */
static void copy_statements(const struct lk_sql *real)
{
    struct lk_sql *out = named_statements;

    for (; real->text != NULL; real++) {
        assert_true(out < named_statements + 255);
        *out = *real;
        if (real->kind == SQLOCK_SQL_IDENTITY) {
            out->text = who;
            out->count = 0;
        }
        out++;
    }
}

static void say(struct fixture *f, const char *name)
{
    (void)sql_run(&f->sql, "UPDATE %s_who SET who = '%s'", stock_name(f), name);
}

static sqlock_registry *open_named(struct fixture *f)
{
    sqlock_options options = fixture_options(f);
    char url[1024];

    (void)sql_run(&f->sql, "CREATE TABLE %s_who (who VARCHAR(20))",
                  stock_name(f));
    (void)sql_run(&f->sql, "INSERT INTO %s_who VALUES ('one')", stock_name(f));
    (void)snprintf(who, sizeof who, "SELECT who FROM %s_who", stock_name(f));
    if (around_make(&named, f, "named")) {
        copy_statements(named.real->dialect->statements);
        named_dialect = *named.real->dialect;
        named_dialect.statements = named_statements;
        named.driver.dialect = &named_dialect;
        around_register(&named);
    }
    return fixture_registry_at(f, around_url(url, &named, f), &options);
}

static void close_named(struct fixture *f, sqlock_registry *registry)
{
    registry_end(registry);
    (void)sql_run(&f->sql, "DROP TABLE %s_who", stock_name(f));
}

/* Both connections lead to the new server. */
TEST(test_another_server_is_adopted_when_the_registry_has_it)
{
    sqlock_registry *registry = open_named(f);

    adopt_and_end(f, registry);
    say(f, "two");
    adopt_and_end(f, registry);
    say(f, "three");
    adopt_and_end(f, registry);
    close_named(f, registry);
}

/* Note that epoch, as of a session that is opened now. */
static void note_epoch(struct lk_epoch *epoch, const char *now)
{
    uint32_t changes = epoch->changes;

    assert_true(lk_epoch_note(epoch, now, &changes));
}

/* The application's connection, which still reads what was there before, leads
 * to the server that the registry has left: its epoch has changed. */
TEST_OF_ROWS(test_the_server_before_is_refused_after_a_change_of_epoch,
             ON_MYSQL, 0)
{
    sqlock_registry *registry = open_named(f);
    struct lk_epoch *epoch = &((struct lk_store *)registry)->db.epoch;
    sqlock_tx *tx = NULL;
    struct app app;

    note_epoch(epoch, "before");
    adopt_and_end(f, registry);
    app_open(&app, f->database, f->url);
    app_begin_at(&app, "REPEATABLE READ");
    app_run(&app, "%s", who);
    say(f, "two");
    note_epoch(epoch, "after");
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_adopt(&tx, registry, app.native, &f->err));
    assert_contains(f->err.message, "another database");
    app_run(&app, "ROLLBACK");
    assert_ok(sqlock_tx_adopt(&tx, registry, app.native, &f->err));
    assert_ok(sqlock_tx_rollback(tx, &f->err));
    app_close(&app);
    close_named(f, registry);
}

/* An application whose connection is recognized, and leads to the server "one"
 * for good. */
static sqlock_registry *open_recognized(struct fixture *f, struct app *app)
{
    sqlock_registry *registry;

    if (database_is_pooled(f->database))
        skip_or_fail("a pooler shares the sessions");
    registry = open_named(f);
    note_epoch(&((struct lk_store *)registry)->db.epoch, "before");
    app_open(app, f->database, f->url);
    app_run(app, "CREATE TEMPORARY TABLE %s_who AS SELECT 'one' AS who",
            stock_name(f));
    for (int i = 0; i < 3; i++) {
        sqlock_tx *tx;

        assert_ok(sqlock_tx_adopt(&tx, registry, app->native, &f->err));
        assert_ok(sqlock_tx_rollback(tx, &f->err));
    }
    assert_int_equal(
        app_integer(app, "SELECT count(*) FROM pg_prepared_statements"), 2);
    return registry;
}

static void expect_refusal(struct fixture *f, sqlock_registry *registry,
                           struct app *app)
{
    sqlock_tx *tx = NULL;

    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_adopt(&tx, registry, app->native, &f->err));
    assert_contains(f->err.message, "another database");
    assert_false(app_in_transaction(app));
    app_close(app);
    close_named(f, registry);
}

/* It was recognized in the epoch before. */
TEST_ON(test_a_recognized_connection_is_refused_after_a_change_of_epoch,
        ON_POSTGRES, 0)
{
    struct app app;
    sqlock_registry *registry = open_recognized(f, &app);

    say(f, "two");
    note_epoch(&((struct lk_store *)registry)->db.epoch, "after");
    expect_refusal(f, registry, &app);
}

/* Nothing but another connection of the application has shown the change. */
TEST_ON(test_a_recognized_connection_is_refused_once_another_was_adopted,
        ON_POSTGRES, 0)
{
    struct app app;
    sqlock_registry *registry = open_recognized(f, &app);

    say(f, "two");
    adopt_and_end(f, registry);
    expect_refusal(f, registry, &app);
}
