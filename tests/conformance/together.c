/*
 * together.c - threads that wait for a connection have their claims and
 * releases sent together, where the database can (lease/together.h): each has
 * its own outcome
 */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

#include "sqlock/stats.h"
#include "support/tap.h"
#include "support/workers.h"

#define THREADS 12
#define ROUNDS 12

struct crowd {
    sqlock_registry *registry;
    sqlock_lock *locks[THREADS];
    char names[THREADS][64];
    int64_t tokens[THREADS];
    int64_t wait_ms;
    atomic_uint left; /* threads that have not ended */
    atomic_uint lost; /* answers */
};

/* Open a registry of two connections, a lock for each thread, and use each
 * lock once, so that its row is there. */
static void gather(struct crowd *crowd, struct fixture *f)
{
    sqlock_options options = fixture_options(f);

    memset(crowd, 0, sizeof *crowd);
    options.pool_size = 2;
    crowd->registry = fixture_tapped(f, &options);
    atomic_store(&crowd->left, THREADS);
    for (size_t i = 0; i < THREADS; i++) {
        (void)snprintf(crowd->names[i], sizeof crowd->names[i], "%.50s %zu",
                       f->name, i);
        crowd->locks[i] = lock_obtain(crowd->registry, crowd->names[i]);
        lock_take(crowd->locks[i], 0);
        crowd->tokens[i] = sqlock_token(crowd->locks[i]);
        lock_give(crowd->locks[i]);
    }
    tap_reset();
}

/* Assert that no row was left taken, and that tokens went on to rise. */
static void disperse(struct crowd *crowd, struct fixture *f)
{
    tap_reset();
    for (size_t i = 0; i < THREADS; i++) {
        sqlock_lock *theirs = lock_obtain(f->a, crowd->names[i]);

        assert_ok(lock_try(theirs, PATIENCE_MS, 0, &f->err));
        assert_true(sqlock_token(theirs) > crowd->tokens[i]);
        lock_give(theirs);
        lock_drop(theirs);
    }
    registry_end(crowd->registry);
}

/* Take the thread's lock.  An answer may be lost again and again. */
static int take(struct worker *worker, struct crowd *crowd)
{
    sqlock_lock *lock = crowd->locks[worker->index];
    int rc;

    do
        rc = lock_try(lock, crowd->wait_ms, 0, &worker->err);
    while (rc == SQLOCK_EUNCERTAIN && atomic_load(&crowd->lost) > 0);
    if (rc < 0)
        return worker_fail(worker, "%d: %s", rc, worker->err.message);
    if (sqlock_token(lock) <= crowd->tokens[worker->index])
        return worker_fail(worker, "the token has not risen");
    crowd->tokens[worker->index] = sqlock_token(lock);
    return 0;
}

static int take_and_give(struct worker *worker)
{
    struct crowd *crowd = worker->context;
    sqlock_lock *lock = crowd->locks[worker->index];

    for (unsigned round = 0; round < ROUNDS; round++) {
        int rc = take(worker, crowd);

        if (rc < 0)
            return rc;
        rc = sqlock_release(lock, &worker->err);
        if (rc < 0 &&
            (rc != SQLOCK_EUNCERTAIN || atomic_load(&crowd->lost) == 0))
            return worker_fail(worker, "%d: %s", rc, worker->err.message);
    }
    (void)atomic_fetch_sub(&crowd->left, 1);
    return 0;
}

/* Return how often a connection was waited for, or had at once. */
static uint64_t pool_waits(struct crowd *crowd, struct fixture *f)
{
    sqlock_stats stats = SQLOCK_STATS_INIT;

    assert_ok(sqlock_registry_stats(crowd->registry, &stats, &f->err));
    return stats.pool_wait.count;
}

static void test_threads_that_wait_share_statements(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd;
    struct workers workers;
    uint64_t sent, waits;

    gather(&crowd, f);
    waits = pool_waits(&crowd, f);
    workers_start(&workers, THREADS, take_and_give, &crowd);
    workers_join(&workers);
    sent = tap_sent();
    if (f->layout == SQLOCK_LAYOUT_SQLOCK && f->database->bit != ON_SQLITE &&
        !fixture_is_oracles(f)) {
        assert_true(sent < UINT64_C(2) * THREADS * ROUNDS);
        assert_true(pool_waits(&crowd, f) - waits >=
                    UINT64_C(2) * THREADS * ROUNDS);
    }
    disperse(&crowd, f);
}

/* The database has carried a statement out, and its answer is lost: each of
 * those in it finds out whether it has its lock. */
static int lose_some(void *context, const struct tap_event *event, int rc)
{
    struct crowd *crowd = context;

    if (event->call != TAP_EXECUTE || rc != 0 || event->number % 9 != 0)
        return rc;
    (void)atomic_fetch_add(&crowd->lost, 1);
    return SQLOCK_EUNCERTAIN;
}

static void test_a_shared_statement_without_an_answer(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd;
    struct workers workers;

    gather(&crowd, f);
    crowd.wait_ms = PATIENCE_MS;
    tap_hooks(NULL, lose_some, &crowd);
    workers_start(&workers, THREADS, take_and_give, &crowd);
    workers_join(&workers);
    assert_true(atomic_load(&crowd.lost) > 0);
    disperse(&crowd, f);
}

/* The thread whose row a transaction has locked is refused, or waits; the
 * others must not. */
static int be_refused_or_not(struct worker *worker)
{
    struct crowd *crowd = worker->context;
    int rc;

    if (worker->index > 0)
        return take_and_give(worker);
    while (atomic_load(&crowd->left) > 1) {
        rc = lock_try(crowd->locks[0], 0, 0, &worker->err);
        if (rc != SQLOCK_EBUSY)
            return worker_fail(worker, "%d: %s", rc, worker->err.message);
    }
    return 0;
}

static void test_a_locked_row_holds_up_no_other(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd;
    struct workers workers;

    gather(&crowd, f);
    assert_int_equal(sql_begin(&f->sql), 0);
    (void)sql_integer(&f->sql,
                      "SELECT 1 FROM %s WHERE LOCK_KEY = '%s' FOR UPDATE",
                      f->table, sqlock_key(crowd.locks[0]));
    workers_start(&workers, THREADS, be_refused_or_not, &crowd);
    workers_join(&workers);
    assert_int_equal(sql_rollback(&f->sql), 0);
    disperse(&crowd, f);
}

static const struct test tests[] = {
    TEST(test_threads_that_wait_share_statements),
    TEST(test_a_shared_statement_without_an_answer),
    TEST_ON(test_a_locked_row_holds_up_no_other, ON_POSTGRES | ON_MYSQL,
            IN_SQLOCK),
};
const struct topic topic_together = TOPIC(tests);
