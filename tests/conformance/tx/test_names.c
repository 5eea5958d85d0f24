/*
 * test_names.c - interleavings of two or three sessions that lock names, step
 * by step
 *
 * On SQLite there is only one lock, the file's write lock, which a transaction
 * begun by the library has from the beginning.  So SQLite has tests of its own.
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

#include "support/server.h"
#include "support/tap.h"

static void test_nowait_on_a_held_name_is_busy(void **state)
{
    struct fixture *f = *state;
    struct session a;
    struct session b;

    sessions_open(f, &a, &b);
    assert_ok(lock_one(&a, f->name, 0, &f->err));
    assert_fails(SQLOCK_EBUSY, lock_one(&b, f->name, 0, &f->err));
    assert_contains(f->err.message, f->name);
    /* The transaction goes on, and can lock the name when that is free. */
    session_commit(f, &a);
    assert_ok(lock_one(&b, f->name, 0, &f->err));
    session_commit(f, &b);
    sessions_close(&a, &b);
}

static void test_same_name_again_in_one_transaction(void **state)
{
    struct fixture *f = *state;
    const char *twice[] = {f->name, f->name};
    struct session a;

    session_open(f, &a, NULL);
    assert_ok(sqlock_tx_lock(a.tx, twice, 2, 0, false, NULL, &f->err));
    assert_ok(lock_one(&a, f->name, 0, &f->err));
    session_close(&a);
}

static void test_a_timeout_ends_the_wait_and_not_the_transaction(void **state)
{
    static const int64_t waits[] = {60, 1000, 1300};
    struct fixture *f = *state;
    struct session a;
    struct session b;

    sessions_open(f, &a, &b);
    app_run(&b.app, "UPDATE %s SET a = 5 WHERE id = 1", stock_name(f));
    assert_ok(lock_one(&a, f->name, 0, &f->err));
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        int64_t began = sqlock_monotonic_ns();
        int rc = lock_one(&b, f->name, waits[i], &f->err);

        assert_fails(SQLOCK_ETIMEDOUT, rc);
        assert_less(began + waits[i] * 1000000, sqlock_monotonic_ns() + 1);
        assert_true(app_in_transaction(&b.app));
    }
    session_commit(f, &b);
    assert_int_equal(stock_value(f, 1), 5);
    sessions_close(&a, &b);
}

static void test_waiter_gets_the_name_at_the_holders_commit(void **state)
{
    static const int64_t waits[] = {PATIENCE_MS, SQLOCK_FOREVER};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        struct session a;
        struct session b;
        struct worker worker;
        struct waiter waiter = {.session = &b, .wait_ms = waits[i]};

        fixture_next(f);
        waiter.name = f->name;
        sessions_open(f, &a, &b);
        assert_ok(lock_one(&a, f->name, 0, &f->err));
        worker_start(&worker, session_wait, &waiter);
        assert_becomes_true(session_is_waiting(f, &b), PATIENCE_MS);
        session_commit(f, &a);
        worker_join(&worker);
        assert_lock_ok(waiter.rc, &waiter.err);
        /* b has the name: a third session does not get it. */
        session_close(&a);
        session_open(f, &a, NULL);
        assert_fails(SQLOCK_EBUSY, lock_one(&a, f->name, 0, &f->err));
        sessions_close(&a, &b);
    }
}

static void test_waiter_gets_the_name_of_a_killed_holder(void **state)
{
    struct fixture *f = *state;
    struct session a;
    struct session b;
    struct worker worker;
    struct waiter waiter = {
        .session = &b, .name = f->name, .wait_ms = PATIENCE_MS};
    int64_t id;

    sessions_open(f, &a, &b);
    assert_ok(lock_one(&a, f->name, 0, &f->err));
    worker_start(&worker, session_wait, &waiter);
    assert_becomes_true(session_is_waiting(f, &b), PATIENCE_MS);
    id = app_session(&a.app);
    server_end_sessions(&f->sql, &id, 1);
    worker_join(&worker);
    assert_lock_ok(waiter.rc, &waiter.err);
    assert_fails(SQLOCK_ELOST, lock_one(&a, f->name, 0, &f->err));
    sessions_close(&a, &b);
}

