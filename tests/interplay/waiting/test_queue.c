/*
 * test_queue.c - waiting for another process in the database's queue: releases
 * that notify, rows that are freed without a notification, and what an idle
 * waiter sends
 */
#include "suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "locks/registry.h"
#include "sqlock/admin.h"
#include "sqlock/many.h"
#include "wait/peers.h"

#define LONG_MS 3600000

/* Open a registry that practically never polls, so that only a notification or
 * the end of the lease ends a wait. */
static sqlock_registry *patient(struct fixture *f)
{
    sqlock_options options = fixture_options(f);

    options.poll_ms = LONG_MS;
    return fixture_registry(f, &options);
}

/* Create the row: on MySQL, a claim that inserts the row takes no queue
 * lock. */
static void prime(sqlock_lock *lock)
{
    lock_take(lock, 0);
    lock_give(lock);
}

/* Acquire the lock in the fixture's first registry; another registry is to wait
 * for it. */
static void open_stage(struct relay *stage, struct fixture *f, uint32_t ttl_ms)
{
    relay_open(stage, f, LONG_MS);
    lock_take(stage->held, ttl_ms);
}

/* Start the contender, and let it wait for so many ms. */
static void start_next(struct relay *stage, unsigned ms)
{
    contender_queue(&stage->next, stage->next.lock, SQLOCK_FOREVER);
    check_sleep(ms);
}

static void check_notified(struct fixture *f, unsigned after_ms)
{
    struct relay stage;

    open_stage(&stage, f, 0);
    start_next(&stage, after_ms);
    lock_give(stage.held);
    relay_close(&stage);
}

static void test_a_release_notifies(void **state)
{
    check_notified(*state, 0);
}

/* After a second the waiter has left the first, short wait in the queue: it
 * listens by now, where the database can notify (PostgreSQL). */
static void test_a_release_notifies_one_that_has_waited_long(void **state)
{
    check_notified(*state, 1500);
}

/* The holder, as if it had stopped, does not react when its lease is broken,
 * and on MySQL and SQLite it keeps the queue lock: the waiter sees that the row
 * is free long before the lease would have ended. */
static void test_a_broken_lease_of_a_stopped_holder_is_free(void **state)
{
    struct fixture *f = *state;
    sqlock_break_options how = SQLOCK_BREAK_INIT;
    struct relay stage;

    open_stage(&stage, f, LONG_MS);
    start_next(&stage, 1500);
    how.token = sqlock_token(stage.held);
    how.reason = "a test";
    how.now = true;
    assert_ok(sqlock_break(f->b, f->name, &how, &f->err));
    contender_await(&stage.next);
    assert_true(sqlock_release(stage.held, &f->err) < 0);
    relay_close(&stage);
}

/* On MySQL a release gives the queue lock up before it commits: the next waiter
 * then has the queue lock, and reads the row again and again until it is free.
 * A trigger stands for a slow disk. */
static void test_a_slow_commit_of_a_release_strands_nobody(void **state)
{
    struct fixture *f = *state;
    struct relay stage;

    open_stage(&stage, f, LONG_MS);
    start_next(&stage, 0);
    (void)sql_run(&f->sql,
                  "CREATE TRIGGER %s_SLOW AFTER UPDATE ON %s FOR EACH ROW "
                  "SET @slept = SLEEP(2)",
                  f->prefix, f->table);
    lock_give(stage.held);
    contender_await(&stage.next);
    (void)sql_run(&f->sql, "DROP TRIGGER %s_SLOW", f->prefix);
    relay_close(&stage);
}

/* The first waiter in the queue gives up after a while: the one behind it is
 * still notified of the release. */
static void test_a_waiter_that_gives_up_leaves_its_place(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *another = patient(f);
    sqlock_lock *late = lock_obtain(another, f->name);
    struct relay stage;

    open_stage(&stage, f, LONG_MS);
    assert_fails(SQLOCK_ETIMEDOUT, lock_try(late, 1500, 0, &f->err));
    start_next(&stage, 1500);
    lock_give(stage.held);
    relay_close(&stage);
    lock_drop(late);
    registry_end(another);
}

