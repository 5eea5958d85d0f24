/*
 * ending.c - the command and all its descendants have ended before another
 * client can get the lock
 *
 * The tests compare the last sign of life of the family with the time at which
 * the next lease was granted, by the database's clock.  The database is on this
 * host, so both are CLOCK_REALTIME.
 */
#include "command.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sqlock/once.h"
#include "support/proxy.h"
#include "support/server.h"

/* The supervisor sends KILL a fortieth of the TTL before sqlock's own deadline,
 * which is a twentieth before the lease's end: on a busy machine it may be late
 * by both together, 300 ms. */
#define TTL_MS 4000
#define TTL "4000ms"

/* Rounds of each test in a campaign: 200 and more on each database. */
#define ROUNDS 50

static const char *const options[] = {"-t", TTL, NULL};

static int64_t clock_us(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void start(struct job *job, struct fixture *f, const char *url)
{
    job_run(job, f, url, options, "stubborn", FAMILY_STUBBORN);
    job->clock_offset_us = clock_us(CLOCK_REALTIME) - clock_us(CLOCK_BOOTTIME);
}

/* Print how long after the next grant a member was alive, which process it was
 * (/proc/PID/stat), and by how much CLOCK_REALTIME was set meanwhile; then fail
 * the test. */
static void report_late(struct job *job, int64_t granted_us)
{
    long pid = atomic_load(&job->activity->last_pid);
    int64_t offset_us = clock_us(CLOCK_REALTIME) - clock_us(CLOCK_BOOTTIME);
    char stat[256] = "it has ended";
    char path[32];
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    file = fopen(path, "re");
    if (file != NULL && fgets(stat, sizeof stat, file) != NULL)
        stat[strcspn(stat, "\n")] = '\0';
    if (file != NULL)
        (void)fclose(file);
    (void)job_has_said(job, "");
    print_error("process %ld was alive %lld us after the next grant: %s\n"
                "CLOCK_REALTIME was set by %lld us since the job began\n%s\n",
                pid,
                (long long)(atomic_load(&job->activity->last_us) - granted_us),
                stat, (long long)(offset_us - job->clock_offset_us), job->said);
    fail();
}

/* Acquire the job's lock as the next holder, check that no member was alive at
 * the time of that grant or later, and release the lock. */
static void check_next(struct job *job, struct fixture *f)
{
    sqlock_lock *lock = lock_obtain(f->b, f->name);
    int64_t end_ns = check_deadline_ns(PATIENCE_MS);
    int64_t granted_us;
    int64_t last_us;
    int rc;

    do {
        rc = lock_try(lock, PATIENCE_MS, 0, &f->err);
    } while (rc < 0 && check_pause(end_ns));
    assert_lock_ok(rc, &f->err);
    last_us = atomic_load(&job->activity->last_us);
    granted_us = fixture_row(f, f->name).created_us;
    /* A member that was asleep would wake, and be noticed, in this time. */
    (void)usleep(50000);
    if (last_us >= granted_us || atomic_load(&job->activity->last_us) > last_us)
        report_late(job, granted_us);
    lock_end(lock);
}

/* Check the end of the family by check_next(), and sqlock's exit status. */
static void check_end(struct job *job, struct fixture *f, int status)
{
    check_next(job, f);
    assert_int_equal(job_end(job), status);
}

/* Break the lease as an operator does: it cannot be renewed any more, and lasts
 * until its end. */
static void break_lease(struct fixture *f)
{
    sqlock_break_options how = SQLOCK_BREAK_INIT;
    sqlock_info *row = NULL;

    assert_ok(sqlock_show(f->b, f->name, &row, &f->err));
    how.token = row->token;
    how.reason = "test";
    assert_ok(sqlock_break(f->b, f->name, &how, &f->err));
    sqlock_info_free(row, 1);
}

/* Sleep until that time of CLOCK_REALTIME. */
static void sleep_until_us(int64_t at_us)
{
    struct timespec at = {.tv_sec = at_us / 1000000,
                          .tv_nsec = (long)(at_us % 1000000) * 1000};

    while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL) != 0)
        continue;
}

TEST_IN_ROUNDS(test_F71_sqlock_is_killed, ON_ALL, ROUNDS)
{
    struct job job;

    start(&job, f, NULL);
    assert_int_equal(kill(job.pid, SIGKILL), 0);
    check_end(&job, f, 128 + SIGKILL);
}

/* Kill two of sqlock, the watcher and the supervisor, all but `spared` (NULL:
 * sqlock).  All three are stopped before, so that none acts until both are
 * dead.  Then check the end by check_end(). */
