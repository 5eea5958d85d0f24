/*
 * test_version.c - sixteen writers that compare and set, and texts that only
 * the database finds equal
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

#include "support/workers.h"

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

TEST(test_sixteen_writers_lose_nothing)
{
    sixteen_writers(f, false);
}

TEST_OF_ROWS(test_sixteen_writers_that_lock_after_three_conflicts, ON_ALL, 0)
{
    sixteen_writers(f, true);
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
TEST(test_texts_are_compared_by_their_bytes)
{
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
TEST_ON(test_a_number_is_no_key_of_a_text, ON_MYSQL | ON_SQLITE, IN_SQLOCK)
{
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
