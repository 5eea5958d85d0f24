/*
 * named.c - renewed locks under faults that the matrix does not have: sessions
 * end, the pool is used up, a child is forked, the server is stopped (F5, F17,
 * F35, F41, F42, F45)
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "fault.h"
#include "lock/registry.h"
#include "support/server.h"
#include "support/workers.h"

static atomic_int lost_times;

static void on_lost(void *context, sqlock_lock *lock, int code)
{
    (void)context;
    (void)lock;
    (void)code;
    (void)atomic_fetch_add(&lost_times, 1);
}

static void keep(size_t i)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    int rc;

    atomic_store(&lost_times, 0);
    options.ttl_ms = KEPT_MS;
    options.auto_renew = true;
    options.on_lost = on_lost;
    rc = sqlock_acquire(stage.a.locks[i], 0, &options, &stage.a.err);
    assert_lock_ok(rc, &stage.a.err);
}

/* Check for so many times TTL_MS that B does not get the lock and that A holds
 * it; return false, after a message, if not.  It asserts nothing, since other
 * threads may be running. */
static bool is_kept(size_t i, int leases)
{
    int64_t end = check_deadline_ns((int64_t)leases * TTL_MS);
    int64_t token = sqlock_token(stage.a.locks[i]);

    do {
        int rc = party_acquire(&stage.b, (int)i, 0);

        if (rc != SQLOCK_EBUSY || !sqlock_is_held(stage.a.locks[i]) ||
            sqlock_token(stage.a.locks[i]) != token ||
            atomic_load(&lost_times) != 0) {
            print_error("B was told %d (%s), A has %lld ms left, was told %d "
                        "times\n",
                        rc, stage.b.err.message,
                        (long long)sqlock_remaining_ms(stage.a.locks[i]),
                        atomic_load(&lost_times));
            return false;
        }
    } while (check_pause(end));
    return true;
}

static void check_renewed(size_t i, int leases)
{
    assert_true(is_kept(i, leases));
    assert_true(stage_row(i).fence == sqlock_token(stage.a.locks[i]));
}

static void give_back(size_t i)
{
    assert_lock_ok(sqlock_release(stage.a.locks[i], &stage.a.err),
                   &stage.a.err);
    assert_string_equal(stage_row(i).client, "");
    assert_int_equal(atomic_load(&lost_times), 0);
}

/* ------------------------------------------------------------ F5 and F41 -- */

static atomic_uint turns;

static void end_every_other_session(void *context, int port)
{
    if (atomic_fetch_add(&turns, 1) % 2 == 0)
        end_session_of(context, port);
}

static void test_F5_a_lease_outlives_its_renewals_sessions(void **state)
{
    struct proxy_plan plan = {
        .point = PROXY_REPLIED,
        .act = PROXY_PASS,
        .containing = sqlock_key(stage.a.locks[0]),
        .hook = end_session_of,
    };

    (void)state;
    keep(0);
    proxy_arm(stage.proxy, &plan);
    check_renewed(0, 4); /* the session ends after each renewal */
    assert_true(proxy_times(stage.proxy) >= 4);
    plan.point = PROXY_BEFORE;
    plan.hook = end_every_other_session;
    proxy_arm(stage.proxy, &plan);
    check_renewed(0, 4); /* it ends before every other one */
    assert_true(proxy_times(stage.proxy) >= 4);
    proxy_heal(stage.proxy);
    give_back(0);
}

/* ------------------------------------------------------------------- F35 -- */

struct crowd {
    atomic_bool over;
    atomic_uint tries;
};

static int use_the_pool(struct worker *worker)
{
    struct crowd *crowd = worker->context;
    sqlock_lock *lock = stage.a.locks[1];

    while (!atomic_load(&crowd->over)) {
        int rc = sqlock_acquire(lock, 20, NULL, &worker->err);

        if (rc == 0)
            rc = sqlock_release(lock, &worker->err);
        (void)rc; /* an error is no failure: the test is about the other lock */
        (void)atomic_fetch_add(&crowd->tries, 1);
    }
    return 0;
}

/* The pool has one connection for calls, and four threads want it; on a server
 * their calls wait for a locked row.  Another lock is renewed all the same. */
