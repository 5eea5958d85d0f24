/*
 * suite_main.c - see suite_main.h
 */
#include "suite_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server.h"
#include "tap.h"

static const struct suite_main *suite;
static const char *only_layout;

/* What the group that is to run now works on. */
static const struct lane *group_lane;
static sqlock_layout group_layout;
static struct fixture fixture;
static const struct test *running;

/* Without a state of its own, which cmocka would prefer to the tests'. */
static int open_group(void **state)
{
    int rc;

    (void)state;
    rc = fixture_open(&fixture, group_lane->database, group_layout);
    if (rc == 0 && suite->open != NULL)
        suite->open(&fixture);
    return rc;
}

static int close_group(void **state)
{
    (void)state;
    if (suite->close != NULL)
        suite->close(&fixture);
    fixture_close(&fixture);
    return 0;
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

static bool is_wanted(const struct test *test, unsigned layouts,
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

            if (!is_wanted(test, of->layouts, lane, layout) ||
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

static int run_layout(unsigned *turn)
{
    static struct CMUnitTest tests[TESTS_MAX];
    char name[96];
    size_t count = suite_collect(tests, suite, group_lane, group_layout, turn);

    if (count == 0)
        return 0;
    for (size_t i = 0; i < count; i++) {
        const struct test *test = tests[i].initial_state;

        tests[i].setup_func = begin_test;
        tests[i].teardown_func = end_test;
        if (test->locks_rows)
            tests[i].test_func = run_test_of_rows;
    }
    (void)snprintf(name, sizeof name, "%s %s %s %u", suite->name,
                   group_lane->database->name, layout_name(group_layout),
                   group_lane->number + 1);
    print_message("%s\n", name);
    return _cmocka_run_group_tests(name, tests, count, open_group, close_group);
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
            cmocka_set_test_filter(optarg);
        else if (option == 'l')
            only_layout = optarg;
        else if (option == 'j')
            lanes.count = (unsigned)strtoul(optarg, NULL, 10);
        else
            return 2;
    }
    return lanes_run(&lanes, argv + optind, argc - optind);
}
