/*
 * test_recheck.c - a transaction that has released the row of a lease which it
 * guards: the commit checks the lease again, and commits nothing if another
 * holder has had the lock
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

#include "support/tap.h"

/* Statements before and after the guard by which a transaction releases the
 * lease's row. */
struct way {
    const char *name;
    const char *before; /* NULL: nothing */
    const char *behind[2];
    bool by_us; /* through sqlock_tx_execute() */
    unsigned databases;
};

static const struct way ways[] = {
    {.name = "COMMIT AND CHAIN through us",
     .behind = {"COMMIT AND CHAIN"},
     .by_us = true,
     .databases = ON_SERVERS},
    {.name = "COMMIT AND CHAIN",
     .behind = {"COMMIT AND CHAIN"},
     .databases = ON_SERVERS},
    {.name = "COMMIT and BEGIN",
     .behind = {"COMMIT", "BEGIN"},
     .databases = ON_ALL},
    {.name = "ROLLBACK and BEGIN",
     .behind = {"ROLLBACK", "BEGIN"},
     .databases = ON_ALL},
    /* DDL commits; with autocommit off the next statement begins a
     * transaction. */
    {.name = "DDL",
     .before = "SET autocommit = 0",
     .behind = {"DROP TABLE IF EXISTS tx_nowhere"},
     .databases = ON_MYSQL},
    /* SQLite keeps its lock; InnoDB releases rows only if the transaction had
     * not used InnoDB before the savepoint. */
    {.name = "ROLLBACK TO through us",
     .before = "SAVEPOINT before_it",
     .behind = {"ROLLBACK TO SAVEPOINT before_it"},
     .by_us = true,
     .databases = ON_SERVERS},
};

static void run(struct fixture *f, struct session *s, const struct way *way,
                const char *text)
{
    sqlock_result result = {0};

    if (!way->by_us) {
        app_run(&s->app, "%s", text);
        return;
    }
    assert_ok(sqlock_tx_execute(s->tx, text, NULL, 0, &result, &f->err));
    sqlock_result_clear(&result);
}

/* Guard a lease in a new session, and release its row in that way. */
static void guard_and_let_go(struct fixture *f, struct session *s,
                             const struct way *way, sqlock_lock *lock)
{
    session_open(f, s, NULL);
    if (way->before != NULL)
        run(f, s, way, way->before);
    assert_ok(sqlock_tx_guard(s->tx, lock, &f->err));
    for (size_t i = 0; i < 2 && way->behind[i] != NULL; i++)
        run(f, s, way, way->behind[i]);
}

static void write_as_application(struct fixture *f, struct session *s)
{
    app_run(&s->app, "UPDATE %s SET a = a + 1 WHERE id = 1", stock_name(f));
}

typedef int (*end_fn)(sqlock_tx *tx, sqlock_error *err);

/* After the row is released and the lease has expired, another holder takes the
 * lock.  The superseded holder writes, and `end` must return ELOST. */
static void end_superseded(struct fixture *f, const struct way *way, end_fn end)
{
    sqlock_lock *lock;
    sqlock_lock *other;
    struct session s;

    fixture_next(f);
    lock = lock_obtain(f->a, f->name);
    other = lock_obtain(f->b, f->name);
    lock_take(lock, 0);
    guard_and_let_go(f, &s, way, lock);
    fixture_expire(f, f->name);
    lock_take(other, 0);
    write_as_application(f, &s);
    assert_fails(SQLOCK_ELOST, end(s.tx, &f->err));
    assert_contains(f->err.message, f->name);
    s.tx = NULL;
    session_close(&s);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_end(other);
    lock_drop(lock);
}

static void test_superseded_holder_commits_nothing(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if ((ways[i].databases & f->database->bit) == 0)
            continue;
        end_superseded(f, &ways[i], sqlock_tx_commit);
        if (stock_value(f, 1) != 100)
            fail_msg("%s: the superseded holder has written", ways[i].name);
    }
}