/* Two sessions wait for each other: one gets ERETRY, and the other goes on. */
static void test_deadlock_of_two_names_is_retry_for_one(void **state)
{
    struct session a;
    struct session b;

    sessions_open(*state, &a, &b);
    sessions_deadlock(*state, &a, &b);
    sessions_close(&a, &b);
}

/* Make `count` names of this test; `names` points into `texts`. */
static void make_names(const struct fixture *f, char texts[][80],
                       const char **names, int count)
{
    for (int i = 0; i < count; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "%s/%d", f->name, i);
        names[i] = texts[i];
    }
}

static void test_several_names_are_taken_in_one_order(void **state)
{
    struct fixture *f = *state;
    char texts[4][80];
    const char *there[4];
    const char *back[4];
    int results[4];
    struct session a;
    struct session b;

    make_names(f, texts, there, 4);
    for (int i = 0; i < 4; i++)
        back[3 - i] = there[i];
    sessions_open(f, &a, &b);
    assert_ok(sqlock_tx_lock(a.tx, there, 4, 0, false, results, &f->err));
    /* Names are locked in the order of their keys: b meets the same name first
     * as a did, and locks none. */
    assert_fails(SQLOCK_ETIMEDOUT,
                 sqlock_tx_lock(b.tx, back, 4, 50, false, results, &f->err));
    for (int i = 0; i < 4; i++)
        assert_int_equal(results[i], SQLOCK_ETIMEDOUT);
    assert_ok(sqlock_tx_rollback(a.tx, &f->err));
    assert_ok(sqlock_tx_lock(b.tx, back, 4, 0, false, results, &f->err));
    a.tx = NULL;
    sessions_close(&a, &b);
}

static void test_skip_locked_takes_what_nobody_has(void **state)
{
    struct fixture *f = *state;
    char texts[3][80];
    const char *names[3];
    int results[3];
    struct session a;
    struct session b;

    make_names(f, texts, names, 3);
    sessions_open(f, &a, &b);
    assert_ok(lock_one(&a, texts[1], 0, &f->err));
    assert_fails(SQLOCK_EBUSY,
                 sqlock_tx_lock(b.tx, names, 3, 0, true, results, &f->err));
    assert_int_equal(results[0], 0);
    assert_int_equal(results[1], SQLOCK_EBUSY);
    assert_int_equal(results[2], 0);
    assert_fails(SQLOCK_EBUSY, lock_one(&a, texts[0], 0, &f->err));
    assert_fails(SQLOCK_EBUSY, lock_one(&a, texts[2], 0, &f->err));
    sessions_close(&a, &b);
}

static int lose_second_name(void *context, const struct tap_event *event)
{
    unsigned *seen = context;

    return event->call == TAP_EXECUTE && event->text != NULL &&
                   strstr(event->text, "FOR UPDATE") != NULL && ++*seen == 2
               ? SQLOCK_EUNREACHABLE
               : 0;
}

/* Another session has the first name; the connection breaks at the second.
 * The result is ELOST, not EBUSY, which would say that the transaction goes
 * on. */
static void test_a_skipped_name_does_not_hide_the_end(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_tapped(f, NULL);
    char texts[2][80];
    const char *names[2];
    char keys[2][SQLOCK_KEY_SIZE];
    int results[2];
    unsigned seen = 0;
    struct session a;
    sqlock_tx *tx;
    int first;

    make_names(f, texts, names, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            sqlock_key_of(keys[i], names[i], SQLOCK_KEY_CURRENT, NULL), 0);
    first = strcmp(keys[0], keys[1]) < 0 ? 0 : 1;
    session_open(f, &a, NULL);
    assert_ok(sqlock_tx_lock(a.tx, names, 2, 0, false, NULL, &f->err));
    session_commit(f, &a);
    session_close(&a);
    session_open(f, &a, NULL);
    assert_ok(lock_one(&a, names[first], 0, &f->err));
    assert_ok(sqlock_tx_begin(&tx, registry, &f->err));
    tap_hooks(lose_second_name, NULL, &seen);
    assert_fails(SQLOCK_ELOST,
                 sqlock_tx_lock(tx, names, 2, 0, true, results, &f->err));
    tap_hooks(NULL, NULL, NULL);
    assert_int_equal(results[first], SQLOCK_EBUSY);
    assert_int_equal(results[1 - first], SQLOCK_ELOST);
    (void)sqlock_tx_rollback(tx, NULL);
    session_close(&a);
    registry_end(registry);
}

