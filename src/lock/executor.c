/*
 * executor.c - run the tasks of async requests on a few threads
 *
 * One thread always remains that runs no blocking task: it runs ready tasks,
 * and wakes suspended ones when they are due.  So a task may block only if
 * another thread is idle, or can be started.
 */
#include "lock/executor.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "db/driver.h"

void lk_executor_init(struct lk_executor *executor)
{
    memset(executor, 0, sizeof *executor);
    executor->due_ns = LK_NEVER;
    (void)pthread_mutex_init(&executor->mutex, NULL);
    lk_condition_init(&executor->changed);
    (void)pthread_cond_init(&executor->emptied, NULL);
}

/* For the functions down to run_one() the caller holds the mutex. */

static void make_ready(struct lk_executor *executor, struct lk_task *task)
{
    task->state = LK_TASK_READY;
    DL_APPEND2(executor->ready, task, previous, next);
    pthread_cond_signal(&executor->changed);
}

static void suspend(struct lk_executor *executor, struct lk_task *task)
{
    if (task->state == LK_TASK_WOKEN) {
        make_ready(executor, task);
        return;
    }
    task->state = LK_TASK_SUSPENDED;
    DL_APPEND2(executor->suspended, task, previous, next);
    if (task->due_ns < executor->due_ns) {
        executor->due_ns = task->due_ns;
        /* An idle thread may be set to sleep until a later time. */
        pthread_cond_signal(&executor->changed);
    }
}

static void wake_the_due(struct lk_executor *executor)
{
    int64_t now = sqlock_monotonic_ns();
    struct lk_task *task;
    struct lk_task *next;

    if (now < executor->due_ns)
        return;
    executor->due_ns = LK_NEVER;
    DL_FOREACH_SAFE(executor->suspended, task, next)
    {
        if (task->due_ns > now) {
            executor->due_ns = lk_sooner(executor->due_ns, task->due_ns);
            continue;
        }
        DL_DELETE2(executor->suspended, task, previous, next);
        make_ready(executor, task);
    }
}

/* Sleep until a task changes, or is due. */
static void idle(struct lk_executor *executor)
{
    struct timespec at = lk_timespec(executor->due_ns);

    executor->idle++;
    if (executor->due_ns == LK_NEVER)
        (void)pthread_cond_wait(&executor->changed, &executor->mutex);
    else
        (void)pthread_cond_timedwait(&executor->changed, &executor->mutex, &at);
    executor->idle--;
}

static void *run_tasks(void *argument);

static int start_one(struct lk_executor *executor, sqlock_error *err)
{
    int rc;

    if (executor->running == executor->threads_max)
        return lk_error(err, SQLOCK_ERESOURCE,
                        "all threads for requests are in use");
    rc = lk_thread_start(&executor->threads[executor->running], run_tasks,
                         executor, err);
    if (rc == 0) {
        executor->running++;
        executor->idle++; /* counts as idle until it runs */
    }
    return rc;
}

static void run_one(struct lk_executor *executor)
{
    struct lk_task *task = executor->ready;
    bool may_wait = executor->idle > 0 || start_one(executor, NULL) == 0;
    bool is_suspended;

    DL_DELETE2(executor->ready, task, previous, next);
    task->state = LK_TASK_RUNNING;
    pthread_mutex_unlock(&executor->mutex);
    is_suspended = task->run(task, may_wait);
    pthread_mutex_lock(&executor->mutex);
    if (is_suspended)
        suspend(executor, task);
}

static void *run_tasks(void *argument)
{
    struct lk_executor *executor = argument;

    pthread_mutex_lock(&executor->mutex);
    executor->idle--;
    while (!executor->is_stopping) {
        wake_the_due(executor);
        if (executor->ready != NULL)
            run_one(executor);
        else
            idle(executor);
    }
    pthread_mutex_unlock(&executor->mutex);
    return NULL;
}

/* --- interface; the caller does not hold the mutex --- */

int lk_executor_add(struct lk_executor *executor, struct lk_task *task,
                    size_t threads_max, sqlock_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&executor->mutex);
    if (executor->threads == NULL) {
        executor->threads_max = threads_max;
        executor->threads = calloc(threads_max, sizeof *executor->threads);
    }
    if (executor->threads == NULL)
        rc = lk_error_nomem(err);
    else if (executor->running == 0)
        rc = start_one(executor, err);
    if (rc == 0) {
        task->state = LK_TASK_RUNNING;
        executor->tasks++;
    }
    pthread_mutex_unlock(&executor->mutex);
    return rc;
}

void lk_executor_remove(struct lk_executor *executor)
{
    pthread_mutex_lock(&executor->mutex);
    executor->tasks--;
    pthread_cond_signal(&executor->emptied);
    pthread_mutex_unlock(&executor->mutex);
}

void lk_executor_suspend(struct lk_executor *executor, struct lk_task *task)
{
    pthread_mutex_lock(&executor->mutex);
    suspend(executor, task);
    pthread_mutex_unlock(&executor->mutex);
}

void lk_executor_settle(struct lk_executor *executor, struct lk_task *task)
{
    pthread_mutex_lock(&executor->mutex);
    task->state = LK_TASK_SETTLED;
    pthread_mutex_unlock(&executor->mutex);
}

void lk_executor_wake(struct lk_executor *executor, struct lk_task *task)
{
    pthread_mutex_lock(&executor->mutex);
    if (task->state == LK_TASK_RUNNING) {
        task->state = LK_TASK_WOKEN;
    } else if (task->state == LK_TASK_SUSPENDED) {
        DL_DELETE2(executor->suspended, task, previous, next);
        make_ready(executor, task);
    } else if (task->state == LK_TASK_SETTLED) {
        make_ready(executor, task);
    }
    pthread_mutex_unlock(&executor->mutex);
}

void lk_executor_stop(struct lk_executor *executor)
{
    pthread_mutex_lock(&executor->mutex);
    while (executor->tasks > 0)
        pthread_cond_wait(&executor->emptied, &executor->mutex);
    /* no other thread is started after this */
    executor->is_stopping = true;
    pthread_cond_broadcast(&executor->changed);
    pthread_mutex_unlock(&executor->mutex);
    for (; executor->running > 0; executor->running--)
        pthread_join(executor->threads[executor->running - 1], NULL);
    free(executor->threads);
    executor->threads = NULL;
}
