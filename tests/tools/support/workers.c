/*
 * workers.c - see workers.h
 */
#include "workers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *enter(void *argument)
{
    struct worker *worker = argument;

    atomic_store(&worker->tid, (int)gettid());
    if (worker->gate != NULL)
        (void)pthread_barrier_wait(worker->gate);
    worker->rc = worker->body(worker);
    return NULL;
}

static void launch(struct worker *worker)
{
    if (pthread_create(&worker->thread, NULL, enter, worker) != 0)
        fail_msg("%s", "cannot start a thread");
}

void workers_start(struct workers *workers, unsigned count,
                   int (*body)(struct worker *), void *context)
{
    unsigned i;

    assert_true(count <= WORKERS_MAX);
    memset(workers, 0, sizeof *workers);
    workers->count = count;
    assert_int_equal(pthread_barrier_init(&workers->gate, NULL, count), 0);
    for (i = 0; i < count; i++) {
        workers->one[i].body = body;
        workers->one[i].context = context;
        workers->one[i].index = i;
        workers->one[i].gate = &workers->gate;
        launch(&workers->one[i]);
    }
}

/* A worker that waits for what never comes ends its test with a message, before
 * the alarm ends the program without one.  In a campaign it may work for as
 * long as its suite. */
#define JOIN_S (TEST_SECONDS / 2)
#define JOIN_CAMPAIGN_S 6000

static struct timespec latest_end(void)
{
    struct timespec until;

    /* ThreadSanitizer knows no pthread_clockjoin_np(). */
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += check_scale(JOIN_S, JOIN_CAMPAIGN_S) * SLOWNESS;
    return until;
}

static bool end(struct worker *worker, const struct timespec *until)
{
    int rc = pthread_timedjoin_np(worker->thread, NULL, until);

    if (rc == ETIMEDOUT)
        print_error("worker %u waits, and has not ended by now\n",
                    worker->index);
    if (rc != 0)
        return false;
    if (worker->rc == 0)
        return true;
    print_error("worker %u: %s\n", worker->index,
                worker->report[0] != '\0' ? worker->report : "no report");
    return false;
}

/* All have the same time: several that wait for one that has failed must not
 * keep its report from being printed. */
void workers_join_at(struct workers *workers, const char *file, int line)
{
    struct timespec until = latest_end();
    bool ok = true;
    unsigned i;

    for (i = 0; i < workers->count; i++)
        if (!end(&workers->one[i], &until))
            ok = false;
    (void)pthread_barrier_destroy(&workers->gate);
    if (!ok)
        _fail(file, line);
}

void worker_start(struct worker *worker, int (*body)(struct worker *),
                  void *context)
{
    memset(worker, 0, sizeof *worker);
    worker->body = body;
    worker->context = context;
    launch(worker);
}

void worker_join_at(struct worker *worker, const char *file, int line)
{
    struct timespec until = latest_end();

    if (!end(worker, &until))
        _fail(file, line);
}

int worker_fail_at(struct worker *worker, const char *file, int line,
                   const char *format, ...)
{
    int used =
        snprintf(worker->report, sizeof worker->report, "%s:%d: ", file, line);
    va_list args;

    if (used > 0 && (size_t)used < sizeof worker->report) {
        va_start(args, format);
        (void)vsnprintf(worker->report + used,
                        sizeof worker->report - (size_t)used, format, args);
        va_end(args);
    }
    return -1;
}

static bool is_in_futex(int tid)
{
    char path[64];
    long number = -1;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    file = fopen(path, "r");
    if (file == NULL)
        return false;
    if (fscanf(file, "%ld", &number) != 1)
        number = -1;
    (void)fclose(file);
    return number == SYS_futex;
}

bool worker_is_parked(const struct worker *worker)
{
    int tid = atomic_load(&worker->tid);
    int i;

    if (tid == 0)
        return false;
    for (i = 0; i < 4; i++) {
        if (!is_in_futex(tid))
            return false;
        (void)check_pause(INT64_MAX);
    }
    return true;
}

void worker_run_at(int (*body)(struct worker *), void *context,
                   const char *file, int line)
{
    struct worker worker;

    worker_start(&worker, body, context);
    worker_join_at(&worker, file, line);
}
