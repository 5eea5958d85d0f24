/*
 * executor.h - a few threads that run what has something to do, of many that
 * wait
 */
#ifndef LK_EXECUTOR_H
#define LK_EXECUTOR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sqlock.h"

struct sqlock_registry;

enum lk_task_state {
    LK_TASK_RUNNING, /* also until it is suspended for the first time */
    LK_TASK_WOKEN,   /* the same, and to be run again */
    LK_TASK_SUSPENDED,
    LK_TASK_READY,
    LK_TASK_SETTLED /* there is nothing to run */
};

/* Embedded in what it runs for. */
struct lk_task {
    struct lk_task *next, *previous; /* among the ready, or the suspended */
    enum lk_task_state state;
    int64_t due_ns; /* suspended: to be run then, CLOCK_MONOTONIC */
    /* True: it is suspended; false: the task has been taken out, and may be
     * gone.  It waits for long only if it may. */
    bool (*run)(struct lk_task *task, bool may_wait);
};

struct lk_executor {
    pthread_mutex_t mutex; /* behind those of src/wait; none within it */
    pthread_cond_t changed;
    pthread_cond_t emptied;
    pthread_t *threads;
    size_t threads_max;
    size_t running; /* threads */
    size_t idle;    /* of them, or about to be */
    size_t tasks;   /* that are not taken out yet */
    struct lk_task *ready;
    struct lk_task *suspended;
    int64_t due_ns; /* no suspended one is due sooner */
    bool is_stopping;
};

void lk_executor_init(struct lk_executor *executor);

/* Once all tasks are taken out, for which it waits; once or more. */
void lk_executor_stop(struct lk_executor *executor);

/* A task in its first state, with one thread at least to run it, of that many
 * at most.  0, ERESOURCE, ENOMEM. */
int lk_executor_add(struct lk_executor *executor, struct lk_task *task,
                    size_t threads_max, sqlock_error *err);
void lk_executor_remove(struct lk_executor *executor);

/* By who runs it, or has added it: run it when it is woken, or due. */
void lk_executor_suspend(struct lk_executor *executor, struct lk_task *task);

/* By who runs it: until it is woken again; by what woke it before, it is
 * not. */
void lk_executor_settle(struct lk_executor *executor, struct lk_task *task);

/* Wake a task, from any thread. */
void lk_executor_wake(struct lk_executor *executor, struct lk_task *task);

#endif
