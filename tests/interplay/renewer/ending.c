/*
 * ending.c - closed registries and released leases leave nothing behind: no
 * held lock, renewal, thread or descriptor
 */
#include "renewer.h"

#include "sqlock/async.h"
#include "support/tap.h"
#include "support/workers.h"

#define MANY 40
#define STOLEN 7

/* One of the rows has got another CLIENT_ID.  Closing the registry frees all
 * other rows in one statement, and returns ELOST. */
static void test_close_releases_all_in_one_statement(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *tapped = renewer_tapped(f);
    struct spy spy;
    char name[96];

    for (size_t i = 0; i < MANY; i++)
        lock_take(nth_lock(f, tapped, i), LONG_TTL_MS);
    (void)sql_run(&f->sql,
                  "UPDATE %s SET CLIENT_ID = 'thief' WHERE LOCK_KEY = '%s'",
                  f->table, sqlock_key(nth_lock(f, tapped, STOLEN)));
    tap_reset();
    spy_begin(&spy, tapped, SQLOCK_SQL_RELEASE_MANY);
    assert_fails(SQLOCK_ELOST, sqlock_registry_close(tapped, &f->err));
    tap_hooks(NULL, NULL, NULL);
    assert_int_equal(atomic_load(&spy.times), 1);
    for (size_t i = 0; i < MANY; i++)
        assert_true(fixture_is_free(f, nth_name(f, name, i)) == (i != STOLEN));
}

static void test_200_registries_leave_no_thread_and_no_descriptor(void **state)
{
    struct fixture *f = *state;
    size_t threads = 0;
    size_t fds = 0;
    int i;

    for (i = 0; i < 201; i++) {
        sqlock_registry *registry = renewer_registry(f);
        sqlock_lock *lock = lock_obtain(registry, f->name);
        int fd;

        assert_ok(sqlock_lost_fd(&fd, lock, &f->err));
        take_renewed(lock, RENEWED_MS, NULL);
        if (i % 50 == 0)
            await_renewals(lock, 1);
        registry_end(registry);
        if (i > 0)
            continue; /* the first one may start what stays */
        threads = check_entries("/proc/self/task");
        fds = check_entries("/proc/self/fd");
    }
    assert_becomes_true(check_entries("/proc/self/task") <= threads,
                        PATIENCE_MS);
    assert_becomes_true(check_entries("/proc/self/fd") <= fds, PATIENCE_MS);
}

/* ----------------------------------------------------- interrupted loops -- */

#define WORKERS 4
#define LOCKS 3
/* The loops end after this time, however slow the server's disk is. */
#define RUSH_MS (check_scale(60, 1200) * INT64_C(1000))

struct rush {
    sqlock_lock *locks[LOCKS];
    unsigned rounds; /* of each worker, at most */
    int64_t end_ns;
    atomic_uint tried;
    atomic_uint taken;
    atomic_uint statements;
    atomic_int inside[LOCKS];
};

/* Disturb about every eleventh call, in three ways by turns: the connection
 * breaks, the call is refused, or break_after() loses the answer. */
static int break_before(void *context, const struct tap_event *event)
{
    struct rush *rush = context;
    unsigned number = atomic_fetch_add(&rush->statements, 1);

    (void)event;
    return number % 33 == 10   ? SQLOCK_EUNREACHABLE
           : number % 33 == 21 ? SQLOCK_ERETRY
                               : 0;
}

static int break_after(void *context, const struct tap_event *event, int rc)
{
    struct rush *rush = context;

    return rc == 0 && event->call == TAP_EXECUTE &&
                   atomic_load(&rush->statements) % 33 == 32
               ? SQLOCK_EUNCERTAIN
               : rc;
}

static bool is_to_be_expected(int rc)
{
    return rc == 0 || rc == SQLOCK_EBUSY || rc == SQLOCK_ETIMEDOUT ||
           rc == SQLOCK_EUNCERTAIN || rc == SQLOCK_EUNREACHABLE ||
           rc == SQLOCK_ERETRY || rc == SQLOCK_ERESOURCE;
}

