/*
 * test_input.c - bad input is refused in one clear line, and nothing is written
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

#define A16 "aaaaaaaaaaaaaaaa"
#define A64 A16 A16 A16 A16

TEST_OF_ROWS(test_names_with_sql_in_them_are_refused, ON_ALL, 0)
{
    static const char *const bad[] = {
        "",
        "a b",
        "a;DROP TABLE x",
        "a\"b",
        "a`b",
        "a'b",
        "1a",
        "a--",
        "a/*",
        "a.b.c",
        ".a",
        "a.",
        "t\xc3\xa4",
        "a\n",
        "a\\",
        NULL,
        A64 A64 A64 A64 A64,
    };
    sqlock_value one = sqlock_integer(1);
    sqlock_row_version version = {.type = SQLOCK_INT64, .integer = 1};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sqlock_assignment set[] = {{bad[i], sqlock_integer(0)}};
        sqlock_tx *tx = tx_begin(f);
        sqlock_table table = stock_table(f);

        assert_fails(SQLOCK_EINVAL, sqlock_tx_update(tx, &table, &one, &version,
                                                     set, 1, NULL, &f->err));
        table.name = bad[i];
        assert_fails(SQLOCK_EINVAL,
                     sqlock_tx_lock_row(tx, &table, &one, false, 0, &f->err));
        table = stock_table(f);
        table.key_column = bad[i];
        assert_fails(SQLOCK_EINVAL, sqlock_tx_update(tx, &table, &one, &version,
                                                     NULL, 0, NULL, &f->err));
        table = stock_table(f);
        table.version_column = bad[i];
        assert_fails(SQLOCK_EINVAL,
                     sqlock_tx_version(tx, &table, &one, &version, &f->err));
        table = stock_table(f);
        table.fence_column = bad[i];
        assert_fails(SQLOCK_EINVAL,
                     sqlock_tx_fence(tx, &table, &one, 1, "me", &f->err));
        /* No such name has reached the database, whose transaction goes on. */
        assert_ok(sqlock_tx_commit(tx, &f->err));
    }
    assert_true(stock_is_untouched(f));
}

TEST_OF_ROWS(test_values_with_sql_in_them_are_values, ON_ALL, 0)
{
    const char *evil = "x', a = 0 WHERE 1=1; --";
    sqlock_table table = stock_table(f);
    sqlock_value one = sqlock_integer(1);
    sqlock_row_version fresh = {.type = SQLOCK_TEXT, .text = "new"};
    sqlock_assignment set[] = {{"state", sqlock_text("x'; --")},
                               {"owner", sqlock_text(evil)}};
    sqlock_tx *tx = tx_begin(f);
    char owner[64];

    table.version_column = "state";
    table.version_kind = SQLOCK_VERSION_STATE;
    assert_ok(
        sqlock_tx_update(tx, &table, &one, &fresh, set, 2, NULL, &f->err));
    assert_ok(sqlock_tx_lock(tx, &evil, 1, 0, false, NULL, &f->err));
    assert_ok(sqlock_tx_commit(tx, &f->err));
    (void)sql_text(&f->sql, owner, sizeof owner,
                   "SELECT owner FROM %s WHERE id = 1", stock_name(f));
    assert_string_equal(owner, evil);
    assert_int_equal(stock_value(f, 1), 100);
}

TEST(test_missing_table_column_and_wrong_type)
{
    sqlock_value one = sqlock_integer(1);
    sqlock_value text = sqlock_text("not a number");
    sqlock_value name = sqlock_text("no_such_column");
    sqlock_row_version version = {.type = SQLOCK_INT64, .integer = 1};
    sqlock_table table = stock_table(f);
    sqlock_tx *tx = tx_begin(f);
    int rc;

    table.name = "tx_no_such_table";
    assert_fails(SQLOCK_ESCHEMA, sqlock_tx_update(tx, &table, &one, &version,
                                                  NULL, 0, NULL, &f->err));
    (void)sqlock_tx_rollback(tx, NULL);

    table = stock_table(f);
    table.version_column = "no_such_column";
    tx = tx_begin(f);
    assert_fails(SQLOCK_ESCHEMA,
                 sqlock_tx_version(tx, &table, &one, &version, &f->err));
    (void)sqlock_tx_rollback(tx, NULL);

    /* SQLite would take such a name in "" for a text, which is no key, or that
     * of all rows. */
    table = stock_table(f);
    table.key_column = "no_such_column";
    tx = tx_begin(f);
    assert_fails(SQLOCK_ESCHEMA,
                 sqlock_tx_lock_row(tx, &table, &one, false, 0, &f->err));
    (void)sqlock_tx_rollback(tx, NULL);
    version = (sqlock_row_version){.type = SQLOCK_INT64, .integer = 1};
    tx = tx_begin(f);
    assert_fails(SQLOCK_ESCHEMA, sqlock_tx_update(tx, &table, &name, &version,
                                                  NULL, 0, NULL, &f->err));
    (void)sqlock_tx_rollback(tx, NULL);

    table = stock_table(f);
    table.version_column = "state";
    tx = tx_begin(f);
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_version(tx, &table, &one, &version, &f->err));
    (void)sqlock_tx_rollback(tx, NULL);

    table = stock_table(f);
    version = (sqlock_row_version){.type = SQLOCK_INT64, .integer = 1};
    tx = tx_begin(f);
    rc = sqlock_tx_update(tx, &table, &text, &version, NULL, 0, NULL, &f->err);
    assert_true(rc == SQLOCK_EDATABASE || rc == SQLOCK_ENOTFOUND);
    assert_true(check_one_line(f->err.message));
    (void)sqlock_tx_rollback(tx, NULL);
    assert_true(stock_is_untouched(f));
}

