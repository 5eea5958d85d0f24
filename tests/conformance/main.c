/*
 * main.c - runs every test on every database that the environment names, and on
 * each on the three table layouts
 *
 *     conformance [-t PATTERN] [-l LAYOUT] [postgres] [mysql] [sqlite]
 *
 * Databases run side by side, a process each, whose output is shown when it
 * ends; a single one runs in this process.
 */
#include "conformance.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/server.h"
#include "support/tap.h"

#define TESTS_MAX 400
#define TEST_SECONDS 150 /* until a test is taken to hang */

static const struct topic *const topics[] = {
    &topic_exclusion,  &topic_lease,   &topic_lost,  &topic_waiting,
    &topic_ownership,  &topic_handles, &topic_keys,  &topic_tokens,
    &topic_statements, &topic_spring,  &topic_admin, &topic_reap,
    &topic_schema,     &topic_access,  &topic_fork,  &topic_faults,
    &topic_clocks,     &topic_races,
};

/* What the group that is to run now works on. */
static const struct database *group_database;
static sqlock_layout group_layout;
static struct fixture fixture;

static const char *only_layout;

static void write_text(const char *text)
{
    if (write(STDOUT_FILENO, text, strlen(text)) < 0)
        return;
}

/* A test hangs: say so, and leave no server stopped. */
static void on_alarm(int number)
{
    (void)number;
    server_go_on();
    write_text("[  FAILED  ] a test hung\n");
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
    (void)alarm(TEST_SECONDS);
    fixture_next(&fixture);
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

static size_t collect(struct CMUnitTest *out)
{
    size_t count = 0;
    size_t i;
    size_t k;

    for (i = 0; i < sizeof topics / sizeof *topics; i++)
        for (k = 0; k < topics[i]->count; k++) {
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

    (void)snprintf(name, sizeof name, "conformance %s %s", group_database->name,
                   layout_name(group_layout));
    print_message("%s\n", name);
    return _cmocka_run_group_tests(name, tests, count, open_group, close_group);
}

static int run_database(const struct database *database)
{
    static const struct CMUnitTest missing[] = {
        cmocka_unit_test(test_database_is_named),
    };
    int failed = 0;
    int layout;

    group_database = database;
    if (database_url(database) == NULL)
        return _cmocka_run_group_tests(database->name, missing, 1, NULL, NULL);
    for (layout = 0; layout < SQLOCK_LAYOUTS; layout++) {
        group_layout = (sqlock_layout)layout;
        if (only_layout == NULL ||
            strcmp(only_layout, layout_name(group_layout)) == 0)
            failed += run_layout();
    }
    return failed;
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

/* In a process of its own, its output in a file. */
static pid_t start(const struct database *database, FILE *output)
{
    pid_t pid;

    (void)fflush(NULL);
    pid = fork();
    if (pid != 0)
        return pid;
    if (dup2(fileno(output), STDOUT_FILENO) < 0 ||
        dup2(fileno(output), STDERR_FILENO) < 0)
        _exit(98);
    exit(run_database(database) == 0 ? 0 : 1);
}

static int run_side_by_side(const struct database *const *chosen, size_t count)
{
    FILE *outputs[DATABASES];
    pid_t pids[DATABASES];
    int failed = 0;
    size_t i;

    for (i = 0; i < count; i++) {
        outputs[i] = tmpfile();
        if (outputs[i] == NULL)
            abort();
        pids[i] = start(chosen[i], outputs[i]);
    }
    for (i = 0; i < count; i++) {
        int status = -1;

        if (pids[i] < 0 || waitpid(pids[i], &status, 0) < 0 || status != 0)
            failed = 1;
        show(outputs[i]);
        if (status != 0)
            printf("%s ended with status %d\n", chosen[i]->name, status);
    }
    return failed;
}

static size_t choose(const struct database **chosen, char **names, int count)
{
    size_t number = 0;
    size_t i;
    int k;

    for (i = 0; i < DATABASES; i++) {
        bool wanted = count == 0;

        for (k = 0; k < count; k++)
            wanted = wanted || strcmp(names[k], databases[i].name) == 0;
        if (wanted)
            chosen[number++] = &databases[i];
    }
    return number;
}

int main(int argc, char **argv)
{
    const struct database *chosen[DATABASES];
    size_t count;
    int option;

    while ((option = getopt(argc, argv, "t:l:")) != -1) {
        if (option == 't')
            cmocka_set_test_filter(optarg);
        else if (option == 'l')
            only_layout = optarg;
        else
            return 2;
    }
    (void)signal(SIGALRM, on_alarm);
    count = choose(chosen, argv + optind, argc - optind);
    if (count == 1)
        return run_database(chosen[0]) == 0 ? 0 : 1;
    return count == 0 ? 2 : run_side_by_side(chosen, count);
}
