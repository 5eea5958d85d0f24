/*
 * main.c - faults of networks, servers, files and processes, on every database
 * that the environment names
 *
 *     fault [-j LANES] [-c CLOCK] [of program.h]... [postgres] [mysql] [sqlite]
 *
 * Tests that stop a server run first and alone; the rest run in lanes (see
 * support/lanes.h), each with a lock table and a proxy.  With -c only the tests
 * of a server's clock run; the server reads its clock from the file CLOCK.
 */
#include "fault.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "support/group.h"
#include "support/program.h"

#define CELLS_MAX 512

static struct suite_main suite = {
    .name = "fault",
};

/* -------------------------------------------------------------- one lane -- */

static const struct lane *lane;
static size_t fds; /* number of them when the lane began */
static size_t threads;

/* Close the stage: its descriptors and threads must be gone. */
static void test_no_descriptor_and_no_thread_is_left(void **state)
{
    (void)state;
    stage_close();
    assert_becomes_true(check_entries("/proc/self/fd") <= fds, PATIENCE_MS);
    assert_becomes_true(check_entries("/proc/self/task") <= threads,
                        PATIENCE_MS);
}

static size_t add_cells(struct CMUnitTest *tests, struct cell *cells)
{
    size_t total = clock_file != NULL
                       ? 0
                       : matrix_cells(cells, CELLS_MAX, lane->database,
                                      lane->stops_server);
    size_t count = 0;

    for (size_t i = 0; i < total; i++)
        if (i % lane->of == lane->number)
            tests[count++] = (struct CMUnitTest){
                .name = cells[i].name,
                .test_func = test_cell,
                .initial_state = &cells[i],
            };
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

/* Run a test that suite_collect() has found. */
static void call_body(void **state)
{
    const struct test *test = *state;

    test->body(&stage.fixture);
}

static int open_lane(void **state)
{
    (void)state;
    start_own_threads();
    fds = check_entries("/proc/self/fd");
    threads = check_entries("/proc/self/task");
    return stage_open(lane->database);
}

static int run_lane(const struct lane *this_lane)
{
    static struct cell cells[CELLS_MAX];
    static struct CMUnitTest tests[CELLS_MAX + TESTS_MAX + 1];
    unsigned turn = 0;
    char name[96];
    struct group group = {.name = name, .tests = tests, .open = open_lane};
    size_t cell_count;
    size_t count;

    lane = this_lane;
    (void)snprintf(name, sizeof name, "fault %s%s %u", lane->database->name,
                   lane->stops_server ? " (stopped)" : "", lane->number + 1);
    cell_count = add_cells(tests, cells);
    count = cell_count + suite_collect(&tests[cell_count], &suite, lane,
                                       SQLOCK_LAYOUT_SQLOCK, &turn);
    for (size_t i = 0; i < count; i++) {
        if (i >= cell_count)
            tests[i].test_func = call_body;
        tests[i].setup_func = stage_begin;
        tests[i].teardown_func = stage_end;
    }
    tests[count++] = (struct CMUnitTest){
        .name = "test_no_descriptor_and_no_thread_is_left",
        .test_func = test_no_descriptor_and_no_thread_is_left,
    };
    group.count = count;
    return group_run(&group);
}

/* ------------------------------------------------ sessions of a database -- */

static struct {
    const struct database *database;
    struct sql sql;
    int64_t sessions; /* before the lanes */
} census;

static int64_t count_sessions(void)
{
    return sql_integer(&census.sql,
                       census.database->bit == ON_POSTGRES
                           ? "SELECT count(*) FROM pg_stat_activity WHERE"
                             " backend_type = 'client backend'"
                           : "SELECT count(*) FROM information_schema."
                             "processlist WHERE command <> 'Daemon'");
}

static int open_census(void **state)
{
    (void)state;
    return sql_open(&census.sql, census.database,
                    database_admin_url(census.database));
}

static int close_census(void **state)
{
    (void)state;
    sql_close(&census.sql);
    return 0;
}

static void test_count_sessions_before(void **state)
{
    (void)state;
    census.sessions = count_sessions();
    assert_true(census.sessions >= 1);
}

static void test_no_session_is_left(void **state)
{
    (void)state;
    assert_becomes_true(count_sessions() <= census.sessions, PATIENCE_MS);
}

/* Return whether to count a database's sessions before and after the lanes.
 * This process counts, not a child, to have the first count at the end. */
static bool counts_sessions_of(const struct database *database)
{
    return database->bit != ON_SQLITE &&
           program_wants("test_no_session_is_left");
}

static int count_before(const struct database *database)
{
    static const struct CMUnitTest before[] = {
        cmocka_unit_test(test_count_sessions_before),
    };

    census.database = database;
    return counts_sessions_of(database)
               ? cmocka_run_group_tests_name(database->name, before,
                                             open_census, close_census)
               : 0;
}

static int count_after(const struct database *database)
{
    static const struct CMUnitTest after[] = {
        cmocka_unit_test(test_no_session_is_left),
    };

    return counts_sessions_of(database)
               ? cmocka_run_group_tests_name(database->name, after, open_census,
                                             close_census)
               : 0;
}

/* ----------------------------------------------------------- the program -- */

static const struct lanes with_everything = {
    .count = 6,
    .stops_servers = true,
    .run = run_lane,
    .before = count_before,
    .after = count_after,
};
static const struct lanes with_clock = {.count = 1, .run = run_lane};

/* List the tests of all databases that are selected, each test once. */
static void list_tests(void)
{
    for (size_t i = 0; i < DATABASES; i++)
        for (int stops = 0; stops < 2; stops++) {
            const struct lane one = {
                .database = &databases[i], .of = 1, .stops_server = stops != 0};

            if (program_wants_database(&databases[i]))
                (void)run_lane(&one);
        }
}

int main(int argc, char **argv)
{
    static int lane_count;
    static const struct poptOption options[] = {
        {"lanes", 'j', POPT_ARG_INT, &lane_count, 0,
         "Spread the tests of each database over so many processes", "N"},
        {"clock", 'c', POPT_ARG_STRING, &clock_file, 0,
         "Run the tests of a server's clock, which this file sets", "FILE"},
        POPT_TABLEEND,
    };
    static const struct program program = {
        .name = "fault",
        .about = "each operation under each fault of network, server and "
                 "process",
        .databases = ON_ALL,
        .options = options,
    };
    struct lanes lanes = with_everything;

    if (argc > 2 && strcmp(argv[1], "--holder") == 0)
        return holder_main(argv);
    program_read(&program, argc, argv);
    if (lane_count != 0)
        lanes.count = (unsigned)lane_count;
    if (clock_file != NULL) {
        suite.set = SET_CLOCK;
        lanes = with_clock;
    }
    if (program_lists()) {
        list_tests();
        return 0;
    }
    return lanes_run(&lanes);
}
