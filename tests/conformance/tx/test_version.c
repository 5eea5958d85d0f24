/*
 * test_version.c - compare-and-set by integer, timestamp and state; fences; row
 * locks
 */
#include "suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/workers.h"

static void test_integer_version_updated_conflict_and_missing(void **state)
{
    struct fixture *f = *state;
    sqlock_table table = stock_table(f);
    sqlock_value one = sqlock_integer(1);
    sqlock_value none = sqlock_integer(999);
    sqlock_assignment set[] = {{"a", sqlock_integer(42)}};
    sqlock_row_version seen;
    sqlock_row_version next;
    sqlock_tx *tx = tx_begin(f);

    assert_ok(sqlock_tx_version(tx, &table, &one, &seen, &f->err));
    assert_int_equal(seen.integer, 1);
    assert_ok(
        sqlock_tx_update(tx, &table, &one, &seen, set, 1, &next, &f->err));
    assert_int_equal(next.integer, 2);
    assert_fails(SQLOCK_ECONFLICT, sqlock_tx_update(tx, &table, &one, &seen,
                                                    set, 1, &next, &f->err));
    assert_fails(SQLOCK_ENOTFOUND, sqlock_tx_update(tx, &table, &none, &seen,
                                                    set, 1, &next, &f->err));
    assert_fails(SQLOCK_ENOTFOUND,
                 sqlock_tx_version(tx, &table, &none, &seen, &f->err));
    assert_ok(sqlock_tx_commit(tx, &f->err));
    assert_int_equal(stock_value(f, 1), 42);
}

static void test_null_and_greatest_versions_are_refused(void **state)
{
    struct fixture *f = *state;
    sqlock_table table = stock_table(f);
    sqlock_value one = sqlock_integer(1);
    sqlock_value two = sqlock_integer(2);
    sqlock_row_version seen = {.type = SQLOCK_NULL};
    sqlock_tx *tx;

    (void)sql_run(&f->sql, "UPDATE %s SET version = NULL WHERE id = 1",
                  stock_name(f));
    (void)sql_run(&f->sql,
                  "UPDATE %s SET version = 9223372036854775807 WHERE id = 2",
                  stock_name(f));
    tx = tx_begin(f);
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_version(tx, &table, &one, &seen, &f->err));
    seen.type = SQLOCK_NULL;
    assert_fails(SQLOCK_EINVAL, sqlock_tx_update(tx, &table, &one, &seen, NULL,
                                                 0, NULL, &f->err));
    assert_ok(sqlock_tx_version(tx, &table, &two, &seen, &f->err));
    assert_fails(SQLOCK_EINVAL, sqlock_tx_update(tx, &table, &two, &seen, NULL,
                                                 0, NULL, &f->err));
    assert_ok(sqlock_tx_commit(tx, &f->err));
    assert_int_equal(sql_integer(&f->sql,
                                 "SELECT count(*) FROM %s WHERE "
                                 "version = 9223372036854775807",
                                 stock_name(f)),
                     1);
}

/* A version that does not fit the column must not be committed. */
static void test_version_at_its_columns_limit_is_refused(void **state)
{
    struct fixture *f = *state;
    sqlock_table table = stock_table(f);
    sqlock_value one = sqlock_integer(1);
    sqlock_row_version seen = {.type = SQLOCK_INT64, .integer = 32767};
    sqlock_tx *tx;
    struct app app;
    int rc;

    table.version_column = "narrow";
    (void)sql_run(&f->sql, "UPDATE %s SET narrow = 32767 WHERE id = 1",
                  stock_name(f));
    app_open(&app, f->database, f->url);
    if (f->database->bit == ON_MYSQL)
        app_run(&app, "SET sql_mode = ''"); /* not strict: would cut it */
    tx = tx_adopt(f, &app);
    rc = sqlock_tx_update(tx, &table, &one, &seen, NULL, 0, NULL, &f->err);
    assert_code_of(SQLOCK_EINVAL, SQLOCK_EDATABASE, rc, &f->err);
    (void)sqlock_tx_rollback(tx, NULL);
    assert_int_equal(sql_integer(&f->sql, "SELECT narrow FROM %s WHERE id = 1",
                                 stock_name(f)),
                     32767);
    app_close(&app);
}

