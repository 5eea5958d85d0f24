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
    LK_TASK_RUNNING, /* also the first state */
    LK_TASK_WOKEN,   /* woken while it runs: to be run again */
    LK_TASK_SUSPENDED,
    LK_TASK_BLOCKED, /* waits for a thread that may block */
    LK_TASK_READY,
    LK_TASK_SETTLED /* has ended: runs again only if it is woken */
};

/* A task says by one of these what follows its run. */
enum lk_task_next {
    LK_TASK_ENDS, /* it is settled, or was removed and may have been freed */
    LK_TASK_SUSPENDS, /* it is run again when it is woken or due */
    /* it is run again by a thread that may block; before that by any, when it
     * is woken or due */
    LK_TASK_BLOCKS
};

/* A task, embedded in the object for which it runs. */
struct lk_task {
    /* links in the list of tasks of its state */
    struct lk_task *next, *previous;
    enum lk_task_state state;
    /* when to run a suspended or blocked task, CLOCK_MONOTONIC */
    int64_t due_ns;
    /* Run the task.  Only with may_block may it block: otherwise it returns
     * LK_TASK_BLOCKS where it would. */
    enum lk_task_next (*run)(struct lk_task *task, bool may_block);
};

struct lk_executor {
    /* taken after the mutexes of src/wait; no other mutex within it */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_cond_t emptied;
    pthread_t *threads;
    size_t threads_max;
    size_t running; /* number of threads */
    size_t idle;    /* threads that sleep, or have not begun */
    size_t tasks;   /* number of tasks not yet removed */
    struct lk_task *ready;
    struct lk_task *suspended;
    struct lk_task *blocked;
    int64_t due_ns; /* no suspended or blocked task is due before */
    bool is_stopping;
};

void lk_executor_init(struct lk_executor *executor);

/* Wait until all tasks are removed, then end the threads; may be called
 * again. */
void lk_executor_stop(struct lk_executor *executor);

/* Add a task, whose `run` and due_ns are set, in its first state, and make sure
 * that there is a thread to run it; the first call sets how many threads may be
 * started.  Return 0, ERESOURCE or ENOMEM. */
int lk_executor_add(struct lk_executor *executor, struct lk_task *task,
                    size_t threads_max, sqlock_error *err);

/* Note that a task was removed.  The task runs no more, and may have been
 * freed. */
void lk_executor_remove(struct lk_executor *executor);

/* Suspend a task that was added, until it is woken or due.  If it was woken
 * before, it is run at once. */
void lk_executor_suspend(struct lk_executor *executor, struct lk_task *task);

/* Settle a task, ignoring earlier wake-ups: it runs again only if it is woken
 * later.  Call it in the task's `run`, or before the task is first
 * suspended. */
void lk_executor_settle(struct lk_executor *executor, struct lk_task *task);

/* Wake a task: it is run soon, or once more if it is running.  Any thread may
 * call this. */
void lk_executor_wake(struct lk_executor *executor, struct lk_task *task);

#endif