static int rush_about(struct worker *worker)
{
    struct rush *rush = worker->context;

    for (unsigned i = 0;
         i < rush->rounds && sqlock_monotonic_ns() < rush->end_ns; i++) {
        size_t which = (worker->index + i) % LOCKS;
        sqlock_acquire_options options = renewed_options(10 * TTL_MS, NULL);
        int rc = sqlock_acquire(rush->locks[which], 20, &options, &worker->err);

        (void)atomic_fetch_add(&rush->tried, 1);
        if (!is_to_be_expected(rc))
            return worker_fail(worker, "acquire gave %d: %s", rc,
                               worker->err.message);
        if (rc < 0)
            continue;
        if (atomic_fetch_add(&rush->inside[which], 1) != 0)
            return worker_fail(worker, "two hold lock %zu", which);
        (void)atomic_fetch_add(&rush->taken, 1);
        (void)atomic_fetch_sub(&rush->inside[which], 1);
        rc = sqlock_release(rush->locks[which], &worker->err);
        if (!is_to_be_expected(rc))
            return worker_fail(worker, "release gave %d: %s", rc,
                               worker->err.message);
    }
    return 0;
}

/* Renew another lease of the registry ten times: meanwhile the rows of the
 * released locks must not change. */
static void expect_still_rows(struct fixture *f, sqlock_registry *registry)
{
    sqlock_lock *renewed = lock_obtain(registry, f->name);
    struct row rows[LOCKS];
    char name[96];

    take_renewed(renewed, RENEWED_MS, NULL);
    for (size_t i = 0; i < LOCKS; i++)
        rows[i] = fixture_row(f, nth_name(f, name, i));
    await_renewals(renewed, 10);
    for (size_t i = 0; i < LOCKS; i++) {
        struct row row = fixture_row(f, nth_name(f, name, i));

        assert_true(row.expires_us == rows[i].expires_us);
        assert_string_equal(row.client, rows[i].client);
    }
    lock_end(renewed);
}

static void test_F4_interrupted_loops_leave_nothing_behind(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = renewer_options(f);
    size_t threads = check_entries("/proc/self/task");
    size_t fds = check_entries("/proc/self/fd");
    struct rush rush = {.rounds = check_scale(1000, 100000) / WORKERS,
                        .end_ns = check_deadline_ns(RUSH_MS)};
    struct workers workers;
    sqlock_registry *tapped;
    int64_t ids[32];
    size_t i;

    options.ttl_ms = 10 * TTL_MS;
    options.renew_period_ms = 3; /* a renewal is nearly always in flight */
    options.pool_size = WORKERS;
    options.statement_timeout_ms = 2000;
    tapped = fixture_tapped(f, &options);
    for (i = 0; i < LOCKS; i++)
        rush.locks[i] = nth_lock(f, tapped, i);
    tap_hooks(break_before, break_after, &rush);
    workers_start(&workers, WORKERS, rush_about, &rush);
    workers_join(&workers);
    tap_hooks(NULL, NULL, NULL);
    print_message("%u of %u were taken, %u statements\n",
                  atomic_load(&rush.taken), atomic_load(&rush.tried),
                  atomic_load(&rush.statements));
    assert_true(atomic_load(&rush.taken) > atomic_load(&rush.tried) / 16);
    expect_still_rows(f, tapped);
    assert_true(tap_connections(ids, 32) <= WORKERS + 1);
    for (i = 0; i < LOCKS; i++)
        lock_drop(rush.locks[i]);
    registry_end(tapped);
    assert_int_equal(tap_connections(ids, 32), 0);
    assert_becomes_true(check_entries("/proc/self/task") <= threads,
                        PATIENCE_MS);
    /* While other connections of the process have the file open, SQLite keeps
     * the descriptors of closed connections, for later connections. */
    if (f->database->bit == ON_SQLITE)
        fds += options.pool_size + 1;
    assert_becomes_true(check_entries("/proc/self/fd") <= fds, PATIENCE_MS);
}

static const struct test tests[] = {
    TEST_ON(test_close_releases_all_in_one_statement, ON_ALL, IN_ALL),
    TEST(test_200_registries_leave_no_thread_and_no_descriptor),
    TEST(test_F4_interrupted_loops_leave_nothing_behind),
};
const struct topic topic_ending = TOPIC(tests);