/* Two assignments of a column would leave one of them: no rise of the
 * version. */
TEST(test_column_in_two_roles_is_refused)
{
    sqlock_value one = sqlock_integer(1);
    sqlock_row_version version = {.type = SQLOCK_INT64, .integer = 1};
    sqlock_assignment set[] = {{"version", sqlock_integer(1)}};
    sqlock_table table = stock_table(f);
    sqlock_tx *tx = tx_begin(f);

    set[0].column = table.version_column;
    assert_fails(SQLOCK_EINVAL, sqlock_tx_update(tx, &table, &one, &version,
                                                 set, 1, NULL, &f->err));
    table.version_column = table.key_column;
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_version(tx, &table, &one, &version, &f->err));
    assert_contains(f->err.message, "key column");
    table = stock_table(f);
    table.fence_owner_column = table.fence_column;
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_fence(tx, &table, &one, 1, "me", &f->err));
    table = stock_table(f);
    table.fence_column = table.key_column;
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_fence(tx, &table, &one, 1, "me", &f->err));
    assert_ok(sqlock_tx_commit(tx, &f->err));
    assert_true(stock_is_untouched(f));
}

/* These databases ignore the case of a column's name. */
TEST_ON(test_version_in_capitals_is_not_assigned, ON_SQLITE | ON_MYSQL,
        IN_SQLOCK)
{
    sqlock_value one = sqlock_integer(1);
    sqlock_row_version version = {.type = SQLOCK_INT64, .integer = 1};
    sqlock_row_version fresh = {.type = SQLOCK_TEXT, .text = "new"};
    sqlock_assignment set[] = {{"VERSION", sqlock_integer(0)}};
    sqlock_assignment next[] = {{"STATE", sqlock_text("old")}};
    sqlock_table table = stock_table(f);
    sqlock_tx *tx = tx_begin(f);

    assert_string_equal(table.version_column, "version");
    assert_fails(SQLOCK_EINVAL, sqlock_tx_update(tx, &table, &one, &version,
                                                 set, 1, NULL, &f->err));
    table.version_column = "state";
    table.version_kind = SQLOCK_VERSION_STATE;
    assert_ok(
        sqlock_tx_update(tx, &table, &one, &fresh, next, 1, NULL, &f->err));
    assert_ok(sqlock_tx_rollback(tx, &f->err));
}