static void test_timestamp_versions_always_rise(void **state)
{
    struct fixture *f = *state;
    sqlock_table table = stock_table(f);
    sqlock_value one = sqlock_integer(1);
    sqlock_row_version seen;
    sqlock_row_version old;
    sqlock_row_version next;
    sqlock_tx *tx;

    table.version_column = "moment";
    table.version_kind = SQLOCK_VERSION_TIMESTAMP;
    /* A version ahead of the clock rises all the same. */
    (void)sql_run(&f->sql,
                  "UPDATE %s SET moment = '2037-01-01 00:00:00' WHERE id = 1",
                  stock_name(f));
    tx = tx_begin(f);
    assert_ok(sqlock_tx_version(tx, &table, &one, &seen, &f->err));
    old = seen;
    for (int i = 0; i < 20; i++) {
        assert_ok(
            sqlock_tx_update(tx, &table, &one, &seen, NULL, 0, &next, &f->err));
        assert_less(seen.integer, next.integer);
        seen = next;
    }
    assert_fails(SQLOCK_ECONFLICT, sqlock_tx_update(tx, &table, &one, &old,
                                                    NULL, 0, &next, &f->err));
    assert_ok(sqlock_tx_commit(tx, &f->err));

    /* A version behind the clock becomes the clock's time. */
    tx = tx_begin(f);
    one = sqlock_integer(2);
    assert_ok(sqlock_tx_version(tx, &table, &one, &seen, &f->err));
    assert_ok(
        sqlock_tx_update(tx, &table, &one, &seen, NULL, 0, &next, &f->err));
    assert_less(seen.integer + INT64_C(86400000000), next.integer);
    assert_ok(sqlock_tx_commit(tx, &f->err));
}

