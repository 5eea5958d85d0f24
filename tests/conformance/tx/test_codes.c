/*
 * test_codes.c - calls on a transaction return only the codes listed in
 * sqlock/tx.h, whatever the database answers
 */
#include "suite.h"

#include <stdatomic.h>
#include <stdio.h>

#include "support/contract.h"
#include "support/server.h"
#include "support/tap.h"

/* --- on a connection of the registry --- */

static void begin(struct contract *c)
{
    sqlock_tx *tx = NULL;

    assert_becomes_true(sqlock_tx_begin(&tx, c->registry, &c->f->err) == 0,
                        PATIENCE_MS);
    c->state = tx;
}

static void roll_back(struct contract *c)
{
    (void)sqlock_tx_rollback(c->state, NULL);
    c->state = NULL;
}

/* Begin and guard; again if a busy machine exceeds the short limit of a
 * statement. */
static void begin_guarded(struct contract *c)
{
    int64_t end_ns = check_deadline_ns(PATIENCE_MS);
    int rc;

    for (;;) {
        begin(c);
        rc = sqlock_tx_guard(c->state, c->locks[0], &c->f->err);
        if (rc == 0 || !check_pause(end_ns))
            break;
        roll_back(c);
    }
    assert_lock_ok(rc, &c->f->err);
}

static int call_begin(struct contract *c, sqlock_error *err)
{
    return sqlock_tx_begin((sqlock_tx **)&c->state, c->registry, err);
}

static int call_execute(struct contract *c, sqlock_error *err)
{
    sqlock_value id = sqlock_integer(2);
    char text[160];

    (void)snprintf(text, sizeof text, "UPDATE %s SET a = 5 WHERE id = ?",
                   stock_name(c->f));
    return sqlock_tx_execute(c->state, text, &id, 1, NULL, err);
}

/* Lock a name that has no row yet. */
static int call_lock(struct contract *c, sqlock_error *err)
{
    const char *name = sqlock_name(c->locks[0]);

    return sqlock_tx_lock(c->state, &name, 1, 30, false, NULL, err);
}

static int call_lock_row(struct contract *c, sqlock_error *err)
{
    sqlock_table table = stock_table(c->f);
    sqlock_value id = sqlock_integer(1);

    return sqlock_tx_lock_row(c->state, &table, &id, false, 30, err);
}

static int call_guard(struct contract *c, sqlock_error *err)
{
    return sqlock_tx_guard(c->state, c->locks[0], err);
}

static int call_fence(struct contract *c, sqlock_error *err)
{
    sqlock_table table = stock_table(c->f);
    sqlock_value id = sqlock_integer(1);

    return sqlock_tx_fence(c->state, &table, &id, 7, "me", err);
}

static int call_version(struct contract *c, sqlock_error *err)
{
    sqlock_table table = stock_table(c->f);
    sqlock_value id = sqlock_integer(1);
    sqlock_row_version version;

    return sqlock_tx_version(c->state, &table, &id, &version, err);
}

static int call_update(struct contract *c, sqlock_error *err)
{
    const sqlock_row_version first = {.type = SQLOCK_INT64, .integer = 1};
    const sqlock_assignment set = {"a", sqlock_integer(6)};
    sqlock_table table = stock_table(c->f);
    sqlock_value id = sqlock_integer(1);

    return sqlock_tx_update(c->state, &table, &id, &first, &set, 1, NULL, err);
}

static int call_commit(struct contract *c, sqlock_error *err)
{
    sqlock_tx *tx = c->state;

    c->state = NULL;
    return sqlock_tx_commit(tx, err);
}

static int lock_and_write(void *context, sqlock_tx *tx, sqlock_error *err)
{
    struct contract *c = context;
    int rc;

    c->state = tx;
    rc = call_lock(c, err);
    if (rc == 0)
        rc = call_execute(c, err);
    c->state = NULL;
    return rc;
}

static int call_retry(struct contract *c, sqlock_error *err)
{
    sqlock_retry_options limits = SQLOCK_RETRY_INIT;

    limits.deadline_ms = 100;
    limits.pause_ms = 10;
    return sqlock_tx_retry(c->registry, lock_and_write, c, &limits, err);
}

#define BEGIN_CODES CODES_NOT_APPLIED
#define EXECUTE_CODES                                                          \
    (CODE(EBUSY) | CODE(ETIMEDOUT) | CODE(ERETRY) | CODE(ELOST) |              \
     CODE(ESCHEMA) | CODE(EACCESS) | CODE(EDATABASE) | CODE(ECANCELED) |       \
     CODE(EREADONLY) | CODE(ERESOURCE) | CODE(ENOMEM))