/* A name whose row was deleted gets a new row: FOR UPDATE on a missing row
 * would lock nobody out (F24). */
static void test_deleted_row_is_made_again(void **state)
{
    struct fixture *f = *state;
    struct session a;
    struct session b;

    session_open(f, &a, NULL);
    assert_ok(lock_one(&a, f->name, 0, &f->err));
    session_close(&a);
    assert_int_equal(sql_run(&f->sql,
                             "DELETE FROM %s WHERE REGION = "
                             "'DEFAULT#tx'",
                             f->table) > 0,
                     1);
    sessions_open(f, &a, &b);
    assert_ok(lock_one(&a, f->name, 0, &f->err));
    assert_fails(SQLOCK_EBUSY, lock_one(&b, f->name, 0, &f->err));
    sessions_close(&a, &b);
}

/* Names and leases of the same name have rows of their own. */
static void test_name_does_not_touch_the_lease(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct session a;

    session_open(f, &a, NULL);
    assert_ok(lock_one(&a, f->name, 0, &f->err));
    lock_take(lock, 0);
    lock_renew(lock, 0);
    lock_end(lock);
    session_close(&a);
}

/* At each isolation level of the application the name is locked; or, with a
 * snapshot older than the name's row, the result is ERETRY, nothing is
 * committed, and a second run succeeds (F27). */
static void test_isolation_levels_of_the_caller(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < LEVELS; i++) {
        struct session a;
        struct session b;
        int rc;

        fixture_next(f);
        app_open(&a.app, f->database, f->url);
        app_begin_at(&a.app, app_levels[i]);
        /* The snapshot is taken here: the name's row comes after it. */
        (void)app_integer(&a.app, "SELECT count(*) FROM %s", stock_name(f));
        assert_ok(sqlock_tx_adopt(&a.tx, f->a, a.app.native, &f->err));
        rc = lock_one(&a, f->name, PATIENCE_MS, &f->err);
        if (keeps_its_snapshot(f) && i > 0) {
            assert_fails(SQLOCK_ERETRY, rc);
            assert_fails(SQLOCK_ERETRY, sqlock_tx_commit(a.tx, &f->err));
            assert_false(app_in_transaction(&a.app));
            /* Run again from the start. */
            app_begin_at(&a.app, app_levels[i]);
            assert_ok(sqlock_tx_adopt(&a.tx, f->a, a.app.native, &f->err));
            rc = lock_one(&a, f->name, PATIENCE_MS, &f->err);
        }
        assert_ok(rc);
        session_open(f, &b, NULL);
        assert_fails(SQLOCK_EBUSY, lock_one(&b, f->name, 0, &f->err));
        session_close(&b);
        session_commit(f, &a);
        session_close(&a);
    }
}

/* --- SQLite: BEGIN IMMEDIATE --- */

static void test_sqlite_begin_has_the_write_lock(void **state)
{
    struct fixture *f = *state;
    struct session a;
    struct app other;
    sqlock_tx *tx;

    session_open(f, &a, NULL);
    assert_fails(SQLOCK_EBUSY, sqlock_tx_begin(&tx, f->a, &f->err));
    assert_null(tx);
    app_open(&other, f->database, f->url);
    assert_fails(SQLOCK_EBUSY,
                 sqlock_tx_adopt(&tx, f->a, other.native, &f->err));
    assert_false(app_in_transaction(&other));
    /* Reading needs no lock that the writer has. */
    assert_int_equal(
        app_integer(&other, "SELECT count(*) FROM %s", stock_name(f)), 4);
    assert_ok(lock_one(&a, f->name, 0, &f->err));
    session_commit(f, &a);
    assert_ok(sqlock_tx_adopt(&tx, f->a, other.native, &f->err));
    assert_ok(sqlock_tx_commit(tx, &f->err));
    app_close(&other);
    session_close(&a);
}

/* A joined transaction without the write lock takes it with its first name.
 * While another session has it, the result is EBUSY or ETIMEDOUT.  The
 * application's busy_timeout stays as it is. */
