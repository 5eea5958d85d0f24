/*
 * test_stopped.c - a holder that is stopped for 2.5 TTL between reading and
 * writing: without the guard it overwrites what the next holder has written,
 * with it never
 */
#include "suite.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TTL_MS 80
#define STOPPED_NS (INT64_C(5) * TTL_MS * 1000000 / 2)

/* The point at which the holder is stopped. */
enum point {
    WITHOUT_GUARD, /* the control */
    BEFORE_GUARD,
    BEHIND_GUARD
};

/* The result of a round, a byte that the holder sends.  A round that was LATE,
 * because the lease expired before it was guarded, is repeated. */
enum { COMMITTED = 'c', REFUSED = 'r', FAILED = 'f', LATE = 'l' };

struct holder {
    sqlock_lock *lock;
    sqlock_registry *registry;
    struct app app;
    const char *table;
};

static char write_guarded(struct holder *holder, enum point point)
{
    sqlock_tx *tx = NULL;
    sqlock_error err = {0};
    long long seen;
    int rc = 0;

    seen = app_integer(&holder->app, "SELECT a FROM %s WHERE id = 1",
                       holder->table);
    if (point == BEFORE_GUARD)
        (void)raise(SIGSTOP);
    if (sqlock_tx_adopt(&tx, holder->registry, holder->app.native, &err) != 0)
        return FAILED;
    rc = sqlock_tx_guard(tx, holder->lock, &err);
    if (rc != 0 && point == BEHIND_GUARD) {
        (void)sqlock_tx_rollback(tx, NULL);
        return rc == SQLOCK_EEXPIRED ? LATE : FAILED;
    }
    if (point == BEHIND_GUARD)
        (void)raise(SIGSTOP);
    if (rc == 0 && app_try(&holder->app, "UPDATE %s SET a = %lld WHERE id = 1",
                           holder->table, seen + 1) != 0)
        return FAILED;
    /* After a guard that failed, the commit must be refused. */
    rc = sqlock_tx_commit(tx, &err);
    return rc == 0 ? COMMITTED : REFUSED;
}

static char write_unguarded(struct holder *holder)
{
    long long seen = app_integer(&holder->app, "SELECT a FROM %s WHERE id = 1",
                                 holder->table);

    (void)raise(SIGSTOP);
    return app_try(&holder->app, "UPDATE %s SET a = %lld WHERE id = 1",
                   holder->table, seen + 1) == 0
               ? COMMITTED
               : FAILED;
}

/* Be the holder's process: for each round, read the point from standard input,
 * and write the result to standard output.  The arguments are the database's
 * index, the prefix, the lock's name and the application's table.  The process
 * is not only forked, because a child of a process that has used SQLite cannot
 * use it. */
int hold(char **arguments)
{
    const struct database *database = &databases[arguments[0][0] - '0'];
    const char *url = database_url(database);
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    struct holder holder = {.table = arguments[3]};
    sqlock_error err = {0};
    char command;
    int rc;

    options.table_prefix = arguments[1];
    options.poll_ms = 5;
    app_open(&holder.app, database, url);
    if (database->bit == ON_SQLITE)
        app_run(&holder.app, "PRAGMA busy_timeout = 10000");
    rc = sqlock_registry_open(&holder.registry, url, &options, &err);
    if (rc == 0)
        rc = sqlock_obtain(&holder.lock, holder.registry, arguments[2], &err);
    if (rc < 0) {
        print_error("the holder: %s\n", err.message);
        return 2;
    }
    while (read(STDIN_FILENO, &command, 1) == 1) {
        char answer = FAILED;

        do {
            do
                rc = lock_try(holder.lock, PATIENCE_MS, TTL_MS, NULL);
            while (rc == SQLOCK_ETIMEDOUT); /* the lease was over at once */
            if (rc == 0)
                answer = command == WITHOUT_GUARD
                             ? write_unguarded(&holder)
                             : write_guarded(&holder, (enum point)command);
            (void)!sqlock_release(holder.lock, NULL);
        } while (answer == LATE);
        if (write(STDOUT_FILENO, &answer, 1) != 1)
            return 3;
    }
    app_close(&holder.app);
    (void)sqlock_drop(holder.lock, NULL);
    return sqlock_registry_close(holder.registry, NULL) == 0 ? 0 : 4;
}

