/*
 * test_reap.c - rows of names are reaped beside the transactions that lock them
 */
#include "suite.h"

#define NAMES "REGION = 'DEFAULT#tx'"

static long long names_of(struct fixture *f)
{
    return sql_integer(&f->sql, "SELECT count(*) FROM %s WHERE " NAMES,
                       f->table);
}

static int64_t reap(struct fixture *f, int64_t retention_ms)
{
    int64_t removed = -1;
    int rc = sqlock_reap(f->b, retention_ms, &removed, &f->err);

    assert_ok(rc);
    return removed;
}

TEST_OF_ROWS(test_names_that_nobody_has_locked_are_reaped, ON_SERVERS, IN_ALL)
{
    struct session a;
    struct session b;

    /* A lease with the greatest key: the names' rows come before it. */
    fixture_put_row(f, "ffffffff-ffff-ffff-ffff-ffffffffffff", "DEFAULT",
                    "somebody", 60000000, 120000000);
    (void)reap(f, 0);
    assert_int_equal(names_of(f), 0);
    sessions_open(f, &a, &b);
    assert_ok(lock_one(&a, f->name, 0, &f->err));
    fixture_next(f);
    assert_ok(lock_one(&b, f->name, 0, &f->err));
    session_commit(f, &b);
    assert_int_equal(reap(f, SQLOCK_RETENTION_DEFAULT_MS), 0);
    assert_int_equal(reap(f, 0), 1);
    assert_int_equal(reap(f, 0), 0);
    assert_int_equal(names_of(f), 1);
    session_commit(f, &a);
    assert_int_equal(reap(f, 0), 1);
    assert_int_equal(names_of(f), 0);
    (void)sql_run(&f->sql, "DELETE FROM %s WHERE CLIENT_ID = 'somebody'",
                  f->table);
    sessions_close(&a, &b);
}

/* The accounts of Spring services are leases in the same region. */
TEST_OF_ROWS(test_accounts_that_ended_are_reaped, ON_SERVERS, IN_SQLOCK)
{
    (void)reap(f, 0);
    fixture_put_row(f, "s-ended", "DEFAULT#tx", "somebody", -60000000,
                    -30000000);
    fixture_put_row(f, "s-under-way", "DEFAULT#tx", "somebody", -60000000,
                    120000000);
    assert_int_equal(reap(f, 45000), 0);
    assert_int_equal(reap(f, 0), 1);
    assert_int_equal(names_of(f), 1);
    (void)sql_run(&f->sql, "DELETE FROM %s WHERE CLIENT_ID = 'somebody'",
                  f->table);
}

/* A session waits for a name whose row another one deletes: it gets the name
 * with a new row, or gets ERETRY and then the name; and nobody else can lock
 * it. */
TEST_OF_ROWS(test_row_is_deleted_under_a_waiter, ON_SERVERS, IN_SQLOCK)
{
    struct session a;
    struct session b;
    struct app dba;
    struct worker worker;
    struct waiter waiter = {
        .session = &b, .name = f->name, .wait_ms = PATIENCE_MS};

    session_open(f, &a, NULL);
    assert_ok(lock_one(&a, f->name, 0, &f->err));
    session_close(&a);
    app_open(&dba, f->database, f->url);
    app_run(&dba, "BEGIN");
    app_run(&dba, "DELETE FROM %s WHERE " NAMES, f->table);
    session_open(f, &b, NULL);
    worker_start(&worker, session_wait, &waiter);
    assert_becomes_true(session_is_waiting(f, &b), PATIENCE_MS);
    app_run(&dba, "COMMIT");
    worker_join(&worker);
    if (waiter.rc == SQLOCK_ERETRY) {
        session_commit_fails(SQLOCK_ERETRY, f, &b);
        session_close(&b);
        session_open(f, &b, NULL);
        waiter.rc = lock_one(&b, f->name, 0, &waiter.err);
    }
    assert_lock_ok(waiter.rc, &waiter.err);
    session_open(f, &a, NULL);
    assert_fails(SQLOCK_EBUSY, lock_one(&a, f->name, 0, &f->err));
    sessions_close(&a, &b);
    app_close(&dba);
}

/* --- a race --- */

#define LOCKERS 4
#define TURNS 100

struct race {
    struct fixture *f;
    atomic_int inside;
    atomic_bool is_over;
    atomic_llong removed;
};

static int begin(struct race *race, struct worker *worker, struct app *app,
                 sqlock_tx **tx)
{
    return worker->index % 2 == 0
               ? sqlock_tx_begin(tx, race->f->a, &worker->err)
               : sqlock_tx_adopt(tx, race->f->a, app->native, &worker->err);
}

/* Return whether a thread has locked TURNS times, and the reaper has removed a
 * row, for which a busy machine may need until the time `until`. */
static bool is_enough(struct race *race, int done, int64_t until)
{
    return done >= TURNS &&
           (atomic_load(&race->removed) > 0 || sqlock_monotonic_ns() >= until);
}

static int lock_again_and_again(struct worker *worker)
{
    struct race *race = worker->context;
    const char *name = race->f->name;
    struct app app = {0};
    int64_t until = check_deadline_ns(PATIENCE_MS);
    int done = 0;

    if (worker->index == LOCKERS) { /* the reaper */
        while (!atomic_load(&race->is_over)) {
            int64_t removed = 0;
            int rc = sqlock_reap(race->f->b, 0, &removed, &worker->err);

            /* On a busy machine the lockers keep the row for as long as a
             * statement waits. */
            if (rc != SQLOCK_EBUSY)
                worker_expect(worker, 0, rc);
            (void)atomic_fetch_add(&race->removed, removed);
        }
        return 0;
    }
    if (worker->index % 2 != 0)
        app_open(&app, race->f->database, race->f->url);
    while (!is_enough(race, done, until) && !atomic_load(&race->is_over)) {
        sqlock_tx *tx = NULL;
        int rc = begin(race, worker, &app, &tx);

        if (rc == 0)
            rc = sqlock_tx_lock(tx, &name, 1, PATIENCE_MS, false, NULL,
                                &worker->err);
        if (rc == 0) {
            bool was_alone = atomic_fetch_add(&race->inside, 1) == 0;

            done++;
            rc = sqlock_tx_execute(tx, "SELECT 1", NULL, 0, NULL, &worker->err);
            atomic_fetch_sub(&race->inside, 1);
            worker_expect(worker, 0, rc);
            rc = sqlock_tx_commit(tx, &worker->err);
            if (!was_alone)
                return worker_fail(worker, "two have the name");
        } else {
            (void)sqlock_tx_rollback(tx, NULL);
        }
        if (rc != 0 && rc != SQLOCK_ERETRY)
            return worker_fail(worker, "%d: %s", rc, worker->err.message);
    }
    if (worker->index == 0) /* ends the other threads */
        atomic_store(&race->is_over, true);
    app_close(&app);
    return 0;
}

TEST_OF_ROWS(test_reaping_never_lets_two_have_a_name, ON_SERVERS, IN_SQLOCK)
{
    struct race race = {.f = f};
    struct workers workers;

    workers_start(&workers, LOCKERS + 1, lock_again_and_again, &race);
    workers_join(&workers);
    assert_int_equal(atomic_load(&race.inside), 0);
    assert_less(0, atomic_load(&race.removed));
    (void)reap(f, 0);
    assert_int_equal(names_of(f), 0);
}
