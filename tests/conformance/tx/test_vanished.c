/*
 * test_vanished.c - transactions whose client says nothing any more: its
 * machine is dead, or the network is cut without a word
 *
 * To a server such a client looks like one that does nothing, which is what
 * these tests do.
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

#include "support/login.h"

/* Lease length of the registry whose client vanishes.  Its transactions may
 * idle for 5 s, the least limit. */
#define TTL_MS 1000
/* For somebody else's wait; without a limit it would last for ever. */
#define WAIT_MS 60000

static sqlock_registry *open_short(struct fixture *f)
{
    sqlock_options options = fixture_options(f);

    options.ttl_ms = TTL_MS;
    options.pool_size = 1;
    return fixture_registry(f, &options);
}

static void assert_ended(struct fixture *f, sqlock_tx *tx)
{
    assert_fails(SQLOCK_ELOST, sqlock_tx_commit(tx, &f->err));
    assert_contains(f->err.message, "nothing of the transaction");
}

static void test_a_silent_guard_blocks_its_lock_for_a_limited_time(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *silent = open_short(f);
    sqlock_lock *lock = lock_obtain(silent, f->name);
    sqlock_lock *next = lock_obtain(f->b, f->name);
    sqlock_tx *tx;

    lock_take(lock, LONG_TTL_MS / 10); /* time for the guard */
    lock_renew(lock, TTL_MS);
    assert_ok(sqlock_tx_begin(&tx, silent, &f->err));
    assert_ok(sqlock_tx_guard(tx, lock, &f->err));
    assert_ok(lock_try(next, WAIT_MS, 0, &f->err));
    lock_end(next);
    assert_ended(f, tx);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(lock);
    registry_end(silent);
}

static void
test_a_silent_transaction_blocks_its_rows_for_a_limited_time(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *silent = open_short(f);
    sqlock_table table = stock_table(f);
    sqlock_value key = sqlock_integer(1);
    const char *name = f->name;
    sqlock_tx *tx;
    sqlock_tx *next;

    assert_ok(sqlock_tx_begin(&tx, silent, &f->err));
    assert_ok(sqlock_tx_lock(tx, &name, 1, 0, false, NULL, &f->err));
    assert_ok(sqlock_tx_lock_row(tx, &table, &key, false, 0, &f->err));
    next = tx_begin(f);
    assert_ok(sqlock_tx_lock(next, &name, 1, WAIT_MS, false, NULL, &f->err));
    assert_ok(sqlock_tx_lock_row(next, &table, &key, false, WAIT_MS, &f->err));
    assert_ok(sqlock_tx_rollback(next, &f->err));
    assert_ended(f, tx);
    registry_end(silent);
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

/* A holder may idle within its lease: the limit follows the longest one that
 * the transaction guards, and the next transaction has the registry's again. */
static void test_the_limit_follows_the_longest_lease(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = open_short(f);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_lock *other;
    sqlock_tx *tx;

    assert_int_equal(limit_of_next(f, registry), 5000);
    lock_take(lock, LONG_TTL_MS);
    fixture_next(f);
    other = lock_obtain(registry, f->name);
    lock_take(other, LONG_TTL_MS / 2);
    assert_ok(sqlock_tx_begin(&tx, registry, &f->err));
    assert_ok(sqlock_tx_guard(tx, other, &f->err));
    assert_int_equal(limit_of(f, tx), LONG_TTL_MS);
    assert_ok(sqlock_tx_guard(tx, lock, &f->err));
    assert_int_equal(limit_of(f, tx), 2 * LONG_TTL_MS);
    assert_ok(sqlock_tx_guard(tx, other, &f->err));
    assert_int_equal(limit_of(f, tx), 2 * LONG_TTL_MS);
    assert_ok(sqlock_tx_commit(tx, &f->err));
    assert_int_equal(limit_of_next(f, registry), 5000);
    assert_int_equal(limit_of_next(f, f->a), 2 * LONG_TTL_MS);
    lock_end(lock);
    lock_end(other);
    registry_end(registry);
}

/* An administrator may have set a shorter limit, which stays. */
static void test_a_shorter_limit_of_the_role_stays(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    struct login login;

    login_make(&login, f, "hasty");
    login_grant(&login, "SELECT, INSERT, UPDATE", f->table);
    sql_run(&login.admin,
            "ALTER ROLE %s SET idle_in_transaction_session_timeout = '3s'",
            login.parts.user);
    registry = fixture_registry_at(f, login.url, &options);
    assert_int_equal(limit_of_next(f, registry), 3000);
    sql_run(&login.admin,
            "ALTER ROLE %s SET idle_in_transaction_session_timeout = '1d'",
            login.parts.user);
    registry_end(registry);
    registry = fixture_registry_at(f, login.url, &options);
    assert_int_equal(limit_of_next(f, registry), 2 * LONG_TTL_MS);
    registry_end(registry);
    login_drop(&login, f);
}

static const struct test tests[] = {
    TEST_OF_ROWS(test_a_silent_guard_blocks_its_lock_for_a_limited_time,
                 ON_SERVERS, IN_SQLOCK),
    TEST_OF_ROWS(test_a_silent_transaction_blocks_its_rows_for_a_limited_time,
                 ON_SERVERS, IN_SQLOCK),
    TEST_OF_ROWS(test_the_limit_follows_the_longest_lease, ON_SERVERS,
                 IN_SQLOCK),
    TEST_OF_ROWS(test_a_shorter_limit_of_the_role_stays, ON_POSTGRES,
                 IN_SQLOCK),
};
const struct topic topic_vanished = TOPIC(tests);