static void test_sqlite_joined_transaction_takes_it_when_it_locks(void **state)
{
    struct fixture *f = *state;
    struct session a;
    struct session b;

    session_open(f, &b, "BEGIN");
    session_open(f, &a, "BEGIN");
    app_run(&a.app, "PRAGMA busy_timeout = 60000");
    assert_ok(lock_one(&b, f->name, 0, &f->err));
    assert_fails(SQLOCK_EBUSY, lock_one(&a, f->name, 0, &f->err));
    assert_fails(SQLOCK_ETIMEDOUT, lock_one(&a, f->name, 60, &f->err));
    assert_true(app_in_transaction(&a.app));
    assert_int_equal(app_integer(&a.app, "PRAGMA busy_timeout"), 60000);
    session_commit(f, &b);
    assert_ok(lock_one(&a, f->name, 0, &f->err));
    sessions_close(&a, &b);
}

/* Another session has written since the transaction read, so it can no longer
 * get the write lock: ERETRY (F69). */
static void test_sqlite_old_snapshot_is_retry(void **state)
{
    struct fixture *f = *state;
    struct session a;

    app_open(&a.app, f->database, f->url);
    app_run(&a.app, "BEGIN");
    (void)app_integer(&a.app, "SELECT count(*) FROM %s", stock_name(f));
    assert_ok(sqlock_tx_adopt(&a.tx, f->a, a.app.native, &f->err));
    (void)sql_run(&f->sql, "UPDATE %s SET a = 3 WHERE id = 4", stock_name(f));
    assert_fails(SQLOCK_ERETRY, lock_one(&a, f->name, PATIENCE_MS, &f->err));
    session_commit_fails(SQLOCK_ERETRY, f, &a);
    assert_false(app_in_transaction(&a.app));
    session_close(&a);
}

static void test_sqlite_waiter_gets_it_at_the_holders_commit(void **state)
{
    struct fixture *f = *state;
    struct session a;
    struct session b;
    struct worker worker;
    struct waiter waiter = {
        .session = &b, .name = f->name, .wait_ms = PATIENCE_MS};

    session_open(f, &b, "BEGIN");
    session_open(f, &a, NULL);
    worker_start(&worker, session_wait, &waiter);
    assert_ok(lock_one(&a, f->name, 0, &f->err));
    session_commit(f, &a);
    worker_join(&worker);
    assert_lock_ok(waiter.rc, &waiter.err);
    sessions_close(&a, &b);
}

static const struct test tests[] = {
    TEST_OF_ROWS(test_nowait_on_a_held_name_is_busy, ON_SERVERS, IN_ALL),
    TEST_OF_ROWS(test_same_name_again_in_one_transaction, ON_ALL, IN_ALL),
    TEST_OF_ROWS(test_a_timeout_ends_the_wait_and_not_the_transaction,
                 ON_SERVERS, IN_SQLOCK),
    TEST_OF_ROWS(test_waiter_gets_the_name_at_the_holders_commit, ON_SERVERS,
                 IN_SQLOCK),
    TEST_OF_ROWS(test_waiter_gets_the_name_of_a_killed_holder, ON_SERVERS,
                 IN_SQLOCK),
    TEST_OF_ROWS(test_deadlock_of_two_names_is_retry_for_one, ON_SERVERS,
                 IN_SQLOCK),
    TEST_OF_ROWS(test_several_names_are_taken_in_one_order, ON_SERVERS,
                 IN_SQLOCK),
    TEST_OF_ROWS(test_skip_locked_takes_what_nobody_has, ON_SERVERS, IN_SQLOCK),
    TEST_OF_ROWS(test_a_skipped_name_does_not_hide_the_end, ON_SERVERS,
                 IN_SQLOCK),
    TEST_OF_ROWS(test_deleted_row_is_made_again, ON_SERVERS, IN_ALL),
    TEST_OF_ROWS(test_name_does_not_touch_the_lease, ON_SERVERS, IN_ALL),
    TEST_OF_ROWS(test_isolation_levels_of_the_caller, ON_SERVERS, IN_SQLOCK),
    TEST_ON(test_sqlite_begin_has_the_write_lock, ON_SQLITE, IN_SQLOCK),
    TEST_ON(test_sqlite_joined_transaction_takes_it_when_it_locks, ON_SQLITE,
            IN_SQLOCK),
    TEST_ON(test_sqlite_old_snapshot_is_retry, ON_SQLITE, IN_SQLOCK),
    TEST_ON(test_sqlite_waiter_gets_it_at_the_holders_commit, ON_SQLITE,
            IN_SQLOCK),
};
const struct topic topic_names = TOPIC(tests);
