/*
 * workers.h - threads that start together and report to the test's thread
 *
 * The body of a thread returns 0, or the result of worker_fail().
 */
#ifndef TESTS_WORKERS_H
#define TESTS_WORKERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "check.h"

struct worker {
    pthread_t thread;
    int (*body)(struct worker *);
    void *context;
    unsigned index;
    pthread_barrier_t *gate;
    atomic_int tid; /* the kernel's thread id; 0: it does not run yet */
    int rc;
    sqlock_error err; /* for the body's calls */
    char report[512];
};

#define WORKERS_MAX 32

struct workers {
    struct worker one[WORKERS_MAX];
    unsigned count;
    pthread_barrier_t gate;
};

/* Start `count` threads, which call body(worker) when all of them run. */
void workers_start(struct workers *workers, unsigned count,
                   int (*body)(struct worker *), void *context);

/* Wait for all threads.  If a body did not return 0, print its report and fail
 * the test. */
#define workers_join(workers) workers_join_at((workers), __FILE__, __LINE__)
void workers_join_at(struct workers *workers, const char *file, int line);

/* Start one thread, which calls the body at once; wait for it. */
void worker_start(struct worker *worker, int (*body)(struct worker *),
                  void *context);
#define worker_join(worker) worker_join_at((worker), __FILE__, __LINE__)
void worker_join_at(struct worker *worker, const char *file, int line);

/* Run the body in a thread, to its end; fail the test if it fails. */
#define worker_run(body, context)                                              \
    worker_run_at((body), (context), __FILE__, __LINE__)
void worker_run_at(int (*body)(struct worker *), void *context,
                   const char *file, int line);

/* Write the worker's report, with the line of the call, and return -1. */
#define worker_fail(worker, ...)                                               \
    worker_fail_at((worker), __FILE__, __LINE__, __VA_ARGS__)
int worker_fail_at(struct worker *worker, const char *file, int line,
                   const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* For a body: return worker_fail() from it, unless rc is as expected. */
#define worker_expect(worker, expected, rc_expression)                         \
    do {                                                                       \
        int worker_rc_ = ((worker)->err.code = 0, (rc_expression));            \
        if (worker_rc_ != (expected))                                          \
            return worker_fail((worker), "%s gave %d, not %d: %s",             \
                               #rc_expression, worker_rc_, (expected),         \
                               (worker)->err.message);                         \
        if (worker_rc_ == 0 && (worker)->err.code != 0)                        \
            return worker_fail((worker), "%s gave 0 and the error %d: %s",     \
                               #rc_expression, (worker)->err.code,             \
                               (worker)->err.message);                         \
    } while (0)

/* Return whether the thread sleeps in futex(2), that is, waits for a mutex or a
 * condition, and has done so for some milliseconds. */
bool worker_is_parked(const struct worker *worker);

#endif
