/*
 * together.c - threads that wait for a connection have their claims and
 * releases sent together, where the database can (lease/together.h): each has
 * its own outcome
 */
#include "conformance.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sqlock/async.h"
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

/* Open a registry of so many connections, a lock for each thread, and use each
 * lock once, so that its row is there. */
static void gather_at(struct crowd *crowd, struct fixture *f,
                      uint32_t pool_size)
{
    sqlock_options options = fixture_options(f);

    memset(crowd, 0, sizeof *crowd);
    options.pool_size = pool_size;
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

static void gather(struct crowd *crowd, struct fixture *f)
{
    gather_at(crowd, f, 2);
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

/* Let all threads use a pool of that size, and assert that some statements were
 * about several locks. */
static void share_statements(struct fixture *f, uint32_t pool_size)
{
    struct crowd crowd;
    struct workers workers;
    uint64_t sent, waits;

    gather_at(&crowd, f, pool_size);
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

TEST(test_threads_that_wait_share_statements)
{
    share_statements(f, 2);
}

/* A connection for each thread does not let each send alone. */
TEST_ON(test_threads_share_statements_in_a_large_pool, ON_SERVERS, IN_SQLOCK)
{
    share_statements(f, THREADS);
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

TEST(test_a_shared_statement_without_an_answer)
{
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

TEST_ON(test_a_locked_row_holds_up_no_other, ON_POSTGRES | ON_MYSQL, IN_SQLOCK)
{
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

/* --- what is refused --- */

/* A claim or release of several is not carried out, but gives `refusal`. */
struct refusal {
    struct crowd crowd;
    int refusal;
    atomic_uint leases; /* that were in the statements refused */
    atomic_uint told;   /* threads that were told so */
};

static int refuse_several(void *context, const struct tap_event *event)
{
    struct refusal *r = context;
    size_t leases = event->call == TAP_EXECUTE ? tap_leases(event) : 0;

    if (leases == 0 || strstr(event->text, "LOCK_NAME") == NULL)
        return 0;
    (void)atomic_fetch_add(&r->leases, (unsigned)leases);
    return r->refusal;
}

/* Claim until a claim was refused together with others. */
static int claim_often(struct worker *worker)
{
    struct refusal *r = worker->context;
    sqlock_lock *lock = r->crowd.locks[worker->index];
    int told = r->refusal == SQLOCK_ECANCELED ? SQLOCK_ETIMEDOUT : SQLOCK_EBUSY;
    int rc;

    do {
        rc = lock_try(lock, 0, 0, &worker->err);
        if (rc == told)
            (void)atomic_fetch_add(&r->told, 1);
        else if (rc < 0)
            return worker_fail(worker, "%d: %s", rc, worker->err.message);
        if (rc == 0)
            worker_expect(worker, 0, sqlock_release(lock, &worker->err));
    } while (atomic_load(&r->leases) == 0);
    return 0;
}

/* Rows that are locked are passed over, so the statement for several is refused
 * because of the table or the server: each is told that, and is not sent alone
 * with what is left of its time, after which nobody would know what became of
 * it. */
TEST_ON(test_a_refusal_of_several_is_each_ones, ON_SERVERS, IN_SQLOCK)
{
    static const int refusals[] = {SQLOCK_EBUSY, SQLOCK_ECANCELED};
    struct refusal r;
    struct workers workers;

    for (size_t i = 0; i < 2 && !fixture_is_oracles(f); i++) {
        memset(&r, 0, sizeof r);
        r.refusal = refusals[i];
        gather(&r.crowd, f);
        tap_hooks(refuse_several, NULL, &r);
        workers_start(&workers, THREADS, claim_often, &r);
        workers_join(&workers);
        assert_int_equal(atomic_load(&r.told), atomic_load(&r.leases));
        disperse(&r.crowd, f);
    }
}

/* --- what is one row --- */

/* Locks of which the first ALIKE have one row, as their keys are one for the
 * table. */
#define ALIKE (THREADS / 2)
struct alike {
    sqlock_registry *registry;
    sqlock_lock *locks[THREADS];
    atomic_uint granted;
};

static int claim_once(struct worker *worker)
{
    struct alike *alike = worker->context;
    int rc = lock_try(alike->locks[worker->index], 0, 0, &worker->err);

    (void)atomic_fetch_add(&alike->granted, rc == 0);
    return rc == 0 || rc == SQLOCK_EBUSY
               ? 0
               : worker_fail(worker, "%d: %s", rc, worker->err.message);
}

/* Give the row to each lock in turn, so that each is claimed by the short
 * statement next; then let all claim at once. */
static void claim_at_once(struct alike *alike)
{
    struct workers workers;

    atomic_store(&alike->granted, 0);
    for (unsigned i = 0; i < THREADS; i++)
        lock_take_and_give(alike->locks[i]);
    workers_start(&workers, THREADS, claim_once, alike);
    workers_join(&workers);
    assert_int_equal(atomic_load(&alike->granted), THREADS - ALIKE + 1);
    for (unsigned i = 0; i < THREADS; i++)
        if (sqlock_is_held(alike->locks[i]))
            lock_give(alike->locks[i]);
}

/* With raw keys, "key" and "KEY" are one lock where the column compares so:
 * one statement about both would grant it twice. */
TEST_ON(test_keys_of_one_row_have_one_owner, ON_SERVERS, IN_SQLOCK)
{
    static const char table[] = "alike_LOCK";
    sqlock_options options = fixture_options(f);
    struct alike alike = {0};
    char name[16];

    options.table_prefix = "alike_";
    options.key_rule = SQLOCK_KEY_RAW;
    options.ownership = SQLOCK_OWNED_BY_REGISTRY;
    options.pool_size = 2;
    sql_drop_locks(&f->sql, options.table_prefix);
    assert_ok(
        sqlock_schema_create(f->url, &options, SQLOCK_LAYOUT_SQLOCK, &f->err));
    loosen_key(f, table);
    alike.registry = fixture_registry(f, &options);
    for (unsigned i = 0; i < THREADS; i++) {
        (void)snprintf(name, sizeof name, "lock/%u", i < ALIKE ? 0 : i);
        for (unsigned bit = 0; bit < 4; bit++)
            name[bit] = (char)(name[bit] - (i >> bit & 1 ? 'a' - 'A' : 0));
        alike.locks[i] = lock_obtain(alike.registry, name);
    }
    for (unsigned round = 0; round < ROUNDS; round++)
        claim_at_once(&alike);
    registry_end(alike.registry);
    sql_drop_locks(&f->sql, options.table_prefix);
}

/* --- threads that are cancelled --- */

/* Statements wait until the test has cancelled threads: none ends before. */
struct held {
    struct crowd crowd;
    atomic_bool is_held, may_go;
};

static int hold_all(void *context, const struct tap_event *event)
{
    struct held *held = context;

    if (event->call == TAP_EXECUTE) {
        atomic_store(&held->is_held, true);
        (void)wait_until(atomic_load(&held->may_go), PATIENCE_MS);
    }
    return 0;
}

/* A thread dies in a function that has nothing on its stack: what guards the
 * stack of others stays there, and AddressSanitizer takes it for a fault. */
#define APART __attribute__((noinline))

static APART void take_held(struct worker *worker)
{
    struct held *held = worker->context;

    (void)take(worker, &held->crowd);
}

static APART void give_held(struct worker *worker)
{
    struct held *held = worker->context;

    if (sqlock_release(held->crowd.locks[worker->index], &worker->err) != 0)
        (void)worker_fail(worker, "%s", worker->err.message);
}

/* Take the lock, and die if the thread was cancelled. */
static void *die(void *worker)
{
    take_held(worker);
    pthread_testcancel();
    give_held(worker);
    return NULL;
}

/* The first thread leads, and so does the second, for the third and fourth:
 * those that are cancelled meanwhile go on to the end of the call. */
TEST(test_cancelled_threads_finish_their_statement)
{
    struct held held = {0};
    struct worker workers[4] = {0};

    gather(&held.crowd, f);
    tap_hooks(hold_all, NULL, &held);
    for (unsigned i = 0; i < 4; i++) {
        workers[i].index = i;
        workers[i].context = &held;
        assert_int_equal(
            pthread_create(&workers[i].thread, NULL, die, &workers[i]), 0);
        if (i == 0)
            assert_becomes_true(atomic_load(&held.is_held), PATIENCE_MS);
    }
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_cancel(workers[i].thread), 0);
    atomic_store(&held.may_go, true);
    for (unsigned i = 0; i < 4; i++) {
        void *ended = NULL;

        assert_int_equal(pthread_join(workers[i].thread, &ended), 0);
        assert_ptr_equal(ended, i < 3 ? PTHREAD_CANCELED : NULL);
        assert_string_equal(workers[i].report, "");
    }
    tap_reset();
    registry_end(held.crowd.registry);
}

static APART void wait_with_descriptor(struct worker *worker)
{
    struct crowd *crowd = worker->context;
    int fd = -1;

    atomic_store(&worker->tid, gettid());
    worker->rc = sqlock_lost_fd(&fd, crowd->locks[0], &worker->err);
    if (worker->rc == 0)
        worker->rc = lock_try(crowd->locks[0], SQLOCK_FOREVER, 0, &worker->err);
}

static void *wait_and_die(void *worker)
{
    wait_with_descriptor(worker);
    pthread_testcancel();
    return NULL;
}

/* It gets the lock, and all that the call does besides: it reads the descriptor
 * of the loss, with a mutex locked that every call needs. */
TEST(test_a_cancelled_waiter_finishes_its_call)
{
    struct crowd crowd;
    struct worker worker = {.context = &crowd, .rc = 1};
    sqlock_lock *theirs;
    void *ended = NULL;

    gather(&crowd, f);
    theirs = lock_obtain(f->a, crowd.names[0]);
    lock_take(theirs, 0);
    assert_int_equal(
        pthread_create(&worker.thread, NULL, wait_and_die, &worker), 0);
    assert_becomes_true(worker_is_parked(&worker), PATIENCE_MS);
    assert_int_equal(pthread_cancel(worker.thread), 0);
    lock_end(theirs);
    assert_int_equal(pthread_join(worker.thread, &ended), 0);
    assert_ptr_equal(ended, PTHREAD_CANCELED);
    assert_lock_ok(worker.rc, &worker.err);
    lock_take(crowd.locks[1], 0);
    registry_end(crowd.registry);
}
