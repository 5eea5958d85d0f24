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

static const char *const layout_names[SQLOCK_LAYOUTS] = {"sqlock", "spring7",
                                                         "spring6"};

static void call_body(void **state)
{
    struct fixture *f = *state;

    f->start->body(f);
}

/* Add a test, whose name says the layout if it runs on several. */
static void add(const char *name, const struct start *start, bool has_layout)
{
    struct CMUnitTest *test = &tests[count];
    char *full = NULL;

    if (count == TESTS_MAX)
        abort();
    if (asprintf(&full, "%s: %s%s%s", subject.database->name,
                 has_layout ? layout_names[start->layout] : "",
                 has_layout ? ": " : "", name) < 0)
        abort();
    test->name = full;
    test->test_func = call_body;
    test->setup_func = test_open;
    test->teardown_func = test_close;
    starts[count] = *start;
    test->initial_state = &starts[count++];
}

/* Add the stories of the tables for the layout. */
static void add_stories(sqlock_layout layout)
{
    const struct story *all;
    size_t stories = stories_read(&all);

    for (size_t i = 0; i < stories; i++) {
        const struct start start = {layout, &all[i], play_story};
        char name[160];

        if ((all[i].databases & subject.database->bit) == 0 ||
            (all[i].layouts & 1U << layout) == 0)
            continue;
        (void)snprintf(name, sizeof name, "%s", all[i].title);
        for (char *c = name; *c != '\0'; c++)
            *c = isalnum((unsigned char)*c) ? *c : '_';
        add(name, &start, true);
    }
}

/* Add the tests that name the layout; none: those that name none. */
static void add_tests(const sqlock_layout *layout)
{
    for (const struct test *test = tests_first(); test != NULL;
         test = test->next) {
        const struct start start = {
            layout != NULL ? *layout : SQLOCK_LAYOUT_SQLOCK, NULL, test->body};

        if ((test->databases == 0 ||
             (test->databases & subject.database->bit) != 0) &&
            (layout != NULL ? (test->layouts & 1U << *layout) != 0
                            : test->layouts == 0))
            add(test->name + strlen("test_"), &start, layout != NULL);
    }
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
    add_tests(NULL);
    for (int i = 0; i < SQLOCK_LAYOUTS; i++) {
        const sqlock_layout layout = (sqlock_layout)i;

        add_stories(layout);
        add_tests(&layout);
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
