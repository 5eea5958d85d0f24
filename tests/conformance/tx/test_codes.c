/*
 * test_codes.c - calls on a transaction return only the codes listed in
 * sqlock/tx.h, whatever the database answers
 */
#include "suite.h"

#include <stdatomic.h>
#include <stdio.h>

#include "support/contract.h"
#include "support/server.h"

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
    (CODE(EBUSY) | CODE(ERETRY) | CODE(ELOST) | CODE(ESCHEMA) |                \
     CODE(EACCESS) | CODE(EDATABASE) | CODE(ECANCELED) | CODE(EREADONLY) |     \
     CODE(ERESOURCE) | CODE(ENOMEM))
#define LOCK_CODES (EXECUTE_CODES | CODE(ETIMEDOUT) | CODE(EUNREACHABLE))
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
    CALL("sqlock_tx_execute", false, begin, call_execute,
         EXECUTE_CODES | CODE(ETIMEDOUT)),
    CALL("sqlock_tx_lock", false, begin, call_lock, LOCK_CODES),
    CALL("sqlock_tx_lock_row", false, begin, call_lock_row,
         EXECUTE_CODES | CODE(ETIMEDOUT)),
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

static void test_transactions_keep_to_their_codes(void **state)
{
    contract_check(*state, calls, sizeof calls / sizeof *calls);
}

/* --- on the application's connection --- */

/* The server ends the session, and the application notices by a statement of
 * its own: each call of the library then returns ELOST. */
static void test_a_terminated_connection_is_lost(void **state)
{
    static int (*const on_a_tx[])(struct contract *, sqlock_error *) = {
        call_execute, call_lock,   call_lock_row, call_fence,
        call_version, call_update, call_commit};
    struct fixture *f = *state;
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

/* The registry's limit ends it.  If a busy machine brings the server's answer
 * too late (ELOST), try again. */
static void test_a_statement_that_takes_too_long_times_out(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    int64_t until = check_deadline_ns(PATIENCE_MS);
    struct slow slow = {.f = f};
    sqlock_registry *registry;
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
    } while (rc == SQLOCK_ELOST && check_pause(until));
    assert_fails(SQLOCK_ETIMEDOUT, rc);
    assert_contains(f->err.message, "raise statement_timeout_ms");
    assert_int_equal(again,
                     f->database->bit == ON_POSTGRES ? SQLOCK_ETIMEDOUT : 0);
    registry_end(registry);
}

static int sleep_long(struct worker *worker)
{
    struct slow *slow = worker->context;

    slow->rc = run_slow(slow, &worker->err);
    atomic_store(&slow->is_over, true);
    return 0;
}

/* Somebody else ends the statement before its time is over. */
static void test_a_statement_that_is_cancelled_is_told_so(void **state)
{
    struct fixture *f = *state;
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

static const struct test tests[] = {
    TEST_OF_ROWS(test_transactions_keep_to_their_codes, ON_ALL, IN_SQLOCK),
    TEST_OF_ROWS(test_a_terminated_connection_is_lost, ON_SERVERS, IN_SQLOCK),
    TEST(test_a_statement_that_takes_too_long_times_out),
    TEST_ON(test_a_statement_that_is_cancelled_is_told_so, ON_SERVERS, 0),
};
const struct topic topic_codes = TOPIC(tests);
