/*
 * test_queue.c - waiting for another process in the database's queue: releases
 * that notify, rows that are freed without a notification, and what an idle
 * waiter sends
 */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "locks/registry.h"
#include "wait/peers.h"

#define LONG_MS 3600000

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
    TEST_ON(test_a_slow_commit_of_a_release_strands_nobody, ON_MYSQL,
            IN_SQLOCK),
    TEST(test_a_lease_that_ends_at_once_is_taken_over),
    /* It counts the statements of all sessions of the server. */
    TEST_STOPPING_IN(test_an_idle_waiter_sends_nothing, ON_SERVERS, IN_SQLOCK),
    TEST_ON(test_a_short_wait_is_at_the_queue, ON_SERVERS, IN_SQLOCK),
    TEST_ON(test_F81_false_notifications_give_nobody_the_lock, ON_POSTGRES,
            IN_SQLOCK),
    TEST_ON(test_F81_a_stranger_with_the_queue_lock_delays_nobody_for_ever,
            ON_POSTGRES, IN_SQLOCK),
};

const struct topic topic_queue = TOPIC(tests);
