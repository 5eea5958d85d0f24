/*
 * lanes.c - see lanes.h
 */
#include "lanes.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "program.h"
#include "server.h"

/* A child process, whose output goes to a file. */
struct child {
    pid_t pid;
    FILE *output;
    const char *name;
};

const char *volatile lanes_running;

static const struct lanes *running;
static const struct database *missing_database;

/* The children of this process whose output has not been shown yet, for the
 * signal handler. */
static struct child *unshown;
static volatile sig_atomic_t unshown_count;

/* End a child, and wait for it for at most 5 s; for the signal handler. */
static void end_child(pid_t pid)
{
    const struct timespec pause = {.tv_nsec = 10000000};

    (void)kill(pid, SIGTERM);
    for (int i = 0; i < 500 && waitpid(pid, NULL, WNOHANG) == 0; i++)
        (void)nanosleep(&pause, NULL);
}

/* As show(), for the signal handler.  The file's position is shared with the
 * child, so it is not changed. */
static void copy_output(const struct child *child)
{
    char buffer[4096];
    off_t at = 0;
    ssize_t length;

    while ((length = pread(fileno(child->output), buffer, sizeof buffer, at)) >
               0 &&
           write(STDOUT_FILENO, buffer, (size_t)length) == length)
        at += length;
}

/* Print which test hangs; for the signal handler. */
static bool tell_hung(void)
{
    static const char text[] = "[  FAILED  ] a test hung: ";
    const char *name = lanes_running != NULL ? lanes_running : "no test";

    return write(STDOUT_FILENO, text, sizeof text - 1) > 0 &&
           write(STDOUT_FILENO, name, strlen(name)) > 0 &&
           write(STDOUT_FILENO, "\n", 1) > 0;
}

/* Handle SIGALRM, by which a test hangs, or a request to end: continue a
 * stopped server, end the children, and print the output that they have
 * left. */
static void on_signal(int number)
{
    server_go_on();
    if (number == SIGALRM && !tell_hung())
        _exit(98);
    for (sig_atomic_t i = 0; i < unshown_count; i++) {
        end_child(unshown[i].pid);
        copy_output(&unshown[i]);
    }
    _exit(99);
}

static void catch_signals(void)
{
    (void)signal(SIGALRM, on_signal);
    (void)signal(SIGTERM, on_signal);
    (void)signal(SIGINT, on_signal);
    (void)signal(SIGPIPE, SIG_IGN);
}

/* Fork the next child.  Return true in the child, whose output then goes to its
 * file; and false in the parent. */
static bool fork_child(struct child *children, size_t index, const char *name)
{
    struct child *child = &children[index];

    (void)fflush(NULL);
    child->name = name;
    child->output = tmpfile();
    if (child->output == NULL)
        abort();
    child->pid = fork();
    if (child->pid > 0) {
        unshown = children;
        unshown_count = (sig_atomic_t)(index + 1);
    }
    if (child->pid != 0)
        return false;
    unshown_count = 0;
    if (dup2(fileno(child->output), STDOUT_FILENO) < 0 ||
        dup2(fileno(child->output), STDERR_FILENO) < 0)
        _exit(98);
    return true;
}

static void show(FILE *output)
{
    char buffer[4096];
    size_t length;

    rewind(output);
    while ((length = fread(buffer, 1, sizeof buffer, output)) > 0)
        (void)fwrite(buffer, 1, length, stdout);
    (void)fflush(stdout);
    (void)fclose(output);
}

/* Wait for the children and print their output; return how many tests
 * failed. */
static int join_children(struct child *children, size_t count)
{
    int failed = 0;

    for (size_t i = 0; i < count; i++) {
        int status = -1;

        if (children[i].pid > 0)
            (void)waitpid(children[i].pid, &status, 0);
        unshown_count = (sig_atomic_t)(count - i - 1);
        unshown = unshown_count > 0 ? &children[i + 1] : NULL;
        show(children[i].output);
        if (status != 0) {
            failed++;
            printf("%s ended with status %d\n", children[i].name, status);
        }
    }
    return failed;
}

static void test_database_is_named(void **state)
{
    (void)state;
    skip_or_fail("SQLOCK_TEST_%s_URL is not set", missing_database->variable);
}

static int run_missing(const struct database *database)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_database_is_named),
    };

    missing_database = database;
    return _cmocka_run_group_tests(database->name, tests, 1, NULL, NULL);
}

/* Give the lane an SQLite file of its own, since a file has one writer at a
 * time. */
static void choose_file(const struct lane *lane)
{
    char url[1024];

    if (lane->database->bit != ON_SQLITE || lane->of == 1)
        return;
    (void)snprintf(url, sizeof url, "%s-lane%u", database_url(lane->database),
                   lane->number + 1);
    (void)setenv("SQLOCK_TEST_SQLITE_URL", url, 1);
}

static int run_lanes(const struct lane *first)
{
    struct child children[LANES_MAX];
    struct lane lane = *first;

    for (; lane.number < lane.of; lane.number++)
        if (fork_child(children, lane.number, lane.database->name)) {
            choose_file(&lane);
            exit(running->run(&lane) == 0 ? 0 : 1);
        }
    return join_children(children, lane.of);
}

static int run_database(const struct database *database)
{
    const struct lane alone = {
        .database = database, .of = 1, .stops_server = true};
    const struct lane first = {.database = database, .of = running->count};
    int failed = 0;

    if (database_url(database) == NULL)
        return run_missing(database);
    if (first.of == 1 && !running->stops_servers)
        return running->run(&first);
    if (running->before != NULL)
        failed += running->before(database);
    if (running->stops_servers && database->bit != ON_SQLITE &&
        !program_is_beside_others())
        failed += run_lanes(&alone);
    failed += run_lanes(&first);
    if (running->after != NULL)
        failed += running->after(database);
    return failed;
}

int lanes_run(const struct lanes *lanes)
{
    const struct database *chosen[DATABASES];
    struct child children[DATABASES];
    size_t number = 0;

    for (size_t i = 0; i < DATABASES; i++)
        if (program_wants_database(&databases[i]))
            chosen[number++] = &databases[i];
    if (lanes->count < 1 || lanes->count > LANES_MAX)
        return 2;
    if (number == 0) {
        print_message("skipped: none of its databases is asked for\n");
        return 77;
    }
    running = lanes;
    catch_signals();
    if (number == 1)
        return run_database(chosen[0]) == 0 ? 0 : 1;
    for (size_t i = 0; i < number; i++)
        if (fork_child(children, i, chosen[i]->name))
            exit(run_database(chosen[i]) == 0 ? 0 : 1);
    return join_children(children, number) == 0 ? 0 : 1;
}