static void test_state_moves_once(void **state)
{
    struct fixture *f = *state;
    sqlock_table table = stock_table(f);
    sqlock_value one = sqlock_integer(1);
    sqlock_assignment set[] = {{"state", sqlock_text("paid")},
                               {"a", sqlock_integer(1)}};
    sqlock_row_version fresh = {.type = SQLOCK_TEXT, .text = "new"};
    sqlock_row_version next;
    sqlock_tx *tx = tx_begin(f);

    table.version_column = "state";
    table.version_kind = SQLOCK_VERSION_STATE;
    assert_ok(
        sqlock_tx_update(tx, &table, &one, &fresh, set, 2, &next, &f->err));
    assert_string_equal(next.text, "paid");
    assert_fails(SQLOCK_ECONFLICT, sqlock_tx_update(tx, &table, &one, &fresh,
                                                    set, 2, &next, &f->err));
    /* An update from a state to the same state is no conflict. */
    assert_ok(
        sqlock_tx_update(tx, &table, &one, &next, set, 2, &next, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_update(tx, &table, &one, &next, set + 1, 1, NULL,
                                  &f->err)); /* without a next state */
    assert_ok(sqlock_tx_commit(tx, &f->err));
}

/* Another session changes the state, but the transaction's snapshot shows the
 * expected one.  An update from that state to itself changes no row: it must
 * return ECONFLICT or ERETRY, not success. */
static void test_state_left_behind_a_snapshot_is_a_conflict(void **state)
{
    struct fixture *f = *state;
    sqlock_table table = stock_table(f);
    sqlock_value one = sqlock_integer(1);
    sqlock_assignment set[] = {{"state", sqlock_text("new")},
                               {"a", sqlock_integer(1)}};
    sqlock_row_version fresh = {.type = SQLOCK_TEXT, .text = "new"};
    struct app app;
    struct app other;
    sqlock_tx *tx;
    int rc;

    table.version_column = "state";
    table.version_kind = SQLOCK_VERSION_STATE;
    app_open(&other, f->database, f->url);
    app_open(&app, f->database, f->url);
    app_begin_at(&app, "REPEATABLE READ");
    app_run(&app, "SELECT state FROM %s WHERE id = 1", stock_name(f));
    assert_string_equal(app.first, "new");
    app_run(&other, "UPDATE %s SET state = 'paid' WHERE id = 1", stock_name(f));
    tx = tx_adopt(f, &app);
    rc = sqlock_tx_update(tx, &table, &one, &fresh, set, 2, NULL, &f->err);
    assert_code(keeps_its_snapshot(f) ? SQLOCK_ERETRY : SQLOCK_ECONFLICT, rc,
                &f->err);
    (void)sqlock_tx_rollback(tx, NULL);
    app_close(&app);
    app_close(&other);
}

/* --- sixteen writers --- */

#define WRITERS 16

struct counters {
    sqlock_registry *registry;
    sqlock_table table;
    unsigned updates; /* of each writer */
    bool pessimistic;
    bool has_row_locks; /* false: one transaction at a time (SQLite) */
    atomic_uint have_read;
    atomic_uint conflicts;
    atomic_uint attempts;
};

/* An update of a writer. */
struct addition {
    struct counters *counters;
    unsigned conflicts;
};

static _Thread_local bool has_met;

/* In a writer's first transaction, wait until all writers have read the row,
 * for 10 s at most: so one of them succeeds, and the others conflict. */
static void meet_once(struct counters *counters)
{
    if (!counters->has_row_locks || has_met)
        return;
    has_met = true;
    (void)atomic_fetch_add(&counters->have_read, 1);
    (void)wait_until(atomic_load(&counters->have_read) >= WRITERS, 10000);
}

static int add_one(void *context, sqlock_tx *tx, sqlock_error *err)
{
    struct addition *addition = context;
    struct counters *counters = addition->counters;
    sqlock_value key = sqlock_integer(1);
    sqlock_assignment set = {.column = "a"};
    sqlock_result result = {0};
    sqlock_row_version seen;
    char text[160];
    int rc = 0;

    atomic_fetch_add(&counters->attempts, 1);
    if (counters->pessimistic && addition->conflicts >= 3)
        rc = sqlock_tx_lock_row(tx, &counters->table, &key, false, 1000, err);
    if (rc == 0)
        rc = sqlock_tx_version(tx, &counters->table, &key, &seen, err);
    if (rc < 0)
        return rc;
    (void)snprintf(text, sizeof text, "SELECT a FROM %s WHERE id = ?",
                   counters->table.name);
    rc = sqlock_tx_execute(tx, text, &key, 1, &result, err);
    if (rc == 0)
        set.value = sqlock_integer(result.cells[0].integer + 1);
    sqlock_result_clear(&result);
    if (rc < 0)
        return rc;
    meet_once(counters);
    rc =
        sqlock_tx_update(tx, &counters->table, &key, &seen, &set, 1, NULL, err);
    addition->conflicts += rc == SQLOCK_ECONFLICT;
    return rc;
}

static int write_often(struct worker *worker)
{
    struct counters *counters = worker->context;
    sqlock_retry_options options = SQLOCK_RETRY_INIT;

    options.attempts = 100000;
    options.deadline_ms = 20 * PATIENCE_MS; /* many attempts, and slow ones */
    for (unsigned i = 0; i < counters->updates; i++) {
        struct addition addition = {.counters = counters};

        worker_expect(worker, 0,
                      sqlock_tx_retry(counters->registry, add_one, &addition,
                                      &options, &worker->err));
        atomic_fetch_add(&counters->conflicts, addition.conflicts);
    }
    return 0;
}

static void sixteen_writers(struct fixture *f, bool pessimistic)
{
    static struct workers workers;
    sqlock_options options = fixture_options(f);
    struct counters counters = {.pessimistic = pessimistic};
    unsigned total;

    options.pool_size = WRITERS + 2;
    options.connect_timeout_ms = PATIENCE_MS;
    options.statement_timeout_ms = PATIENCE_MS;
    counters.registry = fixture_registry(f, &options);
    counters.table = stock_table(f);
    counters.updates = check_scale(8, 625);
    total = counters.updates * WRITERS;
    counters.has_row_locks = f->database->bit != ON_SQLITE;
    workers_start(&workers, WRITERS, write_often, &counters);
    workers_join(&workers);
    /* Each update has added one to `a` and to the version: none is lost, none
     * is done twice. */
    assert_int_equal(stock_value(f, 1), 100 + total);
    assert_int_equal(sql_integer(&f->sql, "SELECT version FROM %s WHERE id = 1",
                                 stock_name(f)),
                     1 + total);
    print_message("%u updates, %u attempts, %u conflicts\n", total,
                  atomic_load(&counters.attempts),
                  atomic_load(&counters.conflicts));
    assert_true(atomic_load(&counters.attempts) >= total);
    /* On SQLite only one transaction is open at a time. */
    if (counters.has_row_locks)
        assert_true(atomic_load(&counters.conflicts) > 0);
    registry_end(counters.registry);
}

static void test_sixteen_writers_lose_nothing(void **state)
{
    sixteen_writers(*state, false);
}

static void test_sixteen_writers_that_lock_after_three_conflicts(void **state)
{
    sixteen_writers(*state, true);
}

/* --- equality --- */

/* A table whose texts are equal for the database when they differ in case: by
 * MySQL's default, and by a collation elsewhere. */
static sqlock_table create_loose(struct fixture *f, char name[64])
{
    const char *how = "";

    (void)snprintf(name, 64, "%s_loose", stock_name(f));
    if (strcmp(f->database->name, "sqlite") == 0)
        how = " COLLATE NOCASE";
    if (strcmp(f->database->name, "postgres") == 0) {
        (void)sql_run(&f->sql,
                      "CREATE COLLATION IF NOT EXISTS loose (provider = icu, "
                      "locale = 'und-u-ks-level2', deterministic = false)");
        how = " COLLATE loose";
    }
    (void)sql_try(&f->sql, NULL, "DROP TABLE %s", name);
    (void)sql_run(&f->sql,
                  "CREATE TABLE %s (id VARCHAR(20) PRIMARY KEY, "
                  "state VARCHAR(20)%s, fence BIGINT, owner VARCHAR(20)%s)",
                  name, how, how);
    (void)sql_run(&f->sql, "INSERT INTO %s VALUES ('a1', 'NEW', 7, 'Ann')",
                  name);
    return (sqlock_table){.size = sizeof(sqlock_table),
                          .name = name,
                          .key_column = "id",
                          .version_column = "state",
                          .version_kind = SQLOCK_VERSION_STATE,
                          .fence_column = "fence",
                          .fence_owner_column = "owner"};
}

/* A text that only the database finds equal is another one. */
static void test_texts_are_compared_by_their_bytes(void **state)
{
    struct fixture *f = *state;
    char name[64];
    sqlock_table table = create_loose(f, name);
    sqlock_value key = sqlock_text("a1");
    sqlock_assignment run = {"state", sqlock_text("run")};
    const sqlock_row_version others[] = {
        {.type = SQLOCK_TEXT, .text = "new"},
        {.type = SQLOCK_TEXT, .text = "NEW "},
        {.type = SQLOCK_TEXT, .text = "N\u00c9W"},
    };
    sqlock_row_version found;
    sqlock_tx *tx = tx_begin(f);

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_fails(SQLOCK_ECONFLICT,
                     sqlock_tx_update(tx, &table, &key, &others[i], &run, 1,
                                      NULL, &f->err));
    assert_fails(SQLOCK_ECONFLICT,
                 sqlock_tx_fence(tx, &table, &key, 7, "ann", &f->err));
    assert_ok(sqlock_tx_fence(tx, &table, &key, 7, "Ann", &f->err));
    assert_ok(sqlock_tx_version(tx, &table, &key, &found, &f->err));
    assert_string_equal(found.text, "NEW");
    assert_ok(
        sqlock_tx_update(tx, &table, &key, &found, &run, 1, &found, &f->err));
    assert_string_equal(found.text, "run");
    assert_ok(sqlock_tx_commit(tx, &f->err));
    (void)sql_run(&f->sql, "DROP TABLE %s", name);
}

/* MySQL finds 0 equal to any text that is no number. */
static void test_a_number_is_no_key_of_a_text(void **state)
{
    struct fixture *f = *state;
    char name[64];
    sqlock_table table = create_loose(f, name);
    sqlock_value zero = sqlock_integer(0);
    sqlock_row_version found;
    sqlock_tx *tx = tx_begin(f);

    assert_fails(SQLOCK_ENOTFOUND,
                 sqlock_tx_version(tx, &table, &zero, &found, &f->err));
    assert_fails(SQLOCK_ENOTFOUND,
                 sqlock_tx_fence(tx, &table, &zero, 8, "Ann", &f->err));
    assert_fails(SQLOCK_ENOTFOUND,
                 sqlock_tx_lock_row(tx, &table, &zero, false, 0, &f->err));
    assert_ok(sqlock_tx_rollback(tx, &f->err));
    (void)sql_run(&f->sql, "DROP TABLE %s", name);
}

/* --- fences --- */

static void test_fence_refuses_what_comes_after(void **state)
{
    static const struct {
        const char *what;
        int row;
        int64_t token;
        const char *owner;
        int code;
    } fences[] = {
        {"the first", 1, 7, "a", 0},
        {"the same again", 1, 7, "a", 0},
        {"the same of another", 1, 7, "b", SQLOCK_ECONFLICT},
        {"an older one", 1, 6, "a", SQLOCK_ECONFLICT},
        {"a newer one", 1, 8, "b", 0},
        {"of no row", 999, 8, "b", SQLOCK_ENOTFOUND},
        {"no token", 1, 0, "b", SQLOCK_EINVAL},
        {"no owner", 1, 9, NULL, SQLOCK_EINVAL},
    };
    struct fixture *f = *state;
    sqlock_table table = stock_table(f);
    sqlock_tx *tx = tx_begin(f);

    for (size_t i = 0; i < sizeof fences / sizeof *fences; i++) {
        sqlock_value row = sqlock_integer(fences[i].row);

        print_message("%s\n", fences[i].what);
        assert_code(fences[i].code,
                    sqlock_tx_fence(tx, &table, &row, fences[i].token,
                                    fences[i].owner, &f->err),
                    &f->err);
    }
    assert_ok(sqlock_tx_commit(tx, &f->err));
    assert_int_equal(sql_integer(&f->sql, "SELECT fence FROM %s WHERE id = 1",
                                 stock_name(f)),
                     8);
}

/* --- rows --- */

static void test_row_locks_for_update_and_share(void **state)
{
    struct fixture *f = *state;
    sqlock_table table = stock_table(f);
    sqlock_value one = sqlock_integer(1);
    sqlock_value none = sqlock_integer(999);
    struct app app;
    sqlock_tx *tx;
    sqlock_tx *other;

    app_open(&app, f->database, f->url);
    tx = tx_adopt(f, &app);
    assert_fails(SQLOCK_ENOTFOUND,
                 sqlock_tx_lock_row(tx, &table, &none, false, 0, &f->err));
    assert_ok(sqlock_tx_lock_row(tx, &table, &one, true, 0, &f->err));
    if (f->database->bit != ON_SQLITE) {
        other = tx_begin(f);
        assert_ok(sqlock_tx_lock_row(other, &table, &one, true, 0, &f->err));
        assert_fails(SQLOCK_EBUSY, sqlock_tx_lock_row(other, &table, &one,
                                                      false, 0, &f->err));
        assert_fails(SQLOCK_ETIMEDOUT, sqlock_tx_lock_row(other, &table, &one,
                                                          false, 60, &f->err));
        assert_ok(sqlock_tx_commit(other, &f->err));
        assert_ok(sqlock_tx_lock_row(tx, &table, &one, false, 0, &f->err));
        other = tx_begin(f);
        assert_fails(SQLOCK_EBUSY,
                     sqlock_tx_lock_row(other, &table, &one, true, 0, &f->err));
        assert_ok(sqlock_tx_commit(other, &f->err));
    }
    assert_ok(sqlock_tx_commit(tx, &f->err));
    app_close(&app);
}

struct row_waiter {
    struct fixture *f;
    sqlock_tx *tx;
    sqlock_table table;
    int rc;
    sqlock_error err;
};

static int wait_for_row(struct worker *worker)
{
    struct row_waiter *waiter = worker->context;
    sqlock_value one = sqlock_integer(1);

    waiter->rc = sqlock_tx_lock_row(waiter->tx, &waiter->table, &one, false,
                                    PATIENCE_MS, &waiter->err);
    return 0;
}

/* A client that waits for a row that is then deleted gets ENOTFOUND. */
static void test_row_deleted_meanwhile_is_missing(void **state)
{
    struct fixture *f = *state;
    struct row_waiter waiter = {.table = stock_table(f)};
    struct worker worker;
    struct app app;

    app_open(&app, f->database, f->url);
    app_run(&app, "BEGIN");
    app_run(&app, "DELETE FROM %s WHERE id = 1", stock_name(f));
    waiter.tx = tx_begin(f);
    worker_start(&worker, wait_for_row, &waiter);
    app_run(&app, "COMMIT");
    worker_join(&worker);
    assert_code(SQLOCK_ENOTFOUND, waiter.rc, &waiter.err);
    assert_ok(sqlock_tx_commit(waiter.tx, &f->err));
    app_close(&app);
}

static const struct test tests[] = {
    TEST(test_integer_version_updated_conflict_and_missing),
    TEST(test_null_and_greatest_versions_are_refused),
    TEST_ON(test_version_at_its_columns_limit_is_refused, ON_SERVERS,
            IN_SQLOCK),
    TEST(test_timestamp_versions_always_rise),
    TEST(test_state_moves_once),
    TEST(test_texts_are_compared_by_their_bytes),
    TEST_ON(test_a_number_is_no_key_of_a_text, ON_MYSQL | ON_SQLITE, IN_SQLOCK),
    TEST_OF_ROWS(test_state_left_behind_a_snapshot_is_a_conflict, ON_SERVERS,
                 0),
    TEST(test_sixteen_writers_lose_nothing),
    TEST_OF_ROWS(test_sixteen_writers_that_lock_after_three_conflicts, ON_ALL,
                 0),
    TEST(test_fence_refuses_what_comes_after),
    TEST_OF_ROWS(test_row_locks_for_update_and_share, ON_ALL, 0),
    TEST_OF_ROWS(test_row_deleted_meanwhile_is_missing, ON_SERVERS, IN_SQLOCK),
};
const struct topic topic_version = TOPIC(tests);