static void test_F35_the_renewer_does_not_wait_for_a_pool_of_one(void **state)
{
    bool has_rows = stage.fixture.database->bit != ON_SQLITE;
    struct crowd crowd = {0};
    struct worker workers[4];
    struct sql blocker;
    bool kept;

    (void)state;
    assert_lock_ok(party_warm_up(&stage.a), &stage.a.err);
    keep(0);
    if (has_rows)
        fixture_lock_row(&stage.fixture, &blocker, stage.a.locks[1]);
    for (size_t i = 0; i < 4; i++)
        worker_start(&workers[i], use_the_pool, &crowd);
    kept = is_kept(0, 4);
    atomic_store(&crowd.over, true);
    for (size_t i = 0; i < 4; i++)
        worker_join(&workers[i]);
    if (has_rows)
        fixture_unlock_row(&blocker);
    assert_true(kept);
    assert_true(atomic_load(&crowd.tries) >= 4);
    give_back(0);
}

/* ------------------------------------------------------------------- F17 -- */

static void
test_F17_a_child_that_ends_leaves_the_renewed_lock_alone(void **state)
{
    int status = -1;
    pid_t pid;

    (void)state;
    keep(0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        sqlock_error err = {0};
        int rc = sqlock_release(stage.a.locks[0], &err);

        if (rc == SQLOCK_EFORK)
            rc = sqlock_registry_close(stage.a.registry, &err);
        _exit(rc == SQLOCK_EFORK && !sqlock_is_held(stage.a.locks[0]) ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    check_renewed(0, 3);
    give_back(0);
}

/* ------------------------------------------------------------------- F42 -- */

/* The server is stopped for less time than the lease has left. */
static void test_F42_a_short_stop_costs_no_renewed_lock(void **state)
{
    int64_t end;

    (void)state;
    stage_need_stopping();
    keep(0);
    for (int i = 0; i < 3; i++) {
        server_stop(stage.fixture.database);
        end = check_deadline_ns(TTL_MS / 6);
        while (check_pause(end))
            ;
        server_go_on();
        check_renewed(0, 1);
    }
    give_back(0);
}

/* ------------------------------------------------------------------- F45 -- */

/* Return whether the server can limit the idle time of sessions: PostgreSQL can
 * since version 14. */
static bool has_idle_limit(void)
{
    return stage.fixture.database->bit == ON_MYSQL ||
           sql_integer(&stage.admin,
                       "SELECT count(*) FROM pg_settings"
                       " WHERE name = 'idle_session_timeout'") > 0;
}

static void set_idle_limit(bool is_short)
{
    if (stage.fixture.database->bit == ON_MYSQL)
        (void)sql_try(&stage.admin, NULL, "SET GLOBAL wait_timeout = %d",
                      is_short ? 1 : 28800);
    else
        (void)sql_try(&stage.admin, NULL,
                      is_short
                          ? "ALTER ROLE ALL SET idle_session_timeout = '300ms'"
                          : "ALTER ROLE ALL RESET idle_session_timeout");
}

static bool contains(const int64_t *ids, size_t count, int64_t id)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* The server ends an idle session of a holder: the renewal opens another one,
 * and succeeds. */
static void test_F45_sessions_ended_for_idleness_are_replaced(void **state)
{
    sqlock_options options = stage_options();
    int64_t others[16];
    int64_t ids[16];
    size_t other_count = tap_connections(others, 16);
    size_t ended = 0;
    sqlock_registry *registry;
    sqlock_lock *lock;
    size_t count;
    int rc;

    (void)state;
    if (!has_idle_limit())
        skip_or_fail("no idle_session_timeout on this server");
    options.ttl_ms = LONG_TTL_MS;
    set_idle_limit(true);
    registry = stage_registry(&options);
    lock = lock_obtain(registry, stage.names[2]);
    rc = sqlock_acquire(lock, 0, NULL, &stage.a.err);
    count = tap_connections(ids, 16);
    for (size_t i = 0; i < count; i++)
        if (!contains(others, other_count, ids[i]))
            ended += wait_until(!server_has_session(&stage.admin, ids[i]),
                                PATIENCE_MS);
    set_idle_limit(false);
    assert_lock_ok(rc, &stage.a.err);
    assert_int_equal(ended, 1); /* the pool's one connection */
    assert_lock_ok(sqlock_renew(lock, 0, &stage.a.err), &stage.a.err);
    lock_give(lock);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST_ON(test_F5_a_lease_outlives_its_renewals_sessions, ON_SERVERS, 0),
    TEST_ON(test_F35_the_renewer_does_not_wait_for_a_pool_of_one, ON_ALL, 0),
    TEST_ON(test_F17_a_child_that_ends_leaves_the_renewed_lock_alone, ON_ALL,
            0),
    TEST_STOPPING(test_F42_a_short_stop_costs_no_renewed_lock, ON_SERVERS),
    TEST_STOPPING(test_F45_sessions_ended_for_idleness_are_replaced,
                  ON_SERVERS),
};
const struct topic topic_named = TOPIC(tests);