static void end_two_are_killed(struct fixture *f, const char *spared,
                               int status)
{
    struct job job;
    pid_t pids[3];
    pid_t spared_pid;
    size_t i;

    start(&job, f, NULL);
    pids[0] = job.pid;
    pids[1] = job_process(&job, JOB_WATCHER);
    pids[2] = job_process(&job, JOB_SUPERVISOR);
    spared_pid = spared != NULL ? job_process(&job, spared) : job.pid;
    for (i = 0; i < 3; i++)
        assert_int_equal(kill(pids[i], SIGSTOP), 0);
    for (i = 0; i < 3; i++) {
        if (pids[i] != spared_pid)
            assert_int_equal(kill(pids[i], SIGKILL), 0);
    }
    assert_int_equal(kill(spared_pid, SIGCONT), 0);
    check_end(&job, f, status);
}

TEST_IN_ROUNDS(test_F71_sqlock_and_the_supervisor_are_killed, ON_ALL, ROUNDS)
{
    end_two_are_killed(f, JOB_WATCHER, 128 + SIGKILL);
}

TEST_IN_ROUNDS(test_F71_sqlock_and_the_watcher_are_killed, ON_SQLITE, ROUNDS)
{
    end_two_are_killed(f, JOB_SUPERVISOR, 128 + SIGKILL);
}

TEST_IN_ROUNDS(test_F71_the_watcher_and_the_supervisor_are_killed, ON_SQLITE,
               ROUNDS)
{
    end_two_are_killed(f, NULL, 71);
}

/* The watcher is killed, then sqlock: the supervisor ends the family.  In a
 * second job only the watcher is killed: TERM to sqlock ends the command. */
TEST_IN_ROUNDS(test_F71_the_watcher_is_killed, ON_SQLITE, ROUNDS)
{
    struct job job;

    start(&job, f, NULL);
    assert_int_equal(kill(job_process(&job, JOB_WATCHER), SIGKILL), 0);
    assert_int_equal(kill(job.pid, SIGKILL), 0);
    check_end(&job, f, 128 + SIGKILL);

    fixture_next(f);
    job_run(&job, f, NULL, options, "meek", 1);
    assert_int_equal(kill(job_process(&job, JOB_WATCHER), SIGKILL), 0);
    job_terminate(&job);
}

TEST_IN_ROUNDS(test_F72_sqlock_is_frozen, ON_ALL, ROUNDS)
{
    struct job job;

    start(&job, f, NULL);
    assert_int_equal(kill(job.pid, SIGSTOP), 0);
    check_next(&job, f);
    assert_int_equal(kill(job.pid, SIGCONT), 0);
    assert_int_equal(job_end(&job), 76);
}

TEST_IN_ROUNDS(test_F80_the_lease_is_broken, ON_ALL, ROUNDS)
{
    struct job job;

    start(&job, f, NULL);
    break_lease(f);
    check_end(&job, f, 76);
}

/* The supervisor is stopped and the lease is broken: sqlock itself ends the
 * family in time. */
TEST_IN_ROUNDS(test_F72_the_supervisor_is_frozen, ON_ALL, ROUNDS)
{
    struct job job;

    start(&job, f, NULL);
    assert_int_equal(kill(job_process(&job, JOB_SUPERVISOR), SIGSTOP), 0);
    break_lease(f);
    check_end(&job, f, 76);
}

TEST_IN_ROUNDS(test_F72_the_network_is_a_black_hole, ON_SERVERS, ROUNDS)
{
    struct proxy *proxy = proxy_open(f->database, f->url);
    char url[1024];
    struct job job;

    assert_non_null(proxy);
    start(&job, f, proxy_url(proxy, url, f->url));
    proxy_blackhole(proxy);
    check_next(&job, f);
    proxy_heal(proxy);
    assert_int_equal(job_end(&job), 76);
    proxy_close(proxy);
}

TEST_WITH(test_F72_the_server_is_stopped, .databases = ON_SERVERS,
          .rounds = ROUNDS, .stops_server = true)
{
    struct job job;
    int64_t expires_us;

    if (!server_can_stop(f->database))
        skip_or_fail("the server is not ours");
    start(&job, f, NULL);
    server_stop(f->database);
    /* The last renewal came before the server was stopped, so the lease is over
     * a TTL later. */
    expires_us = atomic_load(&job.activity->last_us) + INT64_C(1000) * TTL_MS;
    sleep_until_us(expires_us);
    server_go_on();
    check_end(&job, f, 76);
}

