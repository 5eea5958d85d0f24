/*
 * signals.c - each signal that `sqlock run` passes on, sent in each state of
 * sqlock: no process is left, the exit status is the documented one, and the
 * lock is free at once or when the lease ends (F73)
 */
#include "command.h"
#include "sqlock/once.h"

#include <signal.h>
#include <unistd.h>

static const int numbers[] = {SIGHUP,  SIGINT,  SIGQUIT,
                              SIGTERM, SIGUSR1, SIGUSR2};
#define NUMBERS (sizeof numbers / sizeof numbers[0])

/* Leases: one that even a busy machine renews in time, and one whose loss is
 * noticed soon. */
static const char *const options[] = {"-t", "20", NULL};
static const char *const short_options[] = {"-t", "2", NULL};

/* Return how often a test sends each signal. */
static unsigned rounds(void)
{
    return check_scale(3, 100);
}

static void check_free(struct fixture *f)
{
    sqlock_lock *lock = lock_obtain(f->b, f->name);

    assert_ok(lock_try(lock, PATIENCE_MS, 0, &f->err));
    lock_end(lock);
}

static void check_status(struct job *job, int number, int expected)
{
    int status = job_end(job);

    if (status != expected)
        print_error("signal %d: %s\n", number, job->said);
    assert_int_equal(status, expected);
}

TEST(test_F73_while_waiting)
{
    sqlock_lock *holder = lock_obtain(f->a, f->name);
    struct job job;

    lock_take(holder, 0);
    for (unsigned i = 0; i < rounds() * NUMBERS; i++) {
        int number = numbers[i % NUMBERS];

        assert_ok(sqlock_renew(holder, 0, &f->err));
        job_start(&job, f, NULL, options, "meek");
        job_await(&job, "waiting");
        (void)kill(job.pid, number);
        assert_int_equal(atomic_load(&job.activity->members), 0);
        check_status(&job, number, 128 + number);
    }
    assert_true(sqlock_is_held(holder));
    lock_end(holder);
    check_free(f);
}

/* The signal comes at any time from the start of sqlock's process until its
 * command runs. */
TEST(test_F73_while_starting)
{
    struct job job;

    for (unsigned i = 0; i < rounds() * NUMBERS; i++) {
        int number = numbers[i % NUMBERS];

        fixture_next(f);
        job_start(&job, f, NULL, options, "meek");
        (void)usleep(i * 7919 % 30000);
        (void)kill(job.pid, number);
        check_status(&job, number, 128 + number);
        check_free(f);
    }
}

TEST(test_F73_while_held)
{
    struct job job;

    for (unsigned i = 0; i < rounds() * NUMBERS; i++) {
        int number = numbers[i % NUMBERS];

        job_run(&job, f, NULL, options, "meek", 1);
        (void)kill(job.pid, number);
        check_status(&job, number, 128 + number);
        check_free(f);
    }
}

/* The lease is lost, and sqlock is ending a command that ignores TERM when the
 * signal comes: the exit status is 76, as of the loss. */
TEST(test_F73_while_stopping)
{
    struct job job;

    for (unsigned i = 0; i < check_scale(2, 100) * NUMBERS; i++) {
        int number = numbers[i % NUMBERS];
        struct row row;

        fixture_next(f);
        job_run(&job, f, NULL, short_options, "stubborn", FAMILY_STUBBORN);
        row = fixture_row(f, f->name);
        assert_int_equal(sql_run(&f->sql,
                                 "DELETE FROM %s WHERE LOCK_KEY = '%s'",
                                 f->table, row.key),
                         1);
        /* TERM and KILL come together if the loss is noticed at the last
         * moment. */
        assert_becomes_true(atomic_load(&job.activity->terms) > 0 ||
                                job_has_ended(&job),
                            PATIENCE_MS);
        (void)kill(job.pid, number);
        check_status(&job, number, 76);
        check_free(f);
    }
}

/* The command has succeeded, and sqlock keeps the lock (--min-hold) when the
 * signal comes: sqlock releases the lock, and exits with 0. */
TEST(test_F73_while_holding_on)
{
    static const char *const holding[] = {"-t", "20", "--min-hold", "600",
                                          NULL};
    struct job job;

    for (unsigned i = 0; i < rounds() * NUMBERS; i++) {
        int number = numbers[i % NUMBERS];

        job_run(&job, f, NULL, holding, "brief", 1);
        job_await(&job, "keeping");
        (void)kill(job.pid, number);
        check_status(&job, number, 0);
        check_free(f);
    }
}

static bool is_recorded(struct fixture *f)
{
    int rc = sqlock_once_check(f->b, f->name, &f->err);

    if (rc != SQLOCK_ENOTFOUND)
        assert_lock_ok(rc, &f->err);
    return rc == 0;
}

/* The signal comes at any time of a run with --once: either the exit status is
 * 0 and the run is recorded as done, or the status is the signal's and the run
 * is not recorded. */
TEST(test_F73_while_recording)
{
    static const char *const once[] = {"-t", "20", "--once", NULL};
    sqlock_options table = fixture_options(f);
    struct job job;

    assert_ok(sqlock_once_schema_create(f->url, &table, &f->err));
    for (unsigned i = 0; i < rounds() * NUMBERS; i++) {
        int number = numbers[i % NUMBERS];
        int status;

        fixture_next(f);
        job_start(&job, f, NULL, once, "brief");
        if (i % 2 == 0)
            job_await(&job, "starting");
        (void)usleep(i * 7919 % 20000);
        (void)kill(job.pid, number);
        status = job_end(&job);
        if (status != 0 && status != 128 + number)
            print_error("signal %d: %s\n", number, job.said);
        assert_true(status == 0 || status == 128 + number);
        assert_true(status == 0 || !is_recorded(f));
        assert_true(status != 0 || is_recorded(f));
        check_free(f);
    }
    (void)sql_run(&f->sql, "DROP TABLE %sDONE", f->prefix);
}