/* sqlock_tx_leave() must tell, since the application then commits by itself. */
static void test_superseded_holder_is_told_when_it_leaves(void **state)
{
    end_superseded(*state, &ways[2], sqlock_tx_leave);
}

/* The lease's row was released, but nobody has taken the lock: the commit
 * succeeds. */
static void test_lease_that_is_still_ours_is_committed(void **state)
{
    struct fixture *f = *state;
    long long expected = 100;

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        sqlock_lock *lock;
        struct session s;

        if ((ways[i].databases & f->database->bit) == 0)
            continue;
        fixture_next(f);
        lock = lock_obtain(f->a, f->name);
        lock_take(lock, 0);
        guard_and_let_go(f, &s, &ways[i], lock);
        write_as_application(f, &s);
        session_commit(f, &s);
        assert_int_equal(stock_value(f, 1), ++expected);
        session_close(&s);
        lock_end(lock);
    }
}

/* On a connection of the registry, where statements are prepared, the rows of
 * two guarded leases are released.  If another holder takes one of them,
 * nothing is committed, and the registry's next transaction works. */
static void test_one_lost_lease_of_two_on_our_own_connection(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_value one = sqlock_integer(1);
    sqlock_registry *registry;
    sqlock_lock *locks[2];
    sqlock_lock *other;
    char text[160];
    sqlock_tx *tx;
    int rc;

    options.pool_size = 1;
    registry = fixture_registry(f, &options);
    locks[0] = lock_obtain(registry, f->name);
    other = lock_obtain(f->b, f->name);
    fixture_next(f);
    locks[1] = lock_obtain(registry, f->name);
    (void)snprintf(text, sizeof text, "UPDATE %s SET a = a + 1 WHERE id = ?",
                   stock_name(f));
    for (int turn = 0; turn < 3; turn++) {
        bool is_lost = turn == 1;

        lock_take(locks[0], 0);
        lock_take(locks[1], 0);
        assert_ok(sqlock_tx_begin(&tx, registry, &f->err));
        for (int i = 0; i < 2; i++)
            assert_ok(sqlock_tx_guard(tx, locks[i], &f->err));
        assert_ok(
            sqlock_tx_execute(tx, "COMMIT AND CHAIN", NULL, 0, NULL, &f->err));
        if (is_lost) {
            fixture_expire(f, sqlock_name(locks[0]));
            lock_take(other, 0);
        }
        assert_ok(sqlock_tx_execute(tx, text, &one, 1, NULL, &f->err));
        rc = sqlock_tx_commit(tx, &f->err);
        assert_code(is_lost ? SQLOCK_ELOST : 0, rc, &f->err);
        if (is_lost) {
            lock_give(other);
            assert_fails(SQLOCK_ELOST, sqlock_release(locks[0], &f->err));
        } else {
            lock_give(locks[0]);
        }
        lock_give(locks[1]);
    }
    assert_int_equal(stock_value(f, 1), 102);
    lock_drop(other);
    lock_drop(locks[0]);
    lock_drop(locks[1]);
    registry_end(registry);
}

/* Nobody has taken the lease, but another session has its row locked at the
 * commit: ERETRY, and nothing is committed. */
static void test_row_that_is_locked_meanwhile_is_retry(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct session s;
    struct sql dba;

    lock_take(lock, 0);
    guard_and_let_go(f, &s, &ways[2], lock);
    fixture_lock_row(f, &dba, lock);
    write_as_application(f, &s);
    session_commit_fails(SQLOCK_ERETRY, f, &s);
    assert_false(app_in_transaction(&s.app));
    fixture_unlock_row(&dba);
    assert_int_equal(stock_value(f, 1), 100);
    session_close(&s);
    lock_end(lock);
}

/* Return how many round trips the commit of a guarded transaction takes after
 * that statement, which follows a savepoint. */