static void test_a_release_of_many_notifies(void **state)
{
    struct fixture *f = *state;
    struct relay stage;
    sqlock_lock *locks[1];

    open_stage(&stage, f, LONG_MS);
    locks[0] = stage.held;
    start_next(&stage, 1500);
    assert_ok(sqlock_release_many(locks, 1, NULL, &f->err));
    relay_close(&stage);
}

/* The lease ends while its holder keeps the queue lock.  The waiter claims at
 * the end of the lease (0.4 s), and does not wait behind the queue lock for a
 * full second: the quickest of several rounds is over within 0.9 s. */
static void test_a_lease_that_ends_at_once_is_taken_over(void **state)
{
    struct fixture *f = *state;
    int64_t quickest_ns = INT64_MAX;

    for (int round = 0; round < 8 && quickest_ns >= 900 * LK_NS_PER_MS;
         round++) {
        struct relay stage;
        int64_t began;
        int rc;

        open_stage(&stage, f, 400);
        began = sqlock_monotonic_ns();
        rc = sqlock_acquire(stage.next.lock, SQLOCK_FOREVER, NULL, &f->err);
        assert_lock_ok(rc, &f->err);
        if (sqlock_monotonic_ns() - began < quickest_ns)
            quickest_ns = sqlock_monotonic_ns() - began;
        lock_give(stage.next.lock);
        assert_true(sqlock_release(stage.held, NULL) < 0);
        lock_drop(stage.held);
        contender_close(&stage.next);
    }
    assert_true(quickest_ns < 900 * LK_NS_PER_MS);
}

static void test_closing_a_registry_notifies(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *closing = patient(f);
    sqlock_lock *held = lock_obtain(closing, f->name);
    struct contender next;

    contender_open(&next, f, LONG_MS);
    prime(held);
    lock_take(held, 0);
    contender_queue(&next, next.lock, SQLOCK_FOREVER);
    registry_end(closing);
    contender_finish(&next);
    contender_close(&next);
}

/* Four waiters get the lock one at a time; each has got it through the queue,
 * and notifies the next one by its release. */
static void test_from_process_to_process(void **state)
{
    struct fixture *f = *state;
    struct contender contenders[4];
    sqlock_lock *held = lock_obtain(f->a, f->name);
    int64_t token = 0;

    prime(held);
    lock_take(held, 0);
    for (size_t i = 0; i < 4; i++) {
        contender_open(&contenders[i], f, LONG_MS);
        contender_queue(&contenders[i], contenders[i].lock, SQLOCK_FOREVER);
    }
    lock_give(held);
    for (unsigned served = 0; served < 4; served++) {
        size_t who = 4;

        assert_becomes_true(atomic_load(&contenders[0].rc) <= 0 ||
                                atomic_load(&contenders[1].rc) <= 0 ||
                                atomic_load(&contenders[2].rc) <= 0 ||
                                atomic_load(&contenders[3].rc) <= 0,
                            PATIENCE_MS);
        for (size_t i = 0; i < 4; i++)
            if (atomic_load(&contenders[i].rc) <= 0) {
                assert_int_equal(who, 4); /* one at a time */
                who = i;
            }
        contender_await(&contenders[who]);
        assert_less(token, contenders[who].token);
        token = contenders[who].token;
        contender_end(&contenders[who], 0);
        atomic_store(&contenders[who].rc, 1);
    }
    for (size_t i = 0; i < 4; i++)
        contender_close(&contenders[i]);
    lock_drop(held);
}

/* On MySQL, return how many statements the server has run so far, this one
 * included.  On PostgreSQL, return how many other sessions of the database have
 * begun a statement in the last 2.5 s. */
