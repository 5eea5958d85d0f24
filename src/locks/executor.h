/*
 * executor.h - a few threads that run many tasks, most of which are suspended
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
    LK_TASK_RUNNING, /* also before it is first suspended */
    LK_TASK_WOKEN,   /* running, and to be run again */
    LK_TASK_SUSPENDED,
    LK_TASK_READY,
    LK_TASK_SETTLED /* nothing is left to run */
};

/* Embedded in the object that it runs for. */
struct lk_task {
    /* in the ready or the suspended list */
    struct lk_task *next, *previous;
    enum lk_task_state state;
    int64_t due_ns; /* when to run a suspended task, CLOCK_MONOTONIC */
    /* Return whether the task is suspended; otherwise it has been removed, and
     * may have been freed.  It may block only with may_wait. */
    bool (*run)(struct lk_task *task, bool may_wait);
};

struct lk_executor {
    /* taken after those of src/wait; none within it */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_cond_t emptied;
    pthread_t *threads;
    size_t threads_max;
    size_t running; /* number of threads */
    size_t idle;    /* of these, or about to be */
    size_t tasks;   /* not yet removed */
    struct lk_task *ready;
    struct lk_task *suspended;
    int64_t due_ns; /* no suspended task is due before */
    bool is_stopping;
};

void lk_executor_init(struct lk_executor *executor);

/* Wait until all tasks are removed, then stop the threads; may be called
 * again. */
void lk_executor_stop(struct lk_executor *executor);

/* Add a task in its first state, and make sure that there is a thread to run
 * it; at most threads_max are started.  0, ERESOURCE, ENOMEM. */
int lk_executor_add(struct lk_executor *executor, struct lk_task *task,
                    size_t threads_max, sqlock_error *err);
void lk_executor_remove(struct lk_executor *executor);

/* Suspend a task until it is woken, or due.  Called by its runner, or after
 * lk_executor_add(). */
void lk_executor_suspend(struct lk_executor *executor, struct lk_task *task);

/* Suspend a task until it is woken again, ignoring earlier wake-ups.  Called by
 * its runner. */
void lk_executor_settle(struct lk_executor *executor, struct lk_task *task);

/* Wake a task, from any thread. */
void lk_executor_wake(struct lk_executor *executor, struct lk_task *task);

#endif