TEST_OF_ROWS(test_nulls_and_numbers_out_of_range, ON_ALL, 0)
{
    const char *name = f->name;
    const char *none[] = {NULL};
    sqlock_table table = stock_table(f);
    sqlock_table unsized = {.name = "x"};
    sqlock_value one = sqlock_integer(1);
    sqlock_value broken = {.type = SQLOCK_TEXT};
    sqlock_row_version version = {.type = SQLOCK_INT64, .integer = 1};
    sqlock_result result = {0};
    sqlock_lock *foreign = lock_obtain(f->b, f->name);
    sqlock_tx *tx = tx_begin(f);

#define REFUSED(call) assert_fails(SQLOCK_EINVAL, (call))
    REFUSED(sqlock_tx_begin(NULL, f->a, &f->err));
    REFUSED(sqlock_tx_adopt(NULL, f->a, NULL, &f->err));
    REFUSED(sqlock_tx_commit(NULL, &f->err));
    REFUSED(sqlock_tx_leave(NULL, &f->err));
    REFUSED(sqlock_tx_execute(NULL, "SELECT 1", NULL, 0, NULL, &f->err));
    REFUSED(sqlock_tx_execute(tx, NULL, NULL, 0, NULL, &f->err));
    assert_string_equal(f->err.message, "sql must not be NULL");
    REFUSED(sqlock_tx_execute(tx, "SELECT ?", NULL, 1, NULL, &f->err));
    assert_string_equal(f->err.message, "parameters must not be NULL");
    REFUSED(sqlock_tx_execute(tx, "SELECT ?", &broken, 1, &result, &f->err));
    REFUSED(sqlock_tx_lock(tx, NULL, 1, 0, false, NULL, &f->err));
    REFUSED(sqlock_tx_lock(tx, &name, 0, 0, false, NULL, &f->err));
    REFUSED(sqlock_tx_lock(tx, none, 1, 0, false, NULL, &f->err));
    REFUSED(sqlock_tx_lock(tx, &name, 1, -2, false, NULL, &f->err));
    REFUSED(sqlock_tx_lock(tx, &name, 1, 10, true, NULL, &f->err));
    REFUSED(sqlock_tx_lock_row(tx, NULL, &one, false, 0, &f->err));
    REFUSED(sqlock_tx_lock_row(tx, &unsized, &one, false, 0, &f->err));
    REFUSED(sqlock_tx_lock_row(tx, &table, NULL, false, 0, &f->err));
    REFUSED(sqlock_tx_version(tx, &table, &one, NULL, &f->err));
    REFUSED(sqlock_tx_update(tx, &table, &one, NULL, NULL, 0, NULL, &f->err));
    REFUSED(
        sqlock_tx_update(tx, &table, &one, &version, NULL, 1, NULL, &f->err));
    assert_string_equal(f->err.message, "set must not be NULL");
    REFUSED(sqlock_tx_guard(NULL, foreign, &f->err));
    assert_ok(sqlock_tx_rollback(NULL, &f->err));
    assert_ok(sqlock_tx_abandon(NULL, &f->err));
    assert_ok(sqlock_tx_commit(tx, &f->err));
    /* A guard that is refused leaves nothing to commit. */
    lock_take(foreign, 0);
    for (int i = 0; i < 2; i++) {
        tx = tx_begin(f);
        REFUSED(sqlock_tx_guard(tx, i == 0 ? NULL : foreign, &f->err));
        assert_contains(f->err.message, i == 0 ? "NULL" : "another registry");
        REFUSED(sqlock_tx_commit(tx, &f->err));
    }
    lock_end(foreign);
#undef REFUSED
    assert_true(stock_is_untouched(f));
}

TEST(test_connection_of_another_database_is_refused)
{
    char url[1024];
    struct app app;
    sqlock_tx *tx;

    if (f->database->bit == ON_SQLITE) {
        struct sql sql;

        (void)snprintf(url, sizeof url, "%s.other", f->url);
        assert_int_equal(sql_open(&sql, f->database, url), 0);
        (void)sql_run(&sql, "CREATE TABLE IF NOT EXISTS x (y)");
        sql_close(&sql);
    } else {
        const char *slash = strrchr(database_admin_url(f->database), '/');

        (void)snprintf(url, sizeof url, "%.*s/%s",
                       (int)(slash - database_admin_url(f->database)),
                       database_admin_url(f->database),
                       f->database->bit == ON_POSTGRES ? "postgres" : "mysql");
    }
    app_open(&app, f->database, url);
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_adopt(&tx, f->a, app.native, &f->err));
    assert_null(tx);
    assert_contains(f->err.message, "another database");
    assert_false(app_in_transaction(&app));
    app_run(&app, "BEGIN");
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_adopt(&tx, f->a, app.native, &f->err));
    assert_true(app_in_transaction(&app));
    app_close(&app);
}

/* A transaction without the file's locks guards nothing. */
TEST_ON(test_connection_without_locks_is_refused, ON_SQLITE, IN_SQLOCK)
{
    static const char *const parameters[] = {
        "nolock=1", "immutable=1", "vfs=unix-none", "vfs=unix-dotfile"};

    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
        char url[1024];
        struct app app;
        sqlock_tx *tx;

        (void)snprintf(url, sizeof url, "sqlite:file:%s?%s",
                       strchr(f->url, ':') + 1, parameters[i]);
        app_open(&app, f->database, url);
        assert_fails(SQLOCK_ENOTSUP,
                     sqlock_tx_adopt(&tx, f->a, app.native, &f->err));
        assert_null(tx);
        app_close(&app);
    }
}

/* Under REPEATABLE READ, the adoption sends no query, since that would take the
 * snapshot; so only the first lock notices that the database is another one. */
