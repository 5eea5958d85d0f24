/*
 * test_hollow.c - wait queues that do not work (hollow): behind a pooler that
 * shares sessions, or on a server whose advisory or user locks exclude nobody,
 * or are errors
 *
 * Waiting falls back to polling the row, and only the row decides.
 */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/around.h"
#include "support/pooler.h"

#define PARTIES 4

/* Check that two registries at that URL, with two threads each, exclude each
 * other and come to an end; and that a waiter at that URL gets a lock which the
 * fixture's first registry has held. */
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
    /* Time enough to begin to listen, if the queue were taken for a working
     * one. */
    (void)wait_until(false, 200);
    lock_give(held);
    contender_finish(&contender);
    for (size_t i = 0; i < PARTIES; i++)
        lock_drop(parties[i].lock);
    for (size_t i = 0; i < PARTIES / 2; i++)
        registry_end(registries[i]);
    lock_drop(held);
}

/* The pooler lends a session for one transaction, so that an advisory lock of
 * the session would stay behind when another client gets it.  No waiter keeps
 * an advisory lock, or queues for one. */
static void test_behind_a_pooler_waiters_poll(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *held = lock_obtain(f->a, f->name);
    struct contender contender = {0};
    sqlock_registry *registry;
    struct pooler pooler;

    if (database_is_pooled(f->database))
        skip();
    pooler_start(&pooler, f, "");
    contend_at(f, pooler.url);
    registry = fixture_registry_at(f, pooler.url, NULL);
    lock_take(held, 0);
    contender_queue(&contender, lock_obtain(registry, f->name), SQLOCK_FOREVER);
    for (int i = 0; i < 50; i++) {
        /* A claim has an advisory lock for an instant, until it ends. */
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

/* --- servers whose advisory locks do not work --- */

/* Check registries that find other functions of these names before the built-in
 * ones: pg_advisory_lock() has the body `wait`, those that try have the body
 * `try`, and pg_try_advisory_xact_lock(), by which a release notifies, always
 * returns true. */
static void contend_with_stubs(struct fixture *f, const char *wait,
                               const char *try)
{
    static const char *const names[] = {"pg_try_advisory_lock",
                                        "pg_try_advisory_lock_shared",
                                        "pg_try_advisory_xact_lock"};
    char url[1024];

    sql_run(&f->sql, "CREATE SCHEMA %s_stub", f->prefix);
    sql_run(&f->sql,
            "CREATE FUNCTION %s_stub.pg_advisory_lock(bigint) RETURNS void "
            "LANGUAGE plpgsql AS 'BEGIN %s END'",
            f->prefix, wait);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        sql_run(&f->sql,
                "CREATE FUNCTION %s_stub.%s(bigint) RETURNS boolean "
                "LANGUAGE plpgsql AS 'BEGIN %s END'",
                f->prefix, names[i], i < 2 ? try : "RETURN true;");
    (void)snprintf(url, sizeof url,
                   "%s%coptions=-csearch_path%%3D%s_stub,"
                   "pg_catalog,public",
                   f->url, strchr(f->url, '?') != NULL ? '&' : '?', f->prefix);
    contend_at(f, url);
    sql_run(&f->sql, "DROP SCHEMA %s_stub CASCADE", f->prefix);
}

/* As on CockroachDB, every session is told that it has the advisory lock. */
static void test_F66_advisory_locks_that_are_stubs(void **state)
{
    contend_with_stubs(*state, "RETURN;", "RETURN true;");
}

/* As on YugabyteDB, it is an error to ask for an advisory lock. */
static void test_F67_advisory_locks_that_fail(void **state)
{
    static const char refuse[] =
        "RAISE EXCEPTION ''not supported'' USING ERRCODE = ''0A000'';";

    contend_with_stubs(*state, refuse, refuse);
}

/* --- user locks that exclude nobody --- */

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
    around_register(&hollow);
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