TEST_IN_ROUNDS(test_F72_the_file_is_locked, ON_SQLITE, ROUNDS)
{
    struct job job;

    start(&job, f, NULL);
    assert_lock_ok(sql_begin(&f->sql), &f->sql.err);
    sleep_until_us(fixture_row(f, f->name).expires_us);
    assert_lock_ok(sql_rollback(&f->sql), &f->sql.err);
    check_end(&job, f, 76);
}

/* The pipe of stderr is full, and sqlock is killed: the supervisor ends the
 * family in time, and writes the reason when the pipe is read again. */
TEST_IN_ROUNDS(test_F71_killed_and_nobody_reads, ON_SQLITE, ROUNDS)
{
    struct job job;

    start(&job, f, NULL);
    job_deafen(&job);
    assert_int_equal(kill(job.pid, SIGKILL), 0);
    check_next(&job, f);
    job_listen(&job);
    assert_int_equal(job_end(&job), 128 + SIGKILL);
    assert_non_null(strstr(job.said, "sqlock was killed"));
}

TEST_IN_ROUNDS(test_F72_frozen_and_nobody_reads, ON_SQLITE, ROUNDS)
{
    struct job job;

    start(&job, f, NULL);
    job_deafen(&job);
    assert_int_equal(kill(job.pid, SIGSTOP), 0);
    check_next(&job, f);
    job_listen(&job);
    job_await(&job, "about to expire");
    assert_int_equal(kill(job.pid, SIGCONT), 0);
    assert_int_equal(job_end(&job), 76);
}

TEST_IN_ROUNDS(test_F80_broken_and_nobody_reads, ON_SQLITE, ROUNDS)
{
    struct job job;

    start(&job, f, NULL);
    job_deafen(&job);
    break_lease(f);
    check_next(&job, f);
    job_listen(&job);
    assert_int_equal(job_end(&job), 76);
    assert_non_null(strstr(job.said, "the command was ended"));
}

/* A transaction locks the file until six seconds before the lease's end, so
 * that renewals fail, and succeed again in time.  sqlock's messages about that
 * do not fit into the full pipe: the command goes on all the same. */
TEST_IN_ROUNDS(test_F72_unrenewed_and_nobody_reads, ON_SQLITE, ROUNDS)
{
    static const char *const long_lease[] = {"-t", "16", "--grace", "0", NULL};
    struct job job;
    int64_t expires_us;

    job_run(&job, f, NULL, long_lease, "meek", 1);
    job_deafen(&job);
    assert_lock_ok(sql_begin(&f->sql), &f->sql.err);
    expires_us = fixture_row(f, f->name).expires_us;
    sleep_until_us(expires_us - INT64_C(6000000));
    assert_lock_ok(sql_rollback(&f->sql), &f->sql.err);
    assert_becomes_true(atomic_load(&job.activity->last_us) > expires_us,
                        PATIENCE_MS);
    job_listen(&job);
    job_await(&job, "could not be renewed");
    job_await(&job, "renewed again");
    job_terminate(&job);
}

/* Wait until renewals have moved the lease's end by so many ms. */
static void await_renewals(struct fixture *f, int64_t ms)
{
    int64_t until_us = fixture_row(f, f->name).expires_us + 1000 * ms;

    assert_becomes_true(fixture_row(f, f->name).expires_us >= until_us,
                        PATIENCE_MS);
}

/* The command succeeds, sqlock keeps the lock (--min-hold), and the lease is
 * broken: sqlock reports the loss, and still exits with 0. */
static void end_lost_while_renewed(struct fixture *f, bool is_once)
{
    const char *const keeping[] = {
        "-t", TTL, "--min-hold", "600", is_once ? "--once" : NULL, NULL};
    struct job job;

    job_run(&job, f, NULL, keeping, "brief", 1);
    job_await(&job, "keeping");
    /* More than one renewal: sqlock may not have noticed the last one yet. */
    if (!is_once)
        await_renewals(f, TTL_MS * 5 / 8);
    break_lease(f);
    assert_int_equal(job_end(&job), 0);
    assert_non_null(strstr(job.said, "was lost after the command had ended"));
}

TEST_ON(test_F80_lost_while_renewed, ON_SQLITE, 0)
{
    end_lost_while_renewed(f, false);
}

TEST_ON(test_F80_lost_while_renewed_when_recorded, ON_SQLITE, 0)
{
    sqlock_options table = fixture_options(f);

    assert_ok(sqlock_once_schema_create(f->url, &table, &f->err));
    end_lost_while_renewed(f, true);
    (void)sql_run(&f->sql, "DROP TABLE %sDONE", f->prefix);
}
