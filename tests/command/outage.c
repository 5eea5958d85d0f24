/*
 * outage.c - the wait of `sqlock run` goes on while the database is silent, and
 * the command runs when it answers again; unless it was asked to end with the
 * first error
 */
#include "command.h"

#include <signal.h>
#include <string.h>

#include "support/proxy.h"

/* An attempt of a second, so that several of them fail. */
static const char *const patient[] = {"-t", "2", "-w", "300", NULL};
static const char *const hasty[] = {"-t",  "2",           "-w",
                                    "300", "--fail-fast", NULL};

static void test_a_wait_outlasts_a_silent_server(void **state)
{
    struct fixture *f = *state;
    struct proxy *proxy = proxy_open(f->database, f->url);
    char url[1024];
    struct job job;

    assert_non_null(proxy);
    (void)proxy_url(proxy, url, f->url);
    proxy_blackhole(proxy);
    job_start(&job, f, url, patient, "meek");
    job_await(&job, "waiting: ");
    assert_int_equal(atomic_load(&job.activity->members), 0);
    proxy_heal(proxy);
    assert_becomes_true(atomic_load(&job.activity->members) > 0, PATIENCE_MS);
    assert_int_equal(kill(job.pid, SIGTERM), 0);
    assert_int_equal(job_end(&job), 128 + SIGTERM);
    proxy_close(proxy);
}

static void test_a_hasty_one_ends_with_the_first_error(void **state)
{
    struct fixture *f = *state;
    struct proxy *proxy = proxy_open(f->database, f->url);
    char url[1024];
    struct job job;

    assert_non_null(proxy);
    (void)proxy_url(proxy, url, f->url);
    proxy_blackhole(proxy);
    job_start(&job, f, url, hasty, "meek");
    assert_int_equal(job_end(&job), 69);
    proxy_close(proxy);
}

/* Another's transaction has the file for longer than an attempt may take. */
static void test_a_wait_outlasts_a_locked_file(void **state)
{
    struct fixture *f = *state;
    struct job job;

    assert_lock_ok(sql_begin(&f->sql), &f->sql.err);
    job_start(&job, f, NULL, patient, "meek");
    job_await(&job, "waiting: ");
    assert_int_equal(atomic_load(&job.activity->members), 0);
    assert_lock_ok(sql_rollback(&f->sql), &f->sql.err);
    assert_becomes_true(atomic_load(&job.activity->members) > 0, PATIENCE_MS);
    assert_int_equal(kill(job.pid, SIGTERM), 0);
    assert_int_equal(job_end(&job), 128 + SIGTERM);
}

static const struct test tests[] = {
    TEST_ON(test_a_wait_outlasts_a_silent_server, ON_SERVERS, 0),
    TEST_ON(test_a_hasty_one_ends_with_the_first_error, ON_SERVERS, 0),
    TEST_ON(test_a_wait_outlasts_a_locked_file, ON_SQLITE, 0),
};
const struct topic topic_outage = TOPIC(tests);
