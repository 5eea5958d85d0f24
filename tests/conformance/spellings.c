/*
 * spellings.c - where the application chooses the keys, and the column LOCK_KEY
 * compares loosely, keys of other bytes are one lock, whose row has the key of
 * whoever came first
 */
#include "conformance.h"

#include <stdio.h>

#include "sqlock/many.h"
#include "sqlock/stats.h"

void loosen(struct fixture *f, const char *table, const char *column,
            const char *type)
{
    (void)sql_run(&f->sql, "DROP VIEW IF EXISTS %s_NOW", table);
    if (f->database->bit == ON_MYSQL)
        (void)sql_run(&f->sql,
                      "ALTER TABLE %s MODIFY %s %s CHARACTER SET utf8mb4 "
                      "COLLATE utf8mb4_general_ci NOT NULL",
                      table, column, type);
    if (f->database->bit != ON_POSTGRES)
        return;
    /* Another test makes the same one, maybe at the same time. */
    (void)sql_try(&f->sql, NULL,
                  "CREATE COLLATION IF NOT EXISTS loose (provider = icu, "
                  "locale = 'und-u-ks-level2', deterministic = false)");
    (void)sql_run(&f->sql,
                  "ALTER TABLE %s ALTER COLUMN %s TYPE %s COLLATE loose", table,
                  column, type);
}

void loosen_key(struct fixture *f, const char *table)
{
    loosen(f, table, "LOCK_KEY", "CHAR(36)");
    if (f->database->bit != ON_SQLITE)
        return;
    (void)sql_run(&f->sql, "DROP TABLE %s", table);
    (void)sql_run(&f->sql,
                  "CREATE TABLE %s (LOCK_KEY TEXT COLLATE NOCASE NOT NULL, "
                  "REGION TEXT NOT NULL, CLIENT_ID TEXT, "
                  "CREATED_DATE INTEGER NOT NULL, "
                  "EXPIRED_AFTER INTEGER NOT NULL, "
                  "FENCE INTEGER NOT NULL DEFAULT 0, LOCK_NAME TEXT, "
                  "HOLDER TEXT, QUEUE TEXT, SHARERS TEXT, LEADER TEXT, "
                  "PRIMARY KEY (LOCK_KEY, REGION))",
                  table);
}

#define COUNT 3

/* Locks whose rows have other spellings of their keys. */
struct spelt {
    char table[32];
    sqlock_options options; /* with table_prefix, the table's without "LOCK" */
    sqlock_registry *registry;
    sqlock_lock *locks[COUNT];
    int results[COUNT];
};

static void spelt_open(struct spelt *spelt, struct fixture *f,
                       const char *prefix)
{
    static const char *const lower[COUNT] = {"one", "three", "two"};
    static const char *const upper[COUNT] = {"ONE", "THREE", "TWO"};

    *spelt = (struct spelt){.options = fixture_options(f)};
    spelt->options.table_prefix = prefix;
    spelt->options.key_rule = SQLOCK_KEY_RAW;
    spelt->options.renew_period_ms = 20;
    (void)snprintf(spelt->table, sizeof spelt->table, "%sLOCK", prefix);
    sql_drop_locks(&f->sql, prefix);
    assert_ok(sqlock_schema_create(f->url, &spelt->options,
                                   SQLOCK_LAYOUT_SQLOCK, &f->err));
    loosen_key(f, spelt->table);
    spelt->registry = fixture_registry(f, &spelt->options);
    for (size_t i = 0; i < COUNT; i++) {
        sqlock_lock *first = lock_obtain(spelt->registry, lower[i]);

        lock_take_and_give(first);
        lock_drop(first);
        spelt->locks[i] = lock_obtain(spelt->registry, upper[i]);
        spelt->results[i] = 1;
    }
}

static void spelt_close(struct spelt *spelt, struct fixture *f)
{
    for (size_t i = 0; i < COUNT; i++)
        lock_drop(spelt->locks[i]);
    registry_end(spelt->registry);
    sql_drop_locks(&f->sql, spelt->options.table_prefix);
}

static void assert_all(const struct spelt *spelt, int rc)
{
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(spelt->results[i], rc);
}

