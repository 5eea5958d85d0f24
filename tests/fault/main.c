/*
 * main.c - faults of networks, servers, files and processes, on every database
 * that the environment names
 *
 *     fault [-t PATTERN] [-j LANES] [-c CLOCK] [postgres] [mysql] [sqlite]
 *
 * The databases run side by side.  What stops a server runs first and alone;
 * then the rest, spread over several processes ("lanes"), each with a lock
 * table, a proxy and, on SQLite, a file of its own.  With -c only the tests of
 * a server's clock run, which is in that file.
 */
#include "fault.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/server.h"

#define CELLS_MAX 512
#define LANES_MAX 8

static const struct group *const all_groups[] = {
    &group_named,
    &group_unknown,
    &group_loss,
    NULL,
};
static const struct group *const clock_groups[] = {
    &group_clock,
    NULL,
};
static const struct group *const *groups = all_groups;

static unsigned lanes = 6;

/* ----------------------------------------------------------------- the ends -- */

static void write_text(const char *text)
{
    if (write(STDOUT_FILENO, text, strlen(text)) < 0)
        return;
}

/* A test hangs, or we are told to end: leave no server stopped. */
static void on_signal(int number)
{
    server_go_on();
    if (number == SIGALRM)
        write_text("[  FAILED  ] a test hung\n");
    _exit(99);
}

static size_t count_entries(const char *path)
{
    DIR *directory = opendir(path);
    size_t count = 0;

    assert_non_null(directory);
    while (readdir(directory) != NULL)
        count++;
    (void)closedir(directory);
    return count;
}

/* ---------------------------------------------------------------- one lane -- */

struct lane {
    const struct database *database;
    unsigned number; /* of so many */
    unsigned of;
    bool stops_server;
    size_t fds; /* open when it began */
    size_t threads;
};

static struct lane lane;

static int open_lane(void **state)
{
    (void)state;
    return stage_open(lane.database);
}

/* Everything is closed: nothing is left of it. */
static void test_no_descriptor_and_no_thread_is_left(void **state)
{
    (void)state;
    stage_close();
    assert_becomes_true(count_entries("/proc/self/fd") <= lane.fds,
                        PATIENCE_MS);
    assert_becomes_true(count_entries("/proc/self/task") <= lane.threads,
                        PATIENCE_MS);
}

static size_t add_cells(struct CMUnitTest *tests, struct cell *cells)
{
    size_t total =
        clock_file != NULL
            ? 0
            : matrix_cells(cells, CELLS_MAX, lane.database, lane.stops_server);
    size_t count = 0;

    for (size_t i = 0; i < total; i++)
        if (i % lane.of == lane.number)
            tests[count++] = (struct CMUnitTest){
                .name = cells[i].name,
                .test_func = test_cell,
                .setup_func = stage_begin,
                .teardown_func = stage_end,
                .initial_state = &cells[i],
            };
    return count;
}

static size_t add_named(struct CMUnitTest *tests, size_t count)
{
    unsigned turn = 0;

    for (size_t g = 0; groups[g] != NULL; g++)
        for (size_t i = 0; i < groups[g]->count; i++) {
            const struct group_test *test = &groups[g]->tests[i];

            if ((test->databases & lane.database->bit) == 0 ||
                test->stops_server != lane.stops_server ||
                turn++ % lane.of != lane.number)
                continue;
            tests[count++] = (struct CMUnitTest){
                .name = test->name,
                .test_func = test->function,
                .setup_func = stage_begin,
                .teardown_func = stage_end,
            };
        }
    return count;
}

static void *do_nothing(void *argument)
{
    return argument;
}

/* A sanitizer may start a thread of its own along with our first. */
static void start_own_threads(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, do_nothing, NULL) == 0)
        (void)pthread_join(thread, NULL);
}

static int run_lane(void)
{
    static struct cell cells[CELLS_MAX];
    static struct CMUnitTest tests[CELLS_MAX + 64];
    char name[96];
    size_t count;

    (void)snprintf(name, sizeof name, "fault %s%s %u", lane.database->name,
                   lane.stops_server ? " (stopped)" : "", lane.number + 1);
    print_message("%s\n", name);
    start_own_threads();
    lane.fds = count_entries("/proc/self/fd");
    lane.threads = count_entries("/proc/self/task");
    count = add_cells(tests, cells);
    count = add_named(tests, count);
    tests[count++] = (struct CMUnitTest){
        .name = "test_no_descriptor_and_no_thread_is_left",
        .test_func = test_no_descriptor_and_no_thread_is_left,
    };
    return _cmocka_run_group_tests(name, tests, count, open_lane, NULL);
}

/* --------------------------------------------------------- the one database -- */

static struct {
    struct sql sql;
    int64_t sessions; /* before the lanes */
} census;

static int64_t count_sessions(void)
{
    return sql_integer(&census.sql,
                       census.sql.database->bit == ON_POSTGRES
                           ? "SELECT count(*) FROM pg_stat_activity WHERE"
                             " backend_type = 'client backend'"
                           : "SELECT count(*) FROM information_schema."
                             "processlist WHERE command <> 'Daemon'");
}