static int64_t statements_so_far(struct fixture *f)
{
    if (f->database->bit == ON_POSTGRES) {
        sql_run(&f->sql, "SELECT pg_stat_clear_snapshot()");
        return sql_integer(&f->sql, "SELECT count(*) FROM pg_stat_activity "
                                    "WHERE query_start > "
                                    "clock_timestamp() - interval '2500 ms' "
                                    "AND pid <> pg_backend_pid() "
                                    "AND datname = current_database()");
    }
    return sql_integer(&f->sql, "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM "
                                "/*M! information_schema.GLOBAL_STATUS */"
                                "/*!80001 performance_schema.global_status */ "
                                "WHERE VARIABLE_NAME = 'QUESTIONS'");
}

/* While a registry of ours holds the lock, a waiter that has waited for long
 * sends nothing, or almost nothing. */
static void test_an_idle_waiter_sends_nothing(void **state)
{
    struct fixture *f = *state;
    struct relay stage;
    int64_t before = 0;
    int64_t after;

    open_stage(&stage, f, 0);
    start_next(&stage, 2000); /* the first second is spent in the queue */
    if (f->database->bit == ON_MYSQL)
        before = statements_so_far(f);
    check_sleep(3000);
    after = statements_so_far(f);
    /* On MySQL, 3 for the second count, one reading of the row and the next
     * wait; on PostgreSQL, the sessions that sent anything lately. */
    assert_less(after - before, f->database->bit == ON_MYSQL ? 5 : 3);
    lock_give(stage.held);
    relay_close(&stage);
}

#define LONG_LEASES 3 /* more than the sessions for waiting */

/* A lease that was waited for keeps the session that waited, which has the
 * queue lock; a later wait for another lock has a session all the same. */
static void test_long_leases_leave_others_a_session_to_wait_with(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *theirs = patient(f);
    sqlock_lock *held[LONG_LEASES + 1];
    sqlock_lock *locks[LONG_LEASES + 1];
    struct contender next[LONG_LEASES + 1];

    memset(next, 0, sizeof next);
    for (size_t i = 0; i <= LONG_LEASES; i++) {
        char name[sizeof f->name + 8];

        (void)snprintf(name, sizeof name, "%s/%zu", f->name, i);
        held[i] = lock_obtain(f->a, name);
        locks[i] = lock_obtain(theirs, name);
        prime(held[i]);
        lock_take(held[i], LONG_TTL_MS);
        contender_queue(&next[i], locks[i], SQLOCK_FOREVER);
        lock_give(held[i]);
        contender_await(&next[i]);
    }
    for (size_t i = 0; i <= LONG_LEASES; i++) {
        contender_end(&next[i], 0);
        lock_drop(held[i]);
        lock_drop(locks[i]);
    }
    registry_end(theirs);
}

static void test_a_short_wait_is_at_the_queue(void **state)
{
    struct fixture *f = *state;
    struct relay stage;
    bool is_seen = false;

    open_stage(&stage, f, 0);
    for (unsigned i = 0; i < 3 && !is_seen; i++) {
        contender_start(&stage.next, stage.next.lock, 1900);
        (void)wait_until((is_seen = queue_is_waited_at(f)) ||
                             atomic_load(&stage.next.rc) <= 0,
                         PATIENCE_MS);
        assert_ok(sqlock_cancel(stage.next.lock, &f->err));
        worker_join(&stage.next.worker);
    }
    assert_true(is_seen);
    start_next(&stage, 0);
    lock_give(stage.held);
    relay_close(&stage);
}

/* --- false and missing notifications --- */

static void notify(struct fixture *f, int64_t queue)
{
    sql_run(&f->sql, "SELECT pg_notify('sqlock_%llx', '')",
            (unsigned long long)queue);
}

/* Return the number of the queue lock to which a waiter listens; only one
 * does. */