#define LOCK_CODES (EXECUTE_CODES | CODE(EUNREACHABLE))
#define GUARD_CODES (EXECUTE_CODES | CODE(EUNREACHABLE))
#define COMMIT_CODES (EXECUTE_CODES | CODE(EUNCERTAIN))

#define CALL(name_, held_, prepare_, call_, codes_)                            \
    {                                                                          \
        .name = (name_), .databases = ON_ALL, .is_held = (held_),              \
        .prepare = (prepare_), .call = (call_), .finish = roll_back,           \
        .codes = (codes_)                                                      \
    }

static const struct contract_call calls[] = {
    CALL("sqlock_tx_begin", false, NULL, call_begin, BEGIN_CODES),
    CALL("sqlock_tx_execute", false, begin, call_execute, EXECUTE_CODES),
    CALL("sqlock_tx_lock", false, begin, call_lock, LOCK_CODES),
    CALL("sqlock_tx_lock_row", false, begin, call_lock_row, EXECUTE_CODES),
    CALL("sqlock_tx_guard", true, begin, call_guard, GUARD_CODES),
    CALL("sqlock_tx_fence", false, begin, call_fence, EXECUTE_CODES),
    CALL("sqlock_tx_version", false, begin, call_version, EXECUTE_CODES),
    CALL("sqlock_tx_update", false, begin, call_update, EXECUTE_CODES),
    CALL("sqlock_tx_commit", false, begin, call_commit, COMMIT_CODES),
    CALL("sqlock_tx_commit with a guard", true, begin_guarded, call_commit,
         COMMIT_CODES),
    CALL("sqlock_tx_retry", false, NULL, call_retry,
         BEGIN_CODES | LOCK_CODES | COMMIT_CODES),
};

TEST_OF_ROWS(test_transactions_keep_to_their_codes, ON_ALL, IN_SQLOCK)
{
    contract_check(f, calls, sizeof calls / sizeof *calls);
}

/* --- on the application's connection --- */

/* The server ends the session, and the application notices by a statement of
 * its own: each call of the library then returns ELOST. */
TEST_OF_ROWS(test_a_terminated_connection_is_lost, ON_SERVERS, IN_SQLOCK)
{
    static int (*const on_a_tx[])(struct contract *, sqlock_error *) = {
        call_execute, call_lock,   call_lock_row, call_fence,
        call_version, call_update, call_commit};
    sqlock_lock *lock = lock_obtain(f->a, f->name);

    for (size_t i = 0; i < sizeof on_a_tx / sizeof *on_a_tx; i++) {
        struct contract c = {.f = f, .registry = f->a, .locks = {lock}};
        struct session s;
        int64_t id;

        session_open(f, &s, NULL);
        id = app_session(&s.app);
        server_end_sessions(&f->sql, &id, 1);
        assert_becomes_true(app_try(&s.app, "SELECT 1") != 0, PATIENCE_MS);
        c.state = s.tx;
        assert_fails(SQLOCK_ELOST, on_a_tx[i](&c, &f->err));
        s.tx = c.state;
        session_close(&s);
    }
    lock_drop(lock);
}

/* --- a lease that a guard finds gone --- */

/* The caller's lock says so, too, from then on. */
TEST_OF_ROWS(test_a_guard_that_fails_ends_the_lease, ON_ALL, IN_SQLOCK)
{
    for (int is_taken = 0; is_taken <= 1; is_taken++) {
        int code = is_taken != 0 ? SQLOCK_ELOST : SQLOCK_EEXPIRED;
        sqlock_lock *lock = lock_obtain(f->a, f->name);
        sqlock_lock *other = lock_obtain(f->b, f->name);
        sqlock_tx *tx;

        lock_take(lock, 60000);
        fixture_expire(f, f->name);
        if (is_taken != 0)
            lock_take(other, 60000);
        tx = tx_begin(f);
        assert_fails(code, sqlock_tx_guard(tx, lock, &f->err));
        assert_int_equal(sqlock_remaining_ms(lock), 0);
        assert_ok(sqlock_tx_rollback(tx, &f->err));
        assert_fails(code, sqlock_release(lock, &f->err));
        if (is_taken != 0)
            lock_give(other);
        lock_drop(lock);
        lock_drop(other);
        fixture_next(f);
    }
}

/* --- a statement that takes long --- */

/* A statement of a minute, in a transaction on a connection of the registry. */
struct slow {
    struct fixture *f;
    sqlock_tx *tx;
    atomic_bool is_over;
    int rc;
};

static int run_slow(struct slow *slow, sqlock_error *err)
{
    char text[160];

    switch (slow->f->database->bit) {
    case ON_POSTGRES:
        (void)snprintf(text, sizeof text, "SELECT pg_sleep(60)");
        break;
    case ON_MYSQL:
        (void)snprintf(text, sizeof text, "SELECT id FROM %s WHERE SLEEP(60)",
                       stock_name(slow->f));
        break;
    default:
        (void)snprintf(
            text, sizeof text,
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
            "FROM n) SELECT count(*) FROM n");
        break;
    }
    return sqlock_tx_execute(slow->tx, text, NULL, 0, NULL, err);
}

