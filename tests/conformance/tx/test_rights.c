/*
 * test_rights.c - users without rights to the application's table, or to the
 * lock table, get EACCESS, and nothing is written
 */
#include "suite.h"

#include <stdio.h>

#include "support/login.h"

#define LOCK_RIGHTS "SELECT, INSERT, UPDATE"

/* The operations on a row.  Each has its own transaction, because PostgreSQL
 * ends a transaction with the first refusal. */
enum act { READ_VERSION, UPDATE_IT, LOCK_FOR_UPDATE, FENCE_IT, EXECUTE };

static int act_on_row(struct fixture *f, sqlock_tx *tx, enum act act)
{
    static const sqlock_row_version first = {.type = SQLOCK_INT64,
                                             .integer = 1};
    sqlock_assignment set = {"a", sqlock_integer(7)};
    sqlock_table table = stock_table(f);
    sqlock_value one = sqlock_integer(1);
    sqlock_row_version seen;
    char text[160];

    switch (act) {
    case READ_VERSION:
        return sqlock_tx_version(tx, &table, &one, &seen, &f->err);
    case UPDATE_IT:
        return sqlock_tx_update(tx, &table, &one, &first, &set, 1, NULL,
                                &f->err);
    case LOCK_FOR_UPDATE:
        return sqlock_tx_lock_row(tx, &table, &one, false, 0, &f->err);
    case FENCE_IT:
        return sqlock_tx_fence(tx, &table, &one, 9, "me", &f->err);
    default:
        (void)snprintf(text, sizeof text, "DELETE FROM %s WHERE id = ?",
                       table.name);
        return sqlock_tx_execute(tx, text, &one, 1, NULL, &f->err);
    }
}

static int act_alone(struct fixture *f, sqlock_registry *registry, enum act act)
{
    sqlock_tx *tx;
    int rc;

    assert_ok(sqlock_tx_begin(&tx, registry, &f->err));
    rc = act_on_row(f, tx, act);
    assert_lacks(f->err.message, LOGIN_PASSWORD);
    assert_int_equal(sqlock_tx_rollback(tx, NULL), 0); /* f->err stays */
    return rc;
}

TEST_OF_ROWS(test_no_right_to_the_applications_table, ON_SERVERS, IN_SQLOCK)
{
    sqlock_registry *registry;
    struct login login;

    login_make(&login, f, "norow");
    login_grant(&login, LOCK_RIGHTS, f->table);
    registry = fixture_registry_at(f, login.url, NULL);
    for (enum act act = READ_VERSION; act <= EXECUTE; act++)
        assert_fails(SQLOCK_EACCESS, act_alone(f, registry, act));
    registry_end(registry);
    login_drop(&login, f);
    assert_true(stock_is_untouched(f));
}

TEST_OF_ROWS(test_a_right_to_read_is_none_to_write, ON_SERVERS, IN_SQLOCK)
{
    sqlock_registry *registry;
    struct login login;
    int rc;

    login_make(&login, f, "reader");
    login_grant(&login, LOCK_RIGHTS, f->table);
    login_grant(&login, "SELECT", stock_name(f));
    registry = fixture_registry_at(f, login.url, NULL);
    assert_ok(act_alone(f, registry, READ_VERSION));
    assert_fails(SQLOCK_EACCESS, act_alone(f, registry, UPDATE_IT));
    assert_fails(SQLOCK_EACCESS, act_alone(f, registry, FENCE_IT));
    assert_fails(SQLOCK_EACCESS, act_alone(f, registry, EXECUTE));
    /* MariaDB lets a user who may only read rows lock them. */
    rc = act_alone(f, registry, LOCK_FOR_UPDATE);
    assert_code_of(SQLOCK_EACCESS,
                   f->database->bit == ON_MYSQL ? 0 : SQLOCK_EACCESS, rc,
                   &f->err);
    registry_end(registry);
    login_drop(&login, f);
    assert_true(stock_is_untouched(f));
}

/* The user may write the application's table, but has no right to the lock
 * table. */
TEST_OF_ROWS(test_no_right_to_the_lock_table, ON_SERVERS, IN_SQLOCK)
{
    const char *name = f->name;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct login login;
    struct app app;
    sqlock_tx *tx;

    lock_take(lock, 0);
    login_make(&login, f, "nolock");
    login_grant(&login, "SELECT, UPDATE", stock_name(f));
    app_open(&app, f->database, login.url);
    assert_ok(sqlock_tx_adopt(&tx, f->a, app.native, &f->err));
    app_run(&app, "UPDATE %s SET a = 7 WHERE id = 1", stock_name(f));
    assert_fails(SQLOCK_EACCESS, sqlock_tx_guard(tx, lock, &f->err));
    assert_lacks(f->err.message, LOGIN_PASSWORD);
    assert_fails(SQLOCK_EACCESS, sqlock_tx_commit(tx, &f->err));
    assert_ok(sqlock_tx_adopt(&tx, f->a, app.native, &f->err));
    assert_fails(SQLOCK_EACCESS,
                 sqlock_tx_lock(tx, &name, 1, 0, false, NULL, &f->err));
    (void)sqlock_tx_rollback(tx, NULL);
    app_close(&app);
    login_drop(&login, f);
    assert_true(stock_is_untouched(f));
    lock_end(lock);
}

/* Return how long the transaction may idle, in ms, as its session sees it. */
static int64_t limit_of(struct fixture *f, sqlock_tx *tx)
{
    const char *text = "SELECT CAST(extract(epoch FROM current_setting('"
                       "idle_in_transaction_session_timeout')::interval) * "
                       "1000 AS bigint)";
    sqlock_result result = {0};
    int64_t limit;

    if (f->database->bit == ON_MYSQL)
        text = fixture_is_oracles(f)
                   ? "SELECT CAST(@@wait_timeout * 1000 AS SIGNED)"
                   : "SELECT CAST(@@idle_transaction_timeout * 1000 AS SIGNED)";
    assert_ok(sqlock_tx_execute(tx, text, NULL, 0, &result, &f->err));
    assert_int_equal(result.rows, 1);
    limit = result.cells[0].integer;
    sqlock_result_clear(&result);
    return limit;
}

static int64_t limit_of_next(struct fixture *f, sqlock_registry *registry)
{
    int64_t limit;
    sqlock_tx *tx;

    assert_ok(sqlock_tx_begin(&tx, registry, &f->err));
    limit = limit_of(f, tx);
    assert_ok(sqlock_tx_rollback(tx, &f->err));
    return limit;
}

/* Return the limit in a session of a role with that limit. */
static int64_t limit_for(struct fixture *f, const char *of_role)
{
    sqlock_registry *registry;
    struct login login;
    int64_t limit;

    login_make(&login, f, "hasty");
    login_grant(&login, "SELECT, INSERT, UPDATE", f->table);
    sql_run(&login.admin,
            "ALTER ROLE %s SET idle_in_transaction_session_timeout = '%s'",
            login.parts.user, of_role);
    registry = fixture_registry_at(f, login.url, NULL);
    limit = limit_of_next(f, registry);
    registry_end(registry);
    login_drop(&login, f);
    return limit;
}

/* An administrator may have set a shorter limit, which stays. */
TEST_OF_ROWS(test_a_shorter_limit_of_the_role_stays, ON_POSTGRES, IN_SQLOCK)
{
    assert_int_equal(limit_for(f, "3s"), 3000);
    assert_int_equal(limit_for(f, "1d"), 2 * LONG_TTL_MS);
}