TEST_ON(test_many_of_other_spellings, ON_ALL, IN_SQLOCK)
{
    struct spelt spelt;

    spelt_open(&spelt, f, "many_spelt_");
    for (unsigned round = 0; round < 2; round++) {
        assert_ok(sqlock_acquire_many(spelt.locks, COUNT, 0, NULL,
                                      spelt.results, &f->err));
        assert_all(&spelt, 0);
        assert_ok(
            sqlock_renew_many(spelt.locks, COUNT, spelt.results, &f->err));
        assert_all(&spelt, 0);
        assert_ok(
            sqlock_release_many(spelt.locks, COUNT, spelt.results, &f->err));
        assert_all(&spelt, 0);
    }
    spelt_close(&spelt, f);
}

/* The renewer sends the statement for many, also for one. */
TEST_ON(test_another_spelling_is_renewed, ON_ALL, IN_SQLOCK)
{
    sqlock_acquire_options renewed = SQLOCK_ACQUIRE_INIT;
    sqlock_stats stats = SQLOCK_STATS_INIT;
    struct spelt spelt;
    int64_t until;

    renewed.auto_renew = true;
    spelt_open(&spelt, f, "spelt_");
    assert_ok(sqlock_acquire(spelt.locks[0], 0, &renewed, &f->err));
    until = check_deadline_ns(PATIENCE_MS);
    while (stats.renewed + stats.lost == 0) {
        assert_true(check_pause(until));
        assert_ok(sqlock_registry_stats(spelt.registry, &stats, &f->err));
    }
    assert_int_equal(stats.lost, 0);
    lock_give(spelt.locks[0]);
    spelt_close(&spelt, f);
}

/* A transaction has the row of one, which is passed over, and not lost. */
TEST_ON(test_another_spelling_is_passed_over, ON_SERVERS, IN_SQLOCK)
{
    struct spelt spelt;
    struct sql other;

    spelt_open(&spelt, f, "row_spelt_");
    assert_ok(sqlock_acquire_many(spelt.locks, COUNT, 0, NULL, NULL, &f->err));
    assert_int_equal(sql_open(&other, f->database, f->url), 0);
    assert_int_equal(sql_begin(&other), 0);
    (void)sql_run(&other,
                  "UPDATE %s SET REGION = REGION WHERE LOCK_KEY = 'three'",
                  spelt.table);
    assert_fails(SQLOCK_EBUSY,
                 sqlock_renew_many(spelt.locks, COUNT, spelt.results, &f->err));
    assert_int_equal(spelt.results[0], 0);
    assert_int_equal(spelt.results[1], SQLOCK_EBUSY);
    assert_int_equal(spelt.results[2], 0);
    (void)sql_rollback(&other);
    sql_close(&other);
    assert_ok(sqlock_release_many(spelt.locks, COUNT, spelt.results, &f->err));
    assert_all(&spelt, 0);
    spelt_close(&spelt, f);
}

/* The row is theirs: whoever waits for it waits until they give it. */
TEST_ON(test_another_spelling_is_waited_for, ON_ALL, IN_SQLOCK)
{
    struct spelt spelt;
    sqlock_lock *theirs;
    sqlock_registry *b;

    spelt_open(&spelt, f, "wait_spelt_");
    b = fixture_registry(f, &spelt.options);
    theirs = lock_obtain(b, "three");
    lock_take(theirs, 0);
    assert_fails(SQLOCK_EBUSY, sqlock_acquire_many(spelt.locks, COUNT, 0, NULL,
                                                   spelt.results, &f->err));
    assert_fails(SQLOCK_ETIMEDOUT,
                 sqlock_acquire_many(spelt.locks, COUNT, 50, NULL,
                                     spelt.results, &f->err));
    lock_end(theirs);
    registry_end(b);
    assert_ok(sqlock_acquire_many(spelt.locks, COUNT, 0, NULL, spelt.results,
                                  &f->err));
    assert_ok(sqlock_release_many(spelt.locks, COUNT, spelt.results, &f->err));
    spelt_close(&spelt, f);
}