TEST_ON(test_another_database_is_noticed_with_a_snapshot, ON_POSTGRES,
        IN_SQLOCK)
{
    const char *name = f->name;
    const char *admin = database_admin_url(f->database);
    char url[1024];
    struct app app;
    sqlock_tx *tx;

    (void)snprintf(url, sizeof url, "%.*s/postgres",
                   (int)(strrchr(admin, '/') - admin), admin);
    app_open(&app, f->database, url);
    app_run(&app, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    tx = tx_adopt(f, &app);
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_lock(tx, &name, 1, 0, false, NULL, &f->err));
    (void)sqlock_tx_rollback(tx, NULL);
    app_close(&app);
}

TEST_ON(test_aborted_transaction_is_not_adopted, ON_POSTGRES, IN_SQLOCK)
{
    struct app app;
    sqlock_tx *tx;

    app_open(&app, f->database, f->url);
    app_run(&app, "BEGIN");
    assert_int_equal(app_try(&app, "SELECT 1 FROM nowhere_at_all"), -1);
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_adopt(&tx, f->a, app.native, &f->err));
    app_run(&app, "ROLLBACK");
    tx = tx_adopt(f, &app);
    assert_ok(sqlock_tx_commit(tx, &f->err));
    app_close(&app);
}

TEST_ON(test_F41_a_connection_that_reconnects_is_refused, ON_MYSQL, IN_SQLOCK)
{
    struct app app;
    sqlock_tx *tx;

    app_open(&app, f->database, f->url);
    app_reconnect(&app, true);
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_adopt(&tx, f->a, app.native, &f->err));
    assert_contains(f->err.message, "reconnects");
    app_reconnect(&app, false);
    tx = tx_adopt(f, &app);
    assert_ok(sqlock_tx_commit(tx, &f->err));
    app_close(&app);
}

TEST_ON(test_F20_a_connection_that_counts_found_rows_is_refused, ON_MYSQL,
        IN_SQLOCK)
{
    struct app app;
    sqlock_tx *tx;

    app_open_counting_found(&app, f->database, f->url);
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_adopt(&tx, f->a, app.native, &f->err));
    assert_contains(f->err.message, "CLIENT_FOUND_ROWS");
    app_close(&app);
}

TEST(test_wrong_number_of_parameters)
{
    sqlock_value values[2] = {sqlock_integer(0), sqlock_integer(1)};
    static const size_t counts[] = {2, 0};
    char text[160];

    (void)snprintf(text, sizeof text, "UPDATE %s SET a = ?", stock_name(f));
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        sqlock_tx *tx = tx_begin(f);
        char expected[64];

        assert_fails(
            SQLOCK_EINVAL,
            sqlock_tx_execute(tx, text, values, counts[i], NULL, &f->err));
        (void)snprintf(expected, sizeof expected,
                       "1 parameters, but %zu were given", counts[i]);
        assert_contains(f->err.message, expected);
        assert_ok(sqlock_tx_rollback(tx, &f->err));
    }
    assert_true(stock_is_untouched(f));
}

/* No parameters make SQL of what is none, with or without a question mark. */
TEST(test_no_sql_is_an_error_of_the_database)
{
    static const char *const texts[] = {"SELECT ? ?", "SELEKT 1", "SELECT '?"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        sqlock_value values[2] = {sqlock_integer(0), sqlock_integer(1)};
        sqlock_tx *tx = tx_begin(f);
        size_t count = i == 0 ? 2 : 0;

        assert_fails(SQLOCK_EDATABASE, sqlock_tx_execute(tx, texts[i], values,
                                                         count, NULL, &f->err));
        assert_true(check_one_line(f->err.message));
        (void)sqlock_tx_rollback(tx, NULL);
    }
}

TEST(test_the_owner_of_a_fence_has_a_length)
{
    sqlock_table table = stock_table(f);
    sqlock_value one = sqlock_integer(1);
    sqlock_tx *tx = tx_begin(f);
    char owner[257];

    memset(owner, 'o', sizeof owner);
    owner[256] = '\0';
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_fence(tx, &table, &one, 1, owner, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_fence(tx, &table, &one, 1, "", &f->err));
    owner[255] = '\0';
    assert_ok(sqlock_tx_fence(tx, &table, &one, 1, owner, &f->err));
    assert_ok(sqlock_tx_rollback(tx, &f->err));
}

TEST_ON(test_F41_no_other_session_of_the_library_commits, ON_MYSQL, IN_SQLOCK)
{
    struct app app;
    sqlock_tx *tx;

    app_open(&app, f->database, f->url);
    tx = tx_adopt(f, &app);
    app_reset(&app);
    app_run(&app, "BEGIN");
    assert_fails(SQLOCK_ELOST, sqlock_tx_commit(tx, &f->err));
    app_close(&app);
}