static int open_census(void **state)
{
    int rc =
        sql_open(&census.sql, lane.database, database_admin_url(lane.database));

    (void)state;
    return rc;
}

static void test_count_sessions_before(void **state)
{
    (void)state;
    census.sessions = count_sessions();
    assert_true(census.sessions >= 1);
}

static void test_no_session_is_left(void **state)
{
    int rc =
        sql_open(&census.sql, lane.database, database_admin_url(lane.database));

    (void)state;
    assert_lock_ok(rc, &census.sql.err);
    assert_becomes_true(count_sessions() <= census.sessions, PATIENCE_MS);
    sql_close(&census.sql);
}

static void test_database_is_named(void **state)
{
    (void)state;
    skip_or_fail("SQLOCK_TEST_%s_URL is not set", lane.database->variable);
}

/* ------------------------------------------------------------ side by side -- */

struct job {
    struct lane lane;
    int (*run)(void);
    FILE *output;
    pid_t pid;
};

static void start(struct job *job)
{
    (void)fflush(NULL);
    job->output = tmpfile();
    if (job->output == NULL)
        abort();
    job->pid = fork();
    if (job->pid != 0)
        return;
    lane = job->lane;
    if (dup2(fileno(job->output), STDOUT_FILENO) < 0 ||
        dup2(fileno(job->output), STDERR_FILENO) < 0)
        _exit(98);
    exit(job->run() == 0 ? 0 : 1);
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

/* How many of them failed. */
static int finish(struct job *jobs, size_t count)
{
    int failed = 0;

    for (size_t i = 0; i < count; i++) {
        int status = -1;

        if (jobs[i].pid < 0 || waitpid(jobs[i].pid, &status, 0) < 0 ||
            status != 0)
            failed++;
        show(jobs[i].output);
        if (status != 0)
            printf("%s ended with status %d\n", jobs[i].lane.database->name,
                   status);
    }
    return failed;
}

static int run_lanes(bool stops_server, unsigned of)
{
    struct job jobs[LANES_MAX];

    for (unsigned i = 0; i < of; i++) {
        jobs[i] = (struct job){.run = run_lane};
        jobs[i].lane = lane;
        jobs[i].lane.number = i;
        jobs[i].lane.of = of;
        jobs[i].lane.stops_server = stops_server;
        start(&jobs[i]);
    }
    return finish(jobs, of);
}

static int run_database(void)
{
    static const struct CMUnitTest missing[] = {
        cmocka_unit_test(test_database_is_named),
    };
    static const struct CMUnitTest before[] = {
        cmocka_unit_test(test_count_sessions_before),
    };
    static const struct CMUnitTest after[] = {
        cmocka_unit_test(test_no_session_is_left),
    };
    const char *name = lane.database->name;
    bool has_server = lane.database->bit != ON_SQLITE;
    int failed = 0;

    if (database_url(lane.database) == NULL)
        return cmocka_run_group_tests_name(name, missing, NULL, NULL);
    if (clock_file != NULL)
        return run_lanes(false, 1);
    if (has_server) {
        failed += cmocka_run_group_tests_name(name, before, open_census, NULL);
        sql_close(&census.sql);
        failed += run_lanes(true, 1);
    }
    failed += run_lanes(false, lanes);
    if (has_server)
        failed += cmocka_run_group_tests_name(name, after, NULL, NULL);
    return failed;
}

static size_t choose(struct job *jobs, char **names, int count)
{
    size_t number = 0;

    for (size_t i = 0; i < DATABASES; i++) {
        bool wanted = count == 0;

        for (int k = 0; k < count; k++)
            wanted = wanted || strcmp(names[k], databases[i].name) == 0;
        if (!wanted)
            continue;
        jobs[number] = (struct job){.run = run_database};
        jobs[number].lane.database = &databases[i];
        number++;
    }
    return number;
}

int main(int argc, char **argv)
{
    struct job jobs[DATABASES];
    size_t count;
    int failed;
    int option;

    if (argc > 2 && strcmp(argv[1], "--holder") == 0)
        return holder_main(argv);
    while ((option = getopt(argc, argv, "t:j:c:")) != -1) {
        if (option == 't')
            cmocka_set_test_filter(optarg);
        else if (option == 'j')
            lanes = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'c')
            clock_file = optarg;
        else
            return 2;
    }
    if (clock_file != NULL)
        groups = clock_groups;
    if (lanes < 1 || lanes > LANES_MAX)
        return 2;
    (void)signal(SIGALRM, on_signal);
    (void)signal(SIGTERM, on_signal);
    (void)signal(SIGINT, on_signal);
    (void)signal(SIGPIPE, SIG_IGN);
    count = choose(jobs, argv + optind, argc - optind);
    if (count == 0)
        return 2;
    failed =
        clock_file != NULL
            ? 0
            : _cmocka_run_group_tests(suite_history.name, suite_history.tests,
                                      suite_history.count, NULL, NULL);
    for (size_t i = 0; i < count; i++)
        start(&jobs[i]);
    failed += finish(jobs, count);
    return failed == 0 ? 0 : 1;
}
