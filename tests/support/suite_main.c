/*
 * suite_main.c - see suite_main.h
 */
#include "suite_main.h"

#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server.h"
#include "tap.h"

static const struct suite_main *suite;
static const char *only_layout;
static const char *only_tests; /* a pattern */

/* What the group that is to run now works on. */
static const struct lane *group_lane;
static sqlock_layout group_layout;
static struct fixture fixture;
static const struct test *running;

static int open_group(void)
{
    int rc = fixture_open(&fixture, group_lane->database, group_layout);

    if (rc == 0 && suite->open != NULL)
        suite->open(&fixture);
    return rc;
}

static void close_group(void)
{
    if (suite->close != NULL)
        suite->close(&fixture);
    fixture_close(&fixture);
}

/* A test of rows where the database refuses to lock any says so and is over;
 * that it refuses is for the conformance suite to see. */
static void run_test_of_rows(void **state)
{
    if (fixture_gives(&fixture).row_locks == SQLOCK_SUPPORT_REFUSED)
        skip_or_fail("row locks are refused on this database");
    running->function(state);
}

/* cmocka gives the test, and takes what the test is to be given. */
static int begin_test(void **state)
{
    running = *state;
    *state = &fixture;
    (void)alarm(SLOWNESS *
                check_scale(suite->test_seconds, suite->campaign_seconds));
    fixture_next(&fixture);
    if (suite->begin != NULL)
        suite->begin(&fixture);
    tap_reset();
    return 0;
}

static int end_test(void **state)
{
    (void)state;
    server_go_on();
    tap_reset();
    (void)alarm(0);
    return 0;
}

static bool is_contended(const struct test *test, unsigned layouts,
                         const struct lane *lane, sqlock_layout layout)
{
    if (test->layouts != 0)
        layouts = test->layouts;
    return (test->databases & lane->database->bit) != 0 &&
           (layouts & (1u << layout)) != 0 &&
           test->stops_server == lane->stops_server;
}

size_t suite_collect(struct CMUnitTest *out, const struct suite_main *of,
                     const struct lane *lane, sqlock_layout layout,
                     unsigned *turn)
{
    size_t count = 0;

    for (const struct topic *const *topic = of->topics; *topic != NULL; topic++)
        for (size_t i = 0; i < (*topic)->count; i++) {
            const struct test *test = &(*topic)->tests[i];

            if (!is_contended(test, of->layouts, lane, layout) ||
                (*turn)++ % lane->of != lane->number)
                continue;
            if (count == TESTS_MAX)
                abort();
            out[count] = (struct CMUnitTest){.name = test->name,
                                             .test_func = test->function};
            /* cmocka hands it to begin_test(), which only reads it. */
            memcpy(&out[count].initial_state, &test, sizeof test);
            count++;
        }
    return count;
}

static void prepare(struct CMUnitTest *tests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct test *test = tests[i].initial_state;

        tests[i].setup_func = begin_test;
        tests[i].teardown_func = end_test;
        if (test->locks_rows)
            tests[i].test_func = run_test_of_rows;
    }
}

/* --- the process of a group --- */

/* A test that failed may have left a transaction open, a row locked, threads
 * that wait: the process ends with it, as they do, and those behind it run in
 * another one, with a fixture of its own. */
struct group {
    struct CMUnitTest *tests;
    size_t count;
    size_t *begun; /* shared with the process */
};

/* In the process: from the first that has not run on. */
static void run_rest(const struct group *group)
{
    if (open_group() != 0) {
        printf("[  FAILED  ] GROUP SETUP\n");
        (void)fflush(NULL);
        _exit(1);
    }
    while (*group->begun < group->count) {
        struct CMUnitTest *test = &group->tests[(*group->begun)++];

        if (_cmocka_run_group_tests(test->name, test, 1, NULL, NULL) != 0) {
            (void)fflush(NULL);
            _exit(1);
        }
    }
    close_group();
    exit(0);
}

/* How many failed: 0 or 1. */
static int run_process(const struct group *group)
{
    pid_t parent = getpid();
    int status = -1;
    pid_t pid;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent)
            _exit(98);
        run_rest(group);
    }
    if (pid > 0)
        (void)waitpid(pid, &status, 0);
    if (pid > 0 && WIFSIGNALED(status) && *group->begun > 0)
        print_message("[  FAILED  ] the test was ended by signal %d, %s\n",
                      WTERMSIG(status), strsignal(WTERMSIG(status)));
    return status != 0;
}

static int run_group(struct CMUnitTest *tests, size_t count)
{
    struct group group = {.tests = tests, .count = count};
    int failed = 0;
    size_t before;

    group.begun = mmap(NULL, sizeof *group.begun, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (group.begun == MAP_FAILED)
        abort();
    do {
        before = *group.begun;
        failed += run_process(&group);
    } while (*group.begun<count && * group.begun> before);
    (void)munmap(group.begun, sizeof *group.begun);
    return failed;
}

/* Those that the command line asks for come first; how many. */
static size_t choose(struct CMUnitTest *tests, size_t count)
{
    size_t chosen = 0;

    for (size_t i = 0; i < count; i++)
        if (only_tests == NULL || fnmatch(only_tests, tests[i].name, 0) == 0)
            tests[chosen++] = tests[i];
    return chosen;
}

static int run_layout(unsigned *turn)
{
    static struct CMUnitTest tests[TESTS_MAX];
    size_t count = suite_collect(tests, suite, group_lane, group_layout, turn);

    count = choose(tests, count);
    if (count == 0)
        return 0;
    prepare(tests, count);
    print_message("%s %s %s %u\n", suite->name, group_lane->database->name,
                  layout_name(group_layout), group_lane->number + 1);
    return run_group(tests, count);
}

static int run_lane(const struct lane *lane)
{
    unsigned turn = 0;
    int failed = 0;

    group_lane = lane;
    for (int layout = 0; layout < SQLOCK_LAYOUTS; layout++) {
        group_layout = (sqlock_layout)layout;
        if (only_layout == NULL ||
            strcmp(only_layout, layout_name(group_layout)) == 0)
            failed += run_layout(&turn);
    }
    return failed;
}

int suite_main(const struct suite_main *main_suite, int argc, char **argv)
{
    struct lanes lanes = {
        .count = main_suite->lanes,
        .stops_servers = main_suite->stops_servers,
        .run = run_lane,
    };
    int option;

    suite = main_suite;
    while ((option = getopt(argc, argv, "t:l:j:")) != -1) {
        if (option == 't')
            only_tests = optarg;
        else if (option == 'l')
            only_layout = optarg;
        else if (option == 'j')
            lanes.count = (unsigned)strtoul(optarg, NULL, 10);
        else
            return 2;
    }
    return lanes_run(&lanes, argv + optind, argc - optind);
}