/* Return what the server says of a statement that its limit has ended. */
static const char *words_of(const struct fixture *f)
{
    return f->database->bit == ON_POSTGRES
               ? "canceling statement due to statement timeout"
               : "interrupted";
}

/* The registry's limit ends it.  If a busy machine brings the server's answer
 * too late (ELOST), or that to the next statement (ETIMEDOUT), try again. */
TEST(test_a_statement_that_takes_too_long_times_out)
{
    sqlock_options options = fixture_options(f);
    int64_t until = check_deadline_ns(PATIENCE_MS);
    struct slow slow = {.f = f};
    sqlock_registry *registry;
    int after = f->database->bit == ON_POSTGRES ? SQLOCK_ETIMEDOUT : 0;
    int again;
    int rc;

    options.statement_timeout_ms = 1000;
    registry = fixture_registry(f, &options);
    do {
        assert_becomes_true(sqlock_tx_begin(&slow.tx, registry, &f->err) == 0,
                            PATIENCE_MS);
        rc = run_slow(&slow, &f->err);
        again = sqlock_tx_execute(slow.tx, "SELECT 1", NULL, 0, NULL, NULL);
        (void)sqlock_tx_rollback(slow.tx, NULL);
    } while (
        (rc == SQLOCK_ELOST || (after == 0 && again == SQLOCK_ETIMEDOUT)) &&
        check_pause(until));
    assert_fails(SQLOCK_ETIMEDOUT, rc);
    assert_contains(f->err.message, "raise statement_timeout_ms");
    assert_contains(f->err.message, words_of(f));
    assert_int_equal(again, after);
    registry_end(registry);
}

/* A limit of a statement that is longer than what a busy machine takes. */
#define LIMIT_MS (1000 * SLOWNESS)

static sqlock_registry *open_limited(struct fixture *f)
{
    sqlock_options options = fixture_options(f);

    options.statement_timeout_ms = LIMIT_MS;
    return fixture_tapped(f, &options);
}

/* Put the table's rows behind a view that takes a minute to read, or to change
 * a row of. */
static void make_view(struct fixture *f, char name[80])
{
    const char *waits =
        f->database->bit == ON_POSTGRES ? "pg_sleep(60) IS NOT NULL"
        : f->database->bit == ON_MYSQL
            ? "SLEEP(60) = 0"
            : "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
              "FROM n) SELECT count(*) FROM n)";

    (void)snprintf(name, 80, "%s_slow", stock_name(f));
    (void)sql_run(&f->sql, "CREATE VIEW %s AS SELECT * FROM %s WHERE %s", name,
                  stock_name(f), waits);
    if (f->database->bit == ON_SQLITE)
        (void)sql_run(&f->sql,
                      "CREATE TRIGGER %s_update INSTEAD OF UPDATE ON %s BEGIN "
                      "SELECT 1; END",
                      name, name);
}

static int on_view(sqlock_tx *tx, const sqlock_table *view, size_t call,
                   sqlock_error *err)
{
    const sqlock_row_version first = {.type = SQLOCK_INT64, .integer = 1};
    sqlock_value id = sqlock_integer(1);
    sqlock_row_version version;

    switch (call) {
    case 0:
        return sqlock_tx_lock_row(tx, view, &id, false, 0, err);
    case 1:
        return sqlock_tx_version(tx, view, &id, &version, err);
    case 2:
        return sqlock_tx_fence(tx, view, &id, 7, "me", err);
    default:
        return sqlock_tx_update(tx, view, &id, &first, NULL, 0, NULL, err);
    }
}

/* Call a function on the view, behind a savepoint.  Return its result, and in
 * *after and *back those of a statement after it, and after a return to the
 * savepoint. */
static int call_on_view(struct fixture *f, sqlock_registry *registry,
                        const sqlock_table *view, size_t call, int *after,
                        int *back)
{
    sqlock_tx *tx = NULL;
    int rc;

    assert_becomes_true(sqlock_tx_begin(&tx, registry, &f->err) == 0,
                        PATIENCE_MS);
    assert_ok(sqlock_tx_execute(tx, "SAVEPOINT s", NULL, 0, NULL, &f->err));
    rc = on_view(tx, view, call, &f->err);
    *after = sqlock_tx_execute(tx, "SELECT 1", NULL, 0, NULL, NULL);
    *back =
        sqlock_tx_execute(tx, "ROLLBACK TO SAVEPOINT s", NULL, 0, NULL, NULL);
    if (*back == 0)
        *back = sqlock_tx_execute(tx, "SELECT 1", NULL, 0, NULL, NULL);
    (void)sqlock_tx_rollback(tx, NULL);
    return rc;
}

