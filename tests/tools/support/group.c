/*
 * group.c - see group.h
 */
#include "group.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "program.h"
#include "test.h"

/* A test that takes longer is printed as slow. */
#define SLOW_NS INT64_C(5000000000)

#define UNITS_MAX 64 /* of a file */

/* Shared with the child process that runs the tests. */
struct progress {
    size_t begun;
    bool is_open; /* the group's fixture is open */
};

struct run {
    const struct group *group;
    struct CMUnitTest *tests; /* the selected ones */
    size_t count;
    struct progress *progress;
};

static int64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Run one test; return how many failed: 0 or 1. */
static int run_one(const struct group *group, struct CMUnitTest *test,
                   void *state)
{
    int64_t began = now_ns();
    int64_t took;
    int failed;

    if (test->initial_state == NULL)
        test->initial_state = state;
    if (group->test_seconds > 0)
        (void)alarm(SLOWNESS *
                    check_scale(group->test_seconds, 10 * group->test_seconds));
    failed = _cmocka_run_group_tests(test->name, test, 1, NULL, NULL);
    if (group->test_seconds > 0)
        (void)alarm(0);
    took = now_ns() - began;
    if (took >= SLOW_NS)
        print_message("slow: %.1f s: %s\n", (double)took / 1e9, test->name);
    return failed != 0;
}

/* Run the tests that have not run yet in this process, up to the first failure
 * unless `goes_on`; return how many failed. */
static int run_rest(const struct run *run, bool goes_on)
{
    const struct group *group = run->group;
    struct progress *progress = run->progress;
    void *state = NULL;
    int failed = 0;

    if (group->open != NULL && group->open(&state) != 0)
        return 1;
    progress->is_open = true;
    while (progress->begun < run->count && (failed == 0 || goes_on))
        failed += run_one(group, &run->tests[progress->begun++], state);
    /* After a failure, locks and rows left behind may be in the way. */
    if (failed == 0 && group->close != NULL && group->close(&state) != 0) {
        printf("[  FAILED  ] GROUP TEARDOWN\n");
        failed++;
    }
    return failed;
}

/* Run the tests that have not run yet in a child process, up to the first
 * failure; return how many failed: 0 or 1. */
static int run_process(const struct run *run)
{
    struct progress *progress = run->progress;
    pid_t parent = getpid();
    int status = -1;
    pid_t pid;

    progress->is_open = false;
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent)
            _exit(98);
        if (run_rest(run, false) == 0)
            exit(0);
        (void)fflush(NULL);
        _exit(1);
    }
    if (pid > 0)
        (void)waitpid(pid, &status, 0);
    if (status != 0 && !progress->is_open)
        printf("[  FAILED  ] GROUP SETUP\n");
    if (pid > 0 && WIFSIGNALED(status) && progress->begun > 0)
        print_message("[  FAILED  ] the test was ended by signal %d, %s\n",
                      WTERMSIG(status), strsignal(WTERMSIG(status)));
    return status != 0;
}

static void fail_rest(const struct run *run)
{
    const char *last = run->tests[run->progress->begun - 1].name;

    while (run->progress->begun < run->count) {
        const char *name = run->tests[run->progress->begun++].name;

        printf("[ RUN      ] %s\nnot run after the failure of %s\n"
               "[  FAILED  ] %s\n",
               name, last, name);
    }
}

static int run_processes(const struct run *run)
{
    struct progress *progress = run->progress;
    int failed = 0;
    size_t before;

    do {
        before = progress->begun;
        failed += run_process(run);
        if (failed > 0 && run->group->is_sequence && progress->begun > 0)
            fail_rest(run);
    } while (progress->begun < run->count && progress->begun > before);
    return failed;
}

static int run_all(struct run *run)
{
    int failed;

    run->progress = mmap(NULL, sizeof *run->progress, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run->progress == MAP_FAILED)
        abort();
    failed = program_is_alone() ? run_rest(run, !run->group->is_sequence)
                                : run_processes(run);
    (void)munmap(run->progress, sizeof *run->progress);
    return failed;
}

int group_run(const struct group *group)
{
    struct run run = {.group = group};
    int failed = 0;

    run.tests = calloc(group->count + 1, sizeof *run.tests);
    if (run.tests == NULL)
        abort();
    for (size_t i = 0; i < group->count; i++)
        if (program_wants(group->tests[i].name))
            run.tests[run.count++] = group->tests[i];
    for (size_t i = 0; program_lists() && i < run.count; i++)
        printf("%s\n", run.tests[i].name);
    if (!program_lists() && run.count > 0) {
        if (group->name != NULL)
            print_message("%s\n", group->name);
        failed = run_all(&run);
    }
    free(run.tests);
    return failed;
}

static int open_unit(void **state)
{
    const struct test *test = *state;

    if (test->open != NULL)
        test->open();
    return 0;
}

static void call_unit(void **state)
{
    const struct test *test = *state;

    test->body(NULL);
}

static int close_unit(void **state)
{
    const struct test *test = *state;

    if (test->close != NULL)
        test->close();
    return 0;
}

int group_run_tests(void)
{
    static struct CMUnitTest tests[UNITS_MAX];
    struct group group = {.tests = tests, .test_seconds = TEST_SECONDS};
    int failed = 0;

    for (const struct test *test = tests_first(); test != NULL;
         test = test->next) {
        struct CMUnitTest *to = &tests[group.count++];

        if (group.count > UNITS_MAX) {
            print_error("%s has too many tests\n", test->file);
            abort();
        }
        *to = (struct CMUnitTest){.name = test->name,
                                  .test_func = call_unit,
                                  .setup_func = open_unit,
                                  .teardown_func = close_unit};
        /* The functions above only read it. */
        memcpy(&to->initial_state, &test, sizeof test);
        if (test->next == NULL || strcmp(test->next->file, test->file) != 0) {
            group.name = test->file;
            failed += group_run(&group);
            group.count = 0;
        }
    }
    return failed;
}
