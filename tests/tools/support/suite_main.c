/*
 * suite_main.c - see suite_main.h
 */
#include "suite_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "group.h"
#include "program.h"
#include "server.h"
#include "tap.h"

static const struct suite_main *suite;
static char *only_layout;
static int lane_count;

/* The database and the layout of the group that runs next, and its fixture. */
static const struct lane *group_lane;
static sqlock_layout group_layout;
static struct fixture fixture;
static const struct test *running;

static int open_group(void **state)
{
    int rc = fixture_open(&fixture, group_lane->database, group_layout);

    (void)state;
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

/* Run the test that begin_test() has begun; or skip it if it is a
 * TEST_OF_ROWS() and the database refuses row locks, which the conformance
 * suite checks. */
static void call_body(void **state)
{
    unsigned rounds = running->rounds > 0 ? running->rounds : 1;

    if (running->locks_rows &&
        fixture_gives(&fixture).row_locks == SQLOCK_SUPPORT_REFUSED)
        skip_or_fail("row locks are refused on this database");
    for (unsigned i = 0; i < check_scale(1, rounds); i++) {
        if (i > 0)
            fixture_next(&fixture);
        running->body(*state);
    }
}

/* Return how long a test may take, as long as a machine is not busy. */
static unsigned seconds(void)
{
    const char *given = getenv("SQLOCK_TEST_SECONDS");
    unsigned test =
        suite->test_seconds != 0 ? suite->test_seconds : TEST_SECONDS;

    if (given != NULL)
        return (unsigned)strtoul(given, NULL, 10);
    return check_scale(
        test, suite->campaign_seconds != 0 ? suite->campaign_seconds : test);
}

/* cmocka passes the struct test in *state, and takes from there the fixture
 * that it passes to the test. */
static int begin_test(void **state)
{
    running = *state;
    *state = &fixture;
    lanes_running = running->name;
    (void)alarm(SLOWNESS * seconds());
    fixture_next(&fixture);
    fixture.data = running->data;
    if (suite->begin != NULL)
        suite->begin(&fixture);
    tap_reset();
    return 0;
}

static int end_test(void **state)
{
    (void)state;
    check_row_end();
    server_go_on();
    tap_reset();
    (void)alarm(0);
    return 0;
}

static bool is_contended(const struct test *test, const struct suite_main *of,
                         const struct lane *lane, sqlock_layout layout)
{
    unsigned layouts = test->layouts != 0 ? test->layouts : of->layouts;

    if (layouts == 0)
        layouts = IN_SQLOCK;
    return test->set == of->set &&
           (test->databases == 0 ||
            (test->databases & lane->database->bit) != 0) &&
           (layouts & (1u << layout)) != 0 &&
           test->stops_server == lane->stops_server;
}

size_t suite_collect(struct CMUnitTest *out, const struct suite_main *of,
                     const struct lane *lane, sqlock_layout layout,
                     unsigned *turn)
{
    size_t count = 0;

    for (const struct test *test = tests_first(); test != NULL;
         test = test->next) {
        if (!is_contended(test, of, lane, layout) ||
            (*turn)++ % lane->of != lane->number)
            continue;
        if (count == TESTS_MAX)
            abort();
        out[count].name = test->name;
        /* cmocka passes `test` to begin_test(), which only reads *test. */
        memcpy(&out[count].initial_state, &test, sizeof test);
        count++;
    }
    return count;
}

static int run_layout(unsigned *turn)
{
    static struct CMUnitTest tests[TESTS_MAX];
    char name[128];
    const struct group group = {
        .name = name,
        .tests = tests,
        .count = suite_collect(tests, suite, group_lane, group_layout, turn),
        .open = open_group,
        .close = close_group,
    };

    (void)snprintf(name, sizeof name, "%s %s %s %u", suite->name,
                   group_lane->database->name, layout_name(group_layout),
                   group_lane->number + 1);
    for (size_t i = 0; i < group.count; i++) {
        tests[i].test_func = call_body;
        tests[i].setup_func = begin_test;
        tests[i].teardown_func = end_test;
    }
    return group_run(&group);
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

static void list_tests(void)
{
    for (const struct test *test = tests_first(); test != NULL;
         test = test->next)
        if (test->set == suite->set && program_wants(test->name))
            printf("%s\n", test->name);
}

/* Return whether that is the name of a layout. */
static bool is_layout(const char *name)
{
    for (int layout = 0; layout < SQLOCK_LAYOUTS; layout++)
        if (strcmp(name, layout_name((sqlock_layout)layout)) == 0)
            return true;
    return false;
}

static unsigned count_lanes(void)
{
    const char *given = getenv("SQLOCK_TEST_LANES");

    if (lane_count != 0)
        return (unsigned)lane_count;
    if (given != NULL)
        return (unsigned)strtoul(given, NULL, 10);
    return suite->lanes != 0 ? suite->lanes : 1;
}

int suite_main(const struct suite_main *main_suite, int argc, char **argv)
{
    static const struct poptOption options[] = {
        {"layout", 'l', POPT_ARG_STRING, &only_layout, 0,
         "Use tables of this layout only: sqlock, spring7 or spring6",
         "LAYOUT"},
        {"lanes", 'j', POPT_ARG_INT, &lane_count, 0,
         "Spread the tests of each database over so many processes", "N"},
        POPT_TABLEEND,
    };
    struct program program = {
        .name = main_suite->name,
        .about = main_suite->about,
        .databases =
            main_suite->databases != 0 ? main_suite->databases : ON_ALL,
        .options = options,
    };
    struct lanes lanes = {
        .stops_servers = main_suite->stops_servers,
        .run = run_lane,
    };

    suite = main_suite;
    program_read(&program, argc, argv);
    lanes.count = count_lanes();
    if (only_layout != NULL && !is_layout(only_layout)) {
        (void)fprintf(stderr, "%s: there is no layout %s\n", suite->name,
                      only_layout);
        return 2;
    }
    if (program_lists()) {
        list_tests();
        return 0;
    }
    return lanes_run(&lanes);
}