static int64_t queue_of_listener(struct fixture *f)
{
    return sql_integer(&f->sql,
                       "SELECT (classid::bigint << 32 | objid::bigint) - 1 "
                       "FROM pg_locks WHERE locktype = 'advisory' "
                       "AND mode = 'ShareLock' AND granted LIMIT 1");
}

static bool somebody_listens(struct fixture *f)
{
    return sql_integer(&f->sql, "SELECT count(*) FROM pg_locks "
                                "WHERE locktype = 'advisory' "
                                "AND mode = 'ShareLock' AND granted") > 0;
}

static void test_F81_false_notifications_give_nobody_the_lock(void **state)
{
    struct fixture *f = *state;
    struct relay stage;

    open_stage(&stage, f, 0);
    start_next(&stage, 0);
    assert_becomes_true(somebody_listens(f), PATIENCE_MS);
    for (unsigned i = 0; i < 3; i++) {
        notify(f, queue_of_listener(f));
        check_sleep(50);
        assert_int_equal(atomic_load(&stage.next.rc), 1);
        assert_becomes_true(somebody_listens(f), PATIENCE_MS);
    }
    lock_give(stage.held);
    relay_close(&stage);
}

/* Plain SQL frees the row without a notification: the waiter reads the row
 * again when the lease would have ended, as it last saw it. */
static void test_a_missing_notification_costs_time_only(void **state)
{
    struct fixture *f = *state;
    struct relay stage;

    open_stage(&stage, f, 4000);
    start_next(&stage, 1500);
    sql_run(&f->sql, "UPDATE %s SET CLIENT_ID = NULL", f->table);
    contender_await(&stage.next);
    assert_fails(SQLOCK_ELOST, sqlock_release(stage.held, &f->err));
    relay_close(&stage);
}

/* A session of another program (a stranger) has the queue lock: the waiter gets
 * the lock all the same, a second later. */
static void
test_F81_a_stranger_with_the_queue_lock_delays_nobody_for_ever(void **state)
{
    struct fixture *f = *state;
    struct relay stage;
    int64_t queue;

    open_stage(&stage, f, 0);
    start_next(&stage, 0);
    assert_becomes_true(somebody_listens(f), PATIENCE_MS);
    queue = queue_of_listener(f);
    sql_run(&f->sql, "SELECT pg_advisory_lock(%lld)", (long long)queue);
    lock_give(stage.held);
    contender_await(&stage.next);
    sql_run(&f->sql, "SELECT pg_advisory_unlock_all()");
    relay_close(&stage);
}

/* --- sessions and processes that end --- */

static void test_the_connection_of_a_queue_is_terminated(void **state)
{
    struct fixture *f = *state;
    struct relay stage;

    open_stage(&stage, f, 3000);
    start_next(&stage, 1500);
    if (f->database->bit == ON_POSTGRES)
        sql_run(&f->sql, "SELECT pg_terminate_backend(pid) FROM pg_locks "
                         "WHERE locktype = 'advisory' AND pid <> "
                         "pg_backend_pid()");
    else {
        int64_t id = sql_integer(
            &f->sql, "SELECT ID FROM information_schema.PROCESSLIST "
                     "WHERE INFO LIKE 'SELECT%%GET_LOCK(%%' "
                     "AND ID <> CONNECTION_ID() LIMIT 1");

        sql_run(&f->sql, "KILL %lld", (long long)id);
    }
    /* The wait goes on by polling: here after an hour, or at the end of the
     * lease. */
    assert_int_equal(atomic_load(&stage.next.rc), 1);
    contender_await(&stage.next);
    assert_fails(SQLOCK_ELOST, sqlock_release(stage.held, &f->err));
    relay_close(&stage);
}

/* A process is killed while it waits in the queue; the waiter behind it gets
 * the lock. */