static pid_t start_holder(struct fixture *f, int commands, int answers)
{
    char index[2] = {(char)('0' + (f->database - databases)), '\0'};
    char table[64];
    char *arguments[] = {(char[]){"tx"},
                         (char[]){"--hold"},
                         index,
                         f->prefix,
                         f->name,
                         table,
                         NULL};
    pid_t parent = getpid();
    pid_t pid;

    (void)snprintf(table, sizeof table, "%s", stock_name(f));
    (void)fflush(NULL);
    pid = fork();
    if (pid != 0)
        return pid;
    check_end_with(parent); /* else it could stay, stopped, for ever */
    if (dup2(commands, STDIN_FILENO) < 0 || dup2(answers, STDOUT_FILENO) < 0)
        _exit(98);
    (void)execv("/proc/self/exe", arguments);
    _exit(99);
}

static void wait_for_stop(pid_t pid)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    if (!WIFSTOPPED(status))
        fail_msg("the holder ended with status %x", (unsigned)status);
}

/* As the next holder, take the lock over, add one, and release the lock. */
static void take_over(struct fixture *f, sqlock_lock *lock)
{
    int rc;

    do
        rc = lock_try(lock, PATIENCE_MS, 0, &f->err);
    while (rc == SQLOCK_EBUSY);
    assert_ok(rc);
    (void)sql_run(&f->sql, "UPDATE %s SET a = a + 1 WHERE id = 1",
                  stock_name(f));
    lock_give(lock);
}

/* Run so many rounds, and return how many updates were lost. */
static long long lost_updates(struct fixture *f, enum point point,
                              unsigned rounds)
{
    sqlock_lock *rival = lock_obtain(f->b, f->name);
    long long before = stock_value(f, 1);
    long long written = 0;
    int commands[2];
    int answers[2];
    int status;
    pid_t pid;

    assert_int_equal(pipe2(commands, O_CLOEXEC), 0);
    assert_int_equal(pipe2(answers, O_CLOEXEC), 0);
    pid = start_holder(f, commands[0], answers[1]);
    assert_true(pid > 0);
    (void)close(commands[0]);
    (void)close(answers[1]);
    for (unsigned round = 0; round < rounds; round++) {
        char command = (char)point;
        char answer;
        int64_t until;

        assert_int_equal(write(commands[1], &command, 1), 1);
        wait_for_stop(pid);
        until = sqlock_monotonic_ns() + STOPPED_NS;
        if (point != BEHIND_GUARD) {
            take_over(f, rival);
            written++;
        }
        while (check_pause(until))
            ;
        if (point == BEHIND_GUARD) /* expired long ago, but guarded */
            assert_fails(SQLOCK_EBUSY, lock_try(rival, 0, 0, &f->err));
        assert_int_equal(kill(pid, SIGCONT), 0);
        assert_int_equal(read(answers[0], &answer, 1), 1);
        assert_int_equal(answer, point == BEFORE_GUARD ? REFUSED : COMMITTED);
        written += answer == COMMITTED;
    }
    (void)close(commands[1]);
    (void)close(answers[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    lock_drop(rival);
    return before + written - stock_value(f, 1);
}

static void test_stopped_holder_loses_updates_without_a_guard(void **state)
{
    unsigned rounds = check_scale(2, 20);

    assert_int_equal(lost_updates(*state, WITHOUT_GUARD, rounds), rounds);
}

static void test_stopped_holder_loses_none_with_a_guard(void **state)
{
    assert_int_equal(lost_updates(*state, BEFORE_GUARD, check_scale(4, 1000)),
                     0);
}

static void test_holder_stopped_behind_its_guard_loses_none(void **state)
{
    assert_int_equal(lost_updates(*state, BEHIND_GUARD, check_scale(2, 100)),
                     0);
}

static const struct test tests[] = {
    TEST_OF_ROWS(test_stopped_holder_loses_updates_without_a_guard, ON_ALL, 0),
    TEST_OF_ROWS(test_stopped_holder_loses_none_with_a_guard, ON_ALL, 0),
    TEST_OF_ROWS(test_holder_stopped_behind_its_guard_loses_none, ON_ALL, 0),
};
const struct topic topic_stopped = TOPIC(tests);
