/*
 * runner.h - a few threads that run what has something to do, of many that wait
 */
#ifndef LK_RUNNER_H
#define LK_RUNNER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sqlock.h"

struct sqlock_registry;

enum lk_job_state {
    LK_JOB_RUNNING, /* also until it is parked for the first time */
    LK_JOB_WOKEN,   /* the same, and to be run again */
    LK_JOB_PARKED,
    LK_JOB_READY,
    LK_JOB_SETTLED /* there is nothing to run */
};

/* Embedded in what it runs for. */
struct lk_job {
    struct lk_job *next, *previous; /* among the ready, or the parked */
    enum lk_job_state state;
    int64_t due_ns; /* parked: to be run then, CLOCK_MONOTONIC */
    /* True: it is parked; false: the job has been taken out, and may be gone.
     * It waits for long only if it may. */
    bool (*run)(struct lk_job *job, bool may_wait);
};

struct lk_runner {
    pthread_mutex_t mutex; /* the last of all */
    pthread_cond_t changed;
    pthread_cond_t emptied;
    pthread_t *threads;
    size_t threads_max;
    size_t running; /* threads */
    size_t idle;    /* of them, or about to be */
    size_t jobs;    /* that are not taken out yet */
    struct lk_job *ready;
    struct lk_job *parked;
    int64_t due_ns; /* no parked one is due sooner */
    bool is_stopping;
};

void lk_runner_init(struct lk_runner *runner);

/* Once all jobs are taken out, for which it waits; once or more. */
void lk_runner_stop(struct lk_runner *runner);

/* A job in its first state, with one thread at least to run it, of that many at
 * most.  0, ERESOURCE, ENOMEM. */
int lk_runner_add(struct lk_runner *runner, struct lk_job *job,
                  size_t threads_max, sqlock_error *err);
void lk_runner_remove(struct lk_runner *runner);

/* By who runs it, or has added it: run it when it is woken, or due. */
void lk_runner_park(struct lk_runner *runner, struct lk_job *job);

/* By who runs it: until it is woken again; by what woke it before, it is not. */
void lk_runner_settle(struct lk_runner *runner, struct lk_job *job);

/* From any thread. */
void lk_runner_wake(struct lk_runner *runner, struct lk_job *job);

#endif