static uint64_t trips_of_commit(struct fixture *f, sqlock_registry *tapped,
                                sqlock_lock *lock, const char *statement)
{
    uint64_t before;
    sqlock_tx *tx;

    assert_ok(sqlock_tx_begin(&tx, tapped, &f->err));
    assert_ok(sqlock_tx_guard(tx, lock, &f->err));
    assert_ok(sqlock_tx_execute(tx, "SAVEPOINT s", NULL, 0, NULL, &f->err));
    assert_ok(sqlock_tx_execute(tx, statement, NULL, 0, NULL, &f->err));
    before = tap_sent();
    assert_ok(sqlock_tx_commit(tx, &f->err));
    return tap_sent() - before;
}

/* Statements about rows, and those that make or forget a savepoint, cannot
 * release the row of a guarded lease, so the commit takes one round trip.
 * After others the lease is checked again: on PostgreSQL together with the
 * commit, elsewhere in one round trip more. */
static void test_check_and_commit_take_so_many_round_trips(void **state)
{
    static const char *const harmless[] = {"SELECT 1",
                                           "\n\twith a as (select 1) "
                                           "select * from a",
                                           "RELEASE SAVEPOINT s"};
    static const char *const others[] = {"ROLLBACK TO s", "-- a\nROLLBACK TO s",
                                         "/* SELECT */ ROLLBACK TO s"};
    struct fixture *f = *state;
    sqlock_registry *tapped = fixture_tapped(f, NULL);
    sqlock_lock *lock = lock_obtain(tapped, f->name);

    lock_take(lock, 0);
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        assert_int_equal(trips_of_commit(f, tapped, lock, harmless[i]), 1);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(trips_of_commit(f, tapped, lock, others[i]),
                         f->database->bit == ON_POSTGRES ? 1 : 2);
    lock_end(lock);
    registry_end(tapped);
}

/* On a connection of the registry a text that begins with SELECT cannot end the
 * transaction, nor let another one begin. */
static void test_one_text_is_one_statement(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_value one = sqlock_integer(1);
    char text[160];
    sqlock_tx *tx;
    int rc;

    lock_take(lock, 0);
    tx = tx_begin(f);
    assert_ok(sqlock_tx_guard(tx, lock, &f->err));
    (void)snprintf(text, sizeof text, "UPDATE %s SET a = 7 WHERE id = ?",
                   stock_name(f));
    assert_ok(sqlock_tx_execute(tx, text, &one, 1, NULL, &f->err));
    rc = sqlock_tx_execute(tx, "SELECT 1; COMMIT; BEGIN", NULL, 0, NULL,
                           &f->err);
    assert_int_not_equal(rc, 0);
    assert_int_equal(stock_value(f, 1), 100);
    assert_ok(sqlock_tx_rollback(tx, &f->err));
    assert_int_equal(stock_value(f, 1), 100);
    lock_end(lock);
}

static const struct test tests[] = {
    TEST_OF_ROWS(test_superseded_holder_commits_nothing, ON_ALL, HAS_EXPIRY),
    TEST_OF_ROWS(test_superseded_holder_is_told_when_it_leaves, ON_ALL,
                 IN_SQLOCK),
    TEST_OF_ROWS(test_lease_that_is_still_ours_is_committed, ON_ALL, IN_ALL),
    TEST_OF_ROWS(test_one_lost_lease_of_two_on_our_own_connection, ON_SERVERS,
                 IN_SQLOCK),
    TEST_OF_ROWS(test_row_that_is_locked_meanwhile_is_retry, ON_SERVERS,
                 IN_SQLOCK),
    TEST_OF_ROWS(test_check_and_commit_take_so_many_round_trips, ON_ALL,
                 IN_SQLOCK),
    TEST_OF_ROWS(test_one_text_is_one_statement, ON_ALL, IN_SQLOCK),
};
const struct topic topic_recheck = TOPIC(tests);