/* The server ends them, and says why.  On PostgreSQL that aborts the
 * transaction, which goes on from a savepoint; SQLite rolls all of it back
 * after a call that writes. */
TEST_OF_ROWS(test_each_call_on_a_slow_table_times_out, ON_ALL, IN_SQLOCK)
{
    /* Oracle's MySQL limits what only reads. */
    size_t calls_of = fixture_is_oracles(f) ? 2 : 4;
    sqlock_registry *registry = open_limited(f);
    sqlock_table view = stock_table(f);
    char name[80];

    make_view(f, name);
    view.name = name;
    for (size_t i = 0; i < calls_of; i++) {
        bool is_gone = f->database->bit == ON_SQLITE && i >= 2;
        bool is_over = f->database->bit == ON_POSTGRES || is_gone;
        int64_t until = check_deadline_ns(PATIENCE_MS);
        int after;
        int back;
        int rc;

        do
            rc = call_on_view(f, registry, &view, i, &after, &back);
        while (rc == SQLOCK_ELOST && check_pause(until));
        assert_fails(SQLOCK_ETIMEDOUT, rc);
        assert_contains(f->err.message, words_of(f));
        assert_int_equal(after, is_over ? SQLOCK_ETIMEDOUT : 0);
        assert_int_equal(back, is_gone ? SQLOCK_ETIMEDOUT : 0);
    }
    (void)sql_run(&f->sql, "DROP VIEW %s", name);
    registry_end(registry);
}

/* Let the first statement come to the driver when its time is over. */
static int come_late(void *context, const struct tap_event *event)
{
    bool *is_late = context;

    if ((event->call == TAP_EXECUTE || event->call == TAP_COMMIT) && !*is_late)
        check_sleep(LIMIT_MS + 1);
    *is_late = true;
    return 0;
}

/* The client's own limit, before anything is sent, in each call on a
 * transaction. */
TEST_OF_ROWS(test_each_call_that_comes_too_late_times_out, ON_ALL, IN_SQLOCK)
{
    struct contract c = {.f = f, .registry = open_limited(f)};

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        bool is_late = false;
        int rc;

        if (calls[i].prepare == NULL)
            continue;
        check_row(calls[i].name);
        fixture_next(f);
        c.locks[0] = lock_obtain(c.registry, f->name);
        if (calls[i].is_held)
            lock_take(c.locks[0], 60000);
        calls[i].prepare(&c);
        tap_hooks(come_late, NULL, &is_late);
        rc = calls[i].call(&c, &f->err);
        tap_hooks(NULL, NULL, NULL);
        assert_fails(SQLOCK_ETIMEDOUT, rc);
        assert_contains(f->err.message, "raise statement_timeout_ms");
        roll_back(&c);
        if (calls[i].is_held)
            lock_give(c.locks[0]);
        lock_drop(c.locks[0]);
    }
    check_row(NULL);
    registry_end(c.registry);
}

static int sleep_long(struct worker *worker)
{
    struct slow *slow = worker->context;

    slow->rc = run_slow(slow, &worker->err);
    atomic_store(&slow->is_over, true);
    return 0;
}

/* Somebody else ends the statement before its time is over. */
TEST_ON(test_a_statement_that_is_cancelled_is_told_so, ON_SERVERS, 0)
{
    bool is_postgres = f->database->bit == ON_POSTGRES;
    int64_t until = check_deadline_ns(PATIENCE_MS);
    sqlock_options options = fixture_options(f);
    struct slow slow = {.f = f};
    sqlock_registry *registry;
    sqlock_result session = {0};
    struct worker worker;

    options.statement_timeout_ms = 2 * PATIENCE_MS;
    registry = fixture_registry(f, &options);
    assert_ok(sqlock_tx_begin(&slow.tx, registry, &f->err));
    assert_ok(sqlock_tx_execute(slow.tx,
                                is_postgres ? "SELECT pg_backend_pid()"
                                            : "SELECT CONNECTION_ID()",
                                NULL, 0, &session, &f->err));
    worker_start(&worker, sleep_long, &slow);
    while (!atomic_load(&slow.is_over) && check_pause(until))
        (void)sql_try(&f->sql, NULL,
                      is_postgres ? "SELECT pg_cancel_backend(%lld)"
                                  : "KILL QUERY %lld",
                      (long long)session.cells[0].integer);
    worker_join(&worker);
    assert_int_equal(slow.rc, SQLOCK_ECANCELED);
    sqlock_result_clear(&session);
    (void)sqlock_tx_rollback(slow.tx, NULL);
    registry_end(registry);
}
