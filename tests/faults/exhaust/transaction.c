/*
 * transaction.c - transactions on the application's table: a commit that
 * succeeded has changed the row; without one, or with one that failed for
 * certain, the row is as before
 */
#include "exhaust.h"

#include <stdio.h>
#include <unistd.h>

#include "sqlock/tx.h"

#define BEFORE 100
#define AFTER 99

struct deal {
    sqlock_table table;
    char name[64];
    sqlock_lock *lock;
    void *native; /* NULL: a connection of the registry's */
    struct sql app;
    int commit;
    bool is_over; /* `commit` has the result of sqlock_tx_commit() */
};

static void prepare_deal(struct fixture *f, void *state)
{
    struct deal *deal = state;
    sqlock_table table = SQLOCK_TABLE_INIT;

    (void)snprintf(deal->name, sizeof deal->name, "exhaust_stock_%ld",
                   (long)getpid());
    deal->table = table;
    deal->table.name = deal->name;
    deal->table.key_column = "id";
    deal->table.version_column = "version";
    deal->table.fence_column = "fence";
    deal->table.fence_owner_column = "owner";
    (void)sql_try(&f->sql, NULL, "DROP TABLE IF EXISTS %s", deal->name);
    (void)sql_run(&f->sql,
                  "CREATE TABLE %s (id INTEGER PRIMARY KEY, a BIGINT, "
                  "version BIGINT, fence BIGINT DEFAULT 0 NOT NULL, "
                  "owner VARCHAR(255))%s",
                  deal->name,
                  f->database->bit == ON_MYSQL ? " ENGINE=InnoDB" : "");
    (void)sql_run(&f->sql, "INSERT INTO %s (id, a, version) VALUES (1, %d, 1)",
                  deal->name, BEFORE);
    deal->lock = lock_obtain(f->a, f->name);
    lock_take(deal->lock, 0);
}

static void prepare_adopted(struct fixture *f, void *state)
{
    struct deal *deal = state;

    prepare_deal(f, state);
    assert_int_equal(sql_open(&deal->app, f->database, f->url), 0);
    deal->native = deal->app.driver->native(deal->app.connection);
    assert_non_null(deal->native);
}

/* Make all calls of the transaction except the commit; return whether all have
 * succeeded. */
static bool deal_in(struct fixture *f, struct deal *deal, sqlock_tx *tx)
{
    const char *names[] = {"exhaust", f->name};
    const sqlock_value key = sqlock_integer(1);
    const sqlock_assignment set = {"a", sqlock_integer(AFTER)};
    sqlock_row_version version = {.type = SQLOCK_NULL};
    sqlock_result result = {.rows = 0};
    sqlock_error err = {0};
    const sqlock_table *table = &deal->table;
    char sql[128];
    int rc;

    if (!exhaust_expect(sqlock_tx_guard(tx, deal->lock, &err), &err) ||
        !exhaust_expect(sqlock_tx_lock(tx, names, 2, 0, false, NULL, &err),
                        &err) ||
        !exhaust_expect(sqlock_tx_lock_row(tx, table, &key, false, 0, &err),
                        &err) ||
        !exhaust_expect(sqlock_tx_fence(tx, table, &key, 7, "me", &err),
                        &err) ||
        !exhaust_expect(sqlock_tx_version(tx, table, &key, &version, &err),
                        &err) ||
        !exhaust_expect(
            sqlock_tx_update(tx, table, &key, &version, &set, 1, NULL, &err),
            &err))
        return false;
    (void)snprintf(sql, sizeof sql, "SELECT a FROM %s WHERE id = ?",
                   deal->name);
    rc = sqlock_tx_execute(tx, sql, &key, 1, &result, &err);
    if (exhaust_expect(rc, &err)) {
        assert_int_equal(result.rows, 1);
        assert_int_equal(result.cells[0].integer, AFTER);
    }
    sqlock_result_clear(&result);
    return rc == 0;
}

static void act_deal(struct fixture *f, void *state)
{
    struct deal *deal = state;
    sqlock_tx *tx = (sqlock_tx *)state; /* not NULL */
    sqlock_error err = {0};
    int rc;

    rc = deal->native != NULL ? sqlock_tx_adopt(&tx, f->a, deal->native, &err)
                              : sqlock_tx_begin(&tx, f->a, &err);
    if (!exhaust_expect(rc, &err)) {
        assert_null(tx);
        return;
    }
    if (!deal_in(f, deal, tx)) {
        (void)exhaust_expect(sqlock_tx_rollback(tx, &err), &err);
        return;
    }
    deal->commit = sqlock_tx_commit(tx, &err);
    deal->is_over = true;
    (void)exhaust_expect(deal->commit, &err);
}

static int64_t value(struct fixture *f, const struct deal *deal)
{
    return sql_integer(&f->sql, "SELECT a FROM %s WHERE id = 1", deal->name);
}

/* Check the application's row, that no row is locked any more, and that the
 * lock can be released. */
static void check_deal(struct fixture *f, void *state)
{
    struct deal *deal = state;

    if (deal->is_over && deal->commit == 0)
        assert_int_equal(value(f, deal), AFTER);
    else if (!deal->is_over || deal->commit != SQLOCK_EUNCERTAIN)
        assert_int_equal(value(f, deal), BEFORE);
    /* If no rollback could be sent, the server ends the transaction when it
     * notices that the connection is closed. */
    if (deal->app.connection != NULL)
        sql_close(&deal->app);
    assert_becomes_true(
        sql_try(&f->sql, NULL, "UPDATE %s SET a = 0 WHERE id = 1",
                deal->name) == 0 &&
            sql_try(&f->sql, NULL, "UPDATE %s SET LOCK_NAME = 'x'", f->table) ==
                0,
        PATIENCE_MS);
    assert_ok(sqlock_release(deal->lock, &f->err));
    lock_drop(deal->lock);
}

TEST(test_a_transaction_of_the_registry)
{
    static const struct experiment experiment = {
        .prepare = prepare_deal,
        .act = act_deal,
        .check = check_deal,
        .state_bytes = sizeof(struct deal),
    };

    exhaust_all(f, &experiment);
}

TEST(test_a_transaction_of_the_application)
{
    static const struct experiment experiment = {
        .prepare = prepare_adopted,
        .act = act_deal,
        .check = check_deal,
        .state_bytes = sizeof(struct deal),
    };

    exhaust_all(f, &experiment);
}
