/*
 * main.c - the driver suite: the contract of db/driver.h, the same tests on
 * every driver whose database the environment names
 */
#include "drivers/play.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/group.h"
#include "support/lanes.h"
#include "support/program.h"

#define TESTS_MAX 600

static struct CMUnitTest tests[TESTS_MAX];
static size_t count;

static struct start starts[TESTS_MAX];
static const struct story *story; /* of the test that is being added */

static const sqlock_layout layouts[SQLOCK_LAYOUTS] = {
    SQLOCK_LAYOUT_SQLOCK, SQLOCK_LAYOUT_SPRING7, SQLOCK_LAYOUT_SPRING6};
static const char *const layout_names[SQLOCK_LAYOUTS] = {"sqlock", "spring7",
                                                         "spring6"};
static bool is_by_layout;

static void add(const char *name, CMUnitTestFunction function)
{
    struct CMUnitTest *test = &tests[count];
    char *full = NULL;

    if (count == TESTS_MAX)
        abort();
    if (asprintf(&full, "%s: %s%s%s", subject.database->name,
                 is_by_layout ? layout_names[subject.layout] : "",
                 is_by_layout ? ": " : "", name) < 0)
        abort();
    test->name = full;
    test->test_func = function;
    test->setup_func = test_open;
    test->teardown_func = test_close;
    starts[count] = (struct start){subject.layout, story};
    test->initial_state = &starts[count++];
}

/* Add the stories of the tables for the layout. */
static void add_stories(void)
{
    const struct story *all;
    size_t stories = stories_read(&all);

    for (size_t i = 0; i < stories; i++) {
        char name[160];

        if ((all[i].databases & subject.database->bit) == 0 ||
            (all[i].layouts & 1U << subject.layout) == 0)
            continue;
        (void)snprintf(name, sizeof name, "%s", all[i].title);
        for (char *c = name; *c != '\0'; c++)
            *c = isalnum((unsigned char)*c) ? *c : '_';
        story = &all[i];
        add(name, test_play);
    }
    story = NULL;
}

static int run_on(const struct database *database)
{
    struct group group = {
        .name = database->name,
        .tests = tests,
        .open = suite_open,
        .close = suite_close,
        .test_seconds = TEST_SECONDS,
    };
    int failures;

    subject.database = database;
    count = 0;
    subject.layout = SQLOCK_LAYOUT_SQLOCK;
    is_by_layout = false;
    add_vtable_tests(add);
    add_value_tests(add);
    add_transaction_tests(add);
    add_limit_tests(add);
    add_error_tests(add);
    add_bell_tests(add);
    if (database->bit == ON_SQLITE) {
        add_sqlite_url_tests(add);
        add_sqlite_fork_tests(add);
        add_sqlite_deadline_tests(add);
        add_sqlite_turn_tests(add);
        add_sqlite_error_tests(add);
        add_sqlite_identity_tests(add);
        add_sqlite_bell_tests(add);
        add_sqlite_tests(add);
    }
    if (database->bit == ON_MYSQL)
        add_mysql_bell_tests(add);
    is_by_layout = true;
    for (size_t i = 0; i < SQLOCK_LAYOUTS; i++) {
        subject.layout = layouts[i];
        add_stories();
        add_statement_tests(add);
        add_ticket_tests(add);
        add_race_tests(add);
        add_many_tests(add);
    }
    group.count = count;
    failures = group_run(&group);
    for (size_t i = 0; i < count; i++) {
        /* allocated by asprintf() in add() */
        void *name;

        memcpy(&name, &tests[i].name, sizeof name);
        free(name);
    }
    return failures;
}

static int run_lane(const struct lane *lane)
{
    return run_on(lane->database);
}

int main(int argc, char **argv)
{
    static const struct program program = {
        .name = "drivers",
        .about = "the contract of db/driver.h, on each driver",
        .databases = ON_ALL,
    };
    static const struct lanes lanes = {.count = 1, .run = run_lane};

    program_read(&program, argc, argv);
    if (!program_lists())
        return lanes_run(&lanes);
    for (size_t i = 0; i < DATABASES; i++)
        if (program_wants_database(&databases[i]))
            (void)run_on(&databases[i]);
    return 0;
}