static void test_a_waiter_that_dies_in_the_queue(void **state)
{
    struct fixture *f = *state;
    struct relay stage;
    pid_t pid;
    int status;

    open_stage(&stage, f, 0);
    pid = process_start(f, "--wait", 60000);
    check_sleep(500);
    start_next(&stage, 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    lock_give(stage.held);
    relay_close(&stage);
}

#define WAITERS 8

/* The holder is killed while eight processes wait: none of them gets the lock
 * before the lease is over, and then all get it. */
static void test_a_holder_killed_while_eight_wait(void **state)
{
    struct fixture *f = *state;
    struct contender contenders[WAITERS];
    sqlock_lock *primer = lock_obtain(f->a, f->name);
    int64_t ends_us;
    pid_t pid;
    int status;

    prime(primer);
    pid = process_start(f, "--hold", 2500);
    ends_us = fixture_row(f, f->name).expires_us; /* nobody waits yet */
    for (size_t i = 0; i < WAITERS; i++) {
        contender_open(&contenders[i], f, LONG_MS);
        contender_start(&contenders[i], contenders[i].lock, SQLOCK_FOREVER);
    }
    check_sleep(200);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    for (size_t i = 0; i < WAITERS; i++)
        atomic_store(&contenders[i].may_release, true);
    for (size_t i = 0; i < WAITERS; i++) {
        assert_becomes_true(atomic_load(&contenders[i].rc) <= 0, PATIENCE_MS);
        worker_join(&contenders[i].worker);
        assert_code(0, contenders[i].released, &contenders[i].worker.err);
        assert_less(ends_us, contenders[i].token); /* database time, in us */
        contender_close(&contenders[i]);
    }
    lock_drop(primer);
}

/* With waiting=poll, other processes poll as well and are notified of nothing:
 * this process leaves the lock free for a pause when its share of time is used
 * up. */
static void test_who_polls_by_option_leaves_others_a_pause(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    sqlock_lock *lock;

    options.waiting = SQLOCK_WAITING_POLL;
    registry = fixture_registry(f, &options);
    lock = lock_obtain(registry, f->name);
    assert_false(lk_peers_are_due(lock->entry));
    lock_take(lock, 0);
    check_sleep(320); /* longer than the share, 300 ms */
    lock_give(lock);
    assert_true(lk_peers_are_due(lock->entry));
    lock_drop(lock);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST(test_who_polls_by_option_leaves_others_a_pause),
    TEST(test_a_release_notifies),
    TEST(test_a_release_notifies_one_that_has_waited_long),
    TEST_ON(test_a_slow_commit_of_a_release_strands_nobody, ON_MYSQL,
            IN_SQLOCK),
    TEST_ON(test_a_broken_lease_of_a_stopped_holder_is_free, ON_ALL, IN_SQLOCK),
    TEST(test_a_waiter_that_gives_up_leaves_its_place),
    TEST_ON(test_a_release_of_many_notifies, ON_ALL, IN_SQLOCK),
    TEST(test_a_lease_that_ends_at_once_is_taken_over),
    TEST(test_closing_a_registry_notifies),
    TEST(test_from_process_to_process),
    TEST_ON(test_an_idle_waiter_sends_nothing, ON_SERVERS, IN_SQLOCK),
    TEST(test_long_leases_leave_others_a_session_to_wait_with),
    TEST_ON(test_a_short_wait_is_at_the_queue, ON_SERVERS, IN_SQLOCK),
    TEST_ON(test_F81_false_notifications_give_nobody_the_lock, ON_POSTGRES,
            IN_SQLOCK),
    TEST(test_a_missing_notification_costs_time_only),
    TEST_ON(test_F81_a_stranger_with_the_queue_lock_delays_nobody_for_ever,
            ON_POSTGRES, IN_SQLOCK),
    TEST_ON(test_the_connection_of_a_queue_is_terminated, ON_SERVERS,
            IN_SQLOCK),
    TEST(test_a_waiter_that_dies_in_the_queue),
    TEST(test_a_holder_killed_while_eight_wait),
};

const struct topic topic_queue = TOPIC(tests);
