/*
 * main.c - runs every test on every database that the environment names
 *
 *     waiting [-t PATTERN] [-l LAYOUT] [postgres] [mysql] [sqlite]
 */
#include "suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/tap.h"

#define TESTS_MAX 200
#define CAMPAIGN_SECONDS 5000

static const struct topic *const topics[] = {
    &topic_handoff, &topic_cancel,     &topic_queue,  &topic_crowd,
    &topic_request, &topic_standstill, &topic_hollow, &topic_stranger,
    &topic_silence, &topic_outage,
};

static const struct database *group_database;
static sqlock_layout group_layout;
static struct fixture fixture;

static void on_alarm(int number)
{
    static const char text[] = "[  FAILED  ] a test hung\n";

    (void)number;
    if (write(STDOUT_FILENO, text, sizeof text - 1) < 0)
        _exit(98);
    _exit(99);
}

static int open_group(void **state)
{
    *state = &fixture;
    return fixture_open(&fixture, group_database, group_layout);
}

static int close_group(void **state)
{
    (void)state;
    fixture_close(&fixture);
    return 0;
}

static int begin_test(void **state)
{
    *state = &fixture;
    (void)alarm(check_scale(TEST_SECONDS, CAMPAIGN_SECONDS));
    fixture_next(&fixture);
    tap_reset();
    return 0;
}

static int end_test(void **state)
{
    (void)state;
    tap_reset();
    (void)alarm(0);
    return 0;
}

static size_t collect(struct CMUnitTest *out)
{
    size_t count = 0;

    for (size_t i = 0; i < sizeof topics / sizeof *topics; i++)
        for (size_t k = 0; k < topics[i]->count; k++) {
            const struct test *test = &topics[i]->tests[k];

            if ((test->databases & group_database->bit) == 0 ||
                (test->layouts & (1u << group_layout)) == 0)
                continue;
            if (count == TESTS_MAX)
                abort();
            out[count++] = (struct CMUnitTest){
                .name = test->name,
                .test_func = test->function,
                .setup_func = begin_test,
                .teardown_func = end_test,
            };
        }
    return count;
}

static void test_database_is_named(void **state)
{
    (void)state;
    skip_or_fail("SQLOCK_TEST_%s_URL is not set", group_database->variable);
}

static int run_layout(void)
{
    static struct CMUnitTest tests[TESTS_MAX];
    char name[64];
    size_t count = collect(tests);

    (void)snprintf(name, sizeof name, "waiting %s %s", group_database->name,
                   layout_name(group_layout));
    print_message("%s\n", name);
    return _cmocka_run_group_tests(name, tests, count, open_group, close_group);
}

static int run_database(const struct database *database,
                        const char *only_layout)
{
    static const struct CMUnitTest missing[] = {
        cmocka_unit_test(test_database_is_named),
    };
    int failed = 0;

    group_database = database;
    if (database_url(database) == NULL)
        return _cmocka_run_group_tests(database->name, missing, 1, NULL, NULL);
    for (int layout = 0; layout < SQLOCK_LAYOUTS; layout++) {
        group_layout = (sqlock_layout)layout;
        if (only_layout == NULL ||
            strcmp(only_layout, layout_name(group_layout)) == 0)
            failed += run_layout();
    }
    return failed;
}

int main(int argc, char **argv)
{
    const char *only_layout = NULL;
    int failed = 0;
    int option;

    if (argc == 6 &&
        (strcmp(argv[1], "--hold") == 0 || strcmp(argv[1], "--wait") == 0))
        return be_process(argv + 2, strcmp(argv[1], "--hold") == 0);
    while ((option = getopt(argc, argv, "t:l:")) != -1) {
        if (option == 't')
            cmocka_set_test_filter(optarg);
        else if (option == 'l')
            only_layout = optarg;
        else
            return 2;
    }
    (void)signal(SIGALRM, on_alarm);
    for (size_t i = 0; i < DATABASES; i++) {
        bool wanted = optind == argc;

        for (int k = optind; k < argc; k++)
            wanted = wanted || strcmp(argv[k], databases[i].name) == 0;
        if (wanted)
            failed += run_database(&databases[i], only_layout);
    }
    return failed == 0 ? 0 : 1;
}
