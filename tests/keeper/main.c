/*
 * main.c - kept leases, the signal of their loss, and many locks at a time, on
 * every database that the environment names
 *
 *     keeper [-t PATTERN] [-j LANES] [postgres] [mysql] [sqlite]
 *
 * The databases run side by side, and the tests of each spread over several
 * processes ("lanes"), which mostly wait; a lane has a lock table and, on
 * SQLite, a file of its own.
 */
#include "keeper.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/server.h"
#include "support/tap.h"

#define TESTS_MAX 200
#define LANES_MAX 8
#define TEST_SECONDS 300 /* until a test is taken to hang */

static const struct topic *const topics[] = {
    &topic_crowd, &topic_order,    &topic_ending, &topic_flight, &topic_keep,
    &topic_told,  &topic_stranger, &topic_outage, &topic_steal,  &topic_clock,
    &topic_many,  &topic_pause,    &topic_late,
};

struct lane {
    const struct database *database;
    unsigned number; /* of so many */
    unsigned of;
    FILE *output;
    pid_t pid;
};

static struct lane lane;
static sqlock_layout lane_layout;
static struct fixture fixture;
static unsigned lanes = 4;

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

static int open_group(void **state)
{
    *state = &fixture;
    return fixture_open(&fixture, lane.database, lane_layout);
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
    (void)alarm(TEST_SECONDS * (check_scale(0, 1) != 0 ? 20 : 1));
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

/* Those of the layout that are this lane's turn. */
static size_t collect(struct CMUnitTest *out, unsigned *turn)
{
    size_t count = 0;

    for (size_t i = 0; i < sizeof topics / sizeof *topics; i++)
        for (size_t k = 0; k < topics[i]->count; k++) {
            const struct test *test = &topics[i]->tests[k];

            if ((test->databases & lane.database->bit) == 0 ||
                (test->layouts & (1u << lane_layout)) == 0 ||
                (*turn)++ % lane.of != lane.number)
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

/* A file of this lane's own: SQLite has one writer at a time. */
static void choose_file(void)
{
    char url[1024];

    if (lane.database->bit != ON_SQLITE)
        return;
    (void)snprintf(url, sizeof url, "%s-lane%u", database_url(lane.database),
                   lane.number);
    (void)setenv("SQLOCK_TEST_SQLITE_URL", url, 1);
}

static int run_lane(void)
{
    static struct CMUnitTest tests[TESTS_MAX];
    unsigned turn = 0;
    int failed = 0;

    choose_file();
    for (int layout = 0; layout < SQLOCK_LAYOUTS; layout++) {
        char name[64];
        size_t count;

        lane_layout = (sqlock_layout)layout;
        count = collect(tests, &turn);
        (void)snprintf(name, sizeof name, "keeper %s %s %u",
                       lane.database->name, layout_name(lane_layout),
                       lane.number + 1);
        print_message("%s\n", name);
        if (count > 0)
            failed += _cmocka_run_group_tests(name, tests, count, open_group,
                                              close_group);
    }
    return failed;
}

static void test_database_is_named(void **state)
{
    (void)state;
    skip_or_fail("SQLOCK_TEST_%s_URL is not set", lane.database->variable);
}

static int run_missing(void)
{
    static const struct CMUnitTest missing[] = {
        cmocka_unit_test(test_database_is_named),
    };

    return _cmocka_run_group_tests(lane.database->name, missing, 1, NULL, NULL);
}

/* In a process of its own, its output in a file. */
static void start(struct lane *new_lane)
{
    int failed;

    (void)fflush(NULL);
    new_lane->output = tmpfile();
    if (new_lane->output == NULL)
        abort();
    new_lane->pid = fork();
    if (new_lane->pid != 0)
        return;
    lane = *new_lane;
    if (dup2(fileno(lane.output), STDOUT_FILENO) < 0 ||
        dup2(fileno(lane.output), STDERR_FILENO) < 0)
        _exit(98);
    failed = database_url(lane.database) == NULL ? run_missing() : run_lane();
    exit(failed == 0 ? 0 : 1);
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

/* Wait for one; whether it succeeded. */
static bool finish(struct lane *done)
{
    int status = -1;

    if (done->pid > 0)
        (void)waitpid(done->pid, &status, 0);
    show(done->output);
    if (status != 0)
        printf("%s ended with status %d\n", done->database->name, status);
    return status == 0;
}

static size_t choose(struct lane *chosen, char **names, int count)
{
    size_t number = 0;

    for (size_t i = 0; i < DATABASES; i++) {
        bool wanted = count == 0;
        unsigned of = database_url(&databases[i]) == NULL ? 1 : lanes;

        for (int k = 0; k < count; k++)
            wanted = wanted || strcmp(names[k], databases[i].name) == 0;
        for (unsigned k = 0; wanted && k < of; k++)
            chosen[number++] =
                (struct lane){.database = &databases[i], .number = k, .of = of};
    }
    return number;
}

int main(int argc, char **argv)
{
    struct lane chosen[DATABASES * LANES_MAX];
    bool ok = true;
    size_t count;
    int option;

    if (argc > 2 && strcmp(argv[1], "--paused") == 0)
        return pause_main(argv + 2);
    while ((option = getopt(argc, argv, "t:j:")) != -1) {
        if (option == 't')
            cmocka_set_test_filter(optarg);
        else if (option == 'j')
            lanes = (unsigned)strtoul(optarg, NULL, 10);
        else
            return 2;
    }
    if (lanes < 1 || lanes > LANES_MAX)
        return 2;
    (void)signal(SIGALRM, on_signal);
    (void)signal(SIGTERM, on_signal);
    (void)signal(SIGINT, on_signal);
    (void)signal(SIGPIPE, SIG_IGN);
    count = choose(chosen, argv + optind, argc - optind);
    for (size_t i = 0; i < count; i++)
        start(&chosen[i]);
    for (size_t i = 0; i < count; i++)
        ok = finish(&chosen[i]) && ok;
    return ok && count > 0 ? 0 : 1;
}
