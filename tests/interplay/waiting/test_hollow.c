/*
 * test_hollow.c - wait queues that are none: a proxy that lends sessions, a
 * server where taking one is a stub, or an error.  Waiting falls back to
 * looking at the row, and the row decides.
 */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/around.h"

#define PARTIES 4

/* Two registries there, with two threads each, exclude one another and come to
 * an end; and one that is waited for there is got from one that is here. */
static void contend_at(struct fixture *f, const char *url)
{
    sqlock_options options = fixture_options(f);
    struct party parties[PARTIES];
    sqlock_registry *registries[PARTIES / 2];
    sqlock_lock *held = lock_obtain(f->a, f->name);
    struct contender contender = {0};
    struct turns turns = {.each = check_scale(15, 1000)};
    struct workers workers;

    options.poll_ms = 5;
    for (size_t i = 0; i < PARTIES; i++) {
        if (i % 2 == 0)
            registries[i / 2] = fixture_registry_at(f, url, &options);
        parties[i] = (struct party){
            .lock = lock_obtain(registries[i / 2], f->name),
            .turns = &turns,
        };
    }
    workers_start(&workers, PARTIES, take_turns, parties);
    workers_join(&workers);
    lock_take(held, 0);
    contender_queue(&contender, parties[0].lock, SQLOCK_FOREVER);
    /* By now it would listen, where it takes the queue for one. */
    (void)wait_until(false, 200);
    lock_give(held);
    contender_finish(&contender);
    for (size_t i = 0; i < PARTIES; i++)
        lock_drop(parties[i].lock);
    for (size_t i = 0; i < PARTIES / 2; i++)
        registry_end(registries[i]);
    lock_drop(held);
}

/* Sessions of a transaction's length: an advisory lock would stay behind in one
 * that another client is given next.  No waiter keeps one, or queues for it. */
static void test_behind_a_pooler_waiters_poll(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *held = lock_obtain(f->a, f->name);
    struct contender contender = {0};
    sqlock_registry *registry;
    struct pooler pooler;

    if (database_is_pooled(f->database))
        skip();
    pooler_start(&pooler, f);
    contend_at(f, pooler.url);
    registry = fixture_registry_at(f, pooler.url, NULL);
    lock_take(held, 0);
    contender_queue(&contender, lock_obtain(registry, f->name), SQLOCK_FOREVER);
    for (int i = 0; i < 50; i++) {
        /* A claim takes one for an instant, which ends with it. */
        assert_int_equal(
            sql_integer(&f->sql, "SELECT count(*) FROM pg_locks "
                                 "JOIN pg_stat_activity USING (pid) "
                                 "WHERE locktype = 'advisory' AND (NOT granted "
                                 "OR state = 'idle' AND state_change < "
                                 "clock_timestamp() - interval '50 ms')"),
            0);
        (void)check_pause(INT64_MAX);
    }
    lock_give(held);
    contender_finish(&contender);
    lock_drop(contender.lock);
    registry_end(registry);
    lock_drop(held);
    pooler_end(&pooler);
}

/* --- servers whose advisory locks are none --- */

/* The bodies of functions that are found before the built-in ones of those
 * names. */
static void contend_with_stubs(struct fixture *f, const char *yes,
                               const char *nothing)
{
    static const char *const names[] = {"pg_try_advisory_lock",
                                        "pg_try_advisory_lock_shared",
                                        "pg_try_advisory_xact_lock"};
    char url[1024];

    sql_run(&f->sql, "CREATE SCHEMA %s_stub", f->prefix);
    sql_run(&f->sql,
            "CREATE FUNCTION %s_stub.pg_advisory_lock(bigint) RETURNS void "
            "LANGUAGE plpgsql AS 'BEGIN %s END'",
            f->prefix, nothing);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        sql_run(&f->sql,
                "CREATE FUNCTION %s_stub.%s(bigint) RETURNS boolean "
                "LANGUAGE plpgsql AS 'BEGIN %s END'",
                f->prefix, names[i], yes);
    (void)snprintf(url, sizeof url,
                   "%s%coptions=-csearch_path%%3D%s_stub,"
                   "pg_catalog,public",
                   f->url, strchr(f->url, '?') != NULL ? '&' : '?', f->prefix);
    contend_at(f, url);
    sql_run(&f->sql, "DROP SCHEMA %s_stub CASCADE", f->prefix);
}

/* CockroachDB: everybody is told that the lock is his. */
static void test_F66_advisory_locks_that_are_stubs(void **state)
{
    contend_with_stubs(*state, "RETURN true;", "RETURN;");
}

/* YugabyteDB: they are an error. */
static void test_F67_advisory_locks_that_fail(void **state)
{
    static const char refuse[] =
        "RAISE EXCEPTION ''not supported'' USING ERRCODE = ''0A000'';";

    /* The release asks without waiting: that much is there. */
    contend_with_stubs(*state, "RETURN true;", refuse);
}

/* --- a queue that lets everybody in --- */

static struct around hollow;

static void install_hollow(struct fixture *f)
{
    static sqlock_wait_queue wait_queue;

    if (!around_make(&hollow, f, "hollow"))
        return;
    wait_queue = *hollow.real->wait_queue;
    wait_queue.enqueue = around_enqueue_nothing;
    wait_queue.leave = around_leave_nothing;
    hollow.driver.wait_queue = &wait_queue;
    around_register(&hollow, f);
}

static void test_F68_user_locks_that_are_none(void **state)
{
    struct fixture *f = *state;
    char url[1024];

    install_hollow(f);
    contend_at(f, around_url(url, &hollow, f));
}

static const struct test tests[] = {
    TEST_ON(test_behind_a_pooler_waiters_poll, ON_POSTGRES, IN_SQLOCK),
    TEST_ON(test_F66_advisory_locks_that_are_stubs, ON_POSTGRES, IN_SQLOCK),
    TEST_ON(test_F67_advisory_locks_that_fail, ON_POSTGRES, IN_SQLOCK),
    TEST_ON(test_F68_user_locks_that_are_none, ON_MYSQL, IN_SQLOCK),
};

const struct topic topic_hollow = TOPIC(tests);
