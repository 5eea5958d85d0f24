/*
 * pause.c - a holder that is paused for longer than its lease: if it asks for
 * its remaining time before it writes, it does not write; the control, which
 * does not ask, overwrites the next holder's work
 *
 * The holder is this program again, run as
 *     renewer --paused DATABASE PREFIX NAME TTL asks|blind
 * It takes the lock, reads a counter, stops itself, and writes the counter when
 * it is continued.
 */
#include "renewer.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum { WROTE = 0, REFRAINED = 10, WENT_WRONG = 20 };

/* --------------------------------------------------------------- the holder */

static int hold(struct sql *sql, sqlock_lock *lock, const char *prefix,
                uint32_t ttl_ms, bool asks)
{
    sqlock_error err = {0};
    long long seen;

    if (lock_try(lock, 0, ttl_ms, &err) < 0)
        return WENT_WRONG;
    seen = (long long)sql_integer(sql, "SELECT N FROM %sCOUNTER", prefix);
    if (raise(SIGSTOP) != 0)
        return WENT_WRONG;
    if (asks && sqlock_remaining_ms(lock) == 0)
        return REFRAINED;
    if (sql_try(sql, NULL, "UPDATE %sCOUNTER SET N = %lld", prefix, seen + 1) <
        0)
        return WENT_WRONG;
    return WROTE;
}

int pause_main(char **argv)
{
    const struct database *database = NULL;
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_registry *registry = NULL;
    sqlock_lock *lock = NULL;
    struct sql sql = {0};
    int outcome = WENT_WRONG;

    for (size_t i = 0; i < DATABASES; i++)
        if (strcmp(databases[i].name, argv[0]) == 0)
            database = &databases[i];
    if (database == NULL)
        return WENT_WRONG;
    options.table_prefix = argv[1];
    if (sql_open(&sql, database, database_url(database)) == 0 &&
        sqlock_registry_open(&registry, database_url(database), &options,
                             NULL) == 0 &&
        sqlock_obtain(&lock, registry, argv[2], NULL) == 0)
        outcome =
            hold(&sql, lock, argv[1], (uint32_t)strtoul(argv[3], NULL, 10),
                 strcmp(argv[4], "asks") == 0);
    (void)sqlock_registry_close(registry, NULL);
    sql_close(&sql);
    return outcome;
}

/* ----------------------------------------------------------------- the test */

static pid_t start_holder(struct fixture *f, const char *how)
{
    char ttl[16];
    char path[] = "/proc/self/exe";
    pid_t pid;

    (void)snprintf(ttl, sizeof ttl, "%d", TTL_MS);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)execl(path, "renewer", "--paused", f->database->name, f->prefix,
                    f->name, ttl, how, (char *)NULL);
        _exit(WENT_WRONG);
    }
    return pid;
}

/* Start a holder, which reads the counter and stops; take the lock when its
 * lease is over, and increment the counter; then continue the holder.  Fail the
 * test unless its exit status is as expected, and return the counter's last
 * value. */
static int64_t count_with(struct fixture *f, const char *how, int expected)
{
    sqlock_lock *lock = lock_obtain(f->b, f->name);
    int status = 0;
    int64_t began;
    int64_t seen;
    pid_t pid;

    (void)sql_run(&f->sql, "UPDATE %sCOUNTER SET N = 0", f->prefix);
    pid = start_holder(f, how);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    began = lk_boottime_ns();
    assert_ok(lock_try(lock, PATIENCE_MS, LONG_TTL_MS, &f->err));
    seen = sql_integer(&f->sql, "SELECT N FROM %sCOUNTER", f->prefix);
    (void)sql_run(&f->sql, "UPDATE %sCOUNTER SET N = %lld", f->prefix,
                  (long long)seen + 1);
    lock_give(lock);
    assert_becomes_true(
        lk_boottime_ns() - began >= TTL_MS * LK_NS_PER_MS * 5 / 2, PATIENCE_MS);
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), expected);
    lock_drop(lock);
    return sql_integer(&f->sql, "SELECT N FROM %sCOUNTER", f->prefix);
}

static void make_counter(struct fixture *f)
{
    (void)sql_try(&f->sql, NULL, "DROP TABLE %sCOUNTER", f->prefix);
    (void)sql_run(&f->sql, "CREATE TABLE %sCOUNTER (N INTEGER NOT NULL)",
                  f->prefix);
    (void)sql_run(&f->sql, "INSERT INTO %sCOUNTER (N) VALUES (0)", f->prefix);
}

static void test_control_a_paused_holder_that_does_not_ask(void **state)
{
    struct fixture *f = *state;

    make_counter(f);
    /* The holder has incremented the value that it had read before: this
     * process's increment is lost. */
    assert_true(count_with(f, "blind", WROTE) == 1);
    (void)sql_run(&f->sql, "UPDATE %sCOUNTER SET N = 0", f->prefix);
    (void)sql_run(&f->sql, "DROP TABLE %sCOUNTER", f->prefix);
}

static void test_a_paused_holder_that_asks_before_it_writes(void **state)
{
    struct fixture *f = *state;

    make_counter(f);
    /* Only this process has incremented the counter, and the holder's exit
     * status says so. */
    assert_true(count_with(f, "asks", REFRAINED) == 1);
    (void)sql_run(&f->sql, "DROP TABLE %sCOUNTER", f->prefix);
}

static const struct test tests[] = {
    TEST(test_control_a_paused_holder_that_does_not_ask),
    TEST(test_a_paused_holder_that_asks_before_it_writes),
};
const struct topic topic_pause = TOPIC(tests);
