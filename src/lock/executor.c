/*
 * executor.c - run the tasks of async requests on a few threads
 *
 * One thread always remains that does not block: it runs ready tasks as far as
 * they go without blocking, and all others when they are woken or due.  So a
 * task may block only if another thread is idle, or can be started.
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

/* Return the list of the tasks in that state. */
static struct lk_task **list_of(struct lk_executor *executor,
                                enum lk_task_state state)
{
    return state == LK_TASK_BLOCKED ? &executor->blocked : &executor->suspended;
}

/* Put aside a task that has run, in that state. */
static void put_aside(struct lk_executor *executor, struct lk_task *task,
                      enum lk_task_state state)
{
    if (task->state == LK_TASK_WOKEN) {
        make_ready(executor, task);
        return;
    }
    task->state = state;
    DL_APPEND2(*list_of(executor, state), task, previous, next);
    if (task->due_ns < executor->due_ns) {
        executor->due_ns = task->due_ns;
        /* An idle thread may be set to sleep until a later time. */
        pthread_cond_signal(&executor->changed);
    }
}

static void take_back(struct lk_executor *executor, struct lk_task *task)
{
    DL_DELETE2(*list_of(executor, task->state), task, previous, next);
    make_ready(executor, task);
}

static void wake_the_due_of(struct lk_executor *executor, struct lk_task *list,
                            int64_t now)
{
    struct lk_task *task;
    struct lk_task *next;

    DL_FOREACH_SAFE(list, task, next)
    {
        if (task->due_ns > now)
            executor->due_ns = lk_sooner(executor->due_ns, task->due_ns);
        else
            take_back(executor, task);
    }
}

static void wake_the_due(struct lk_executor *executor)
{
    int64_t now = sqlock_monotonic_ns();

    if (now < executor->due_ns)
        return;
    executor->due_ns = LK_NEVER;
    wake_the_due_of(executor, executor->suspended, now);
    wake_the_due_of(executor, executor->blocked, now);
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

/* Return whether this thread may block: another one is idle, or was started, or
 * there is only this one to do the work. */
static bool may_block(struct lk_executor *executor)
{
    return executor->idle > 0 || start_one(executor, NULL) == 0 ||
           executor->running == 1;
}

/* Take the task that the thread is to run now out of its list; NULL: none. */
static struct lk_task *take_next(struct lk_executor *executor, bool is_free)
{
    struct lk_task **list = is_free && executor->blocked != NULL
                                ? &executor->blocked
                                : &executor->ready;
    struct lk_task *task = *list;

    if (task != NULL)
        DL_DELETE2(*list, task, previous, next);
    return task;
}

/* Run a task.  Return false if there is none that this thread may run. */
static bool run_one(struct lk_executor *executor)
{
    bool is_free = (executor->ready != NULL || executor->blocked != NULL) &&
                   may_block(executor);
    struct lk_task *task = take_next(executor, is_free);
    enum lk_task_next next;

    if (task == NULL)
        return false;
    task->state = LK_TASK_RUNNING;
    pthread_mutex_unlock(&executor->mutex);
    next = task->run(task, is_free);
    pthread_mutex_lock(&executor->mutex);
    if (next != LK_TASK_ENDS)
        put_aside(executor, task,
                  next == LK_TASK_BLOCKS ? LK_TASK_BLOCKED : LK_TASK_SUSPENDED);
    return true;
}

static void *run_tasks(void *argument)
{
    struct lk_executor *executor = argument;

    pthread_mutex_lock(&executor->mutex);
    executor->idle--;
    while (!executor->is_stopping) {
        wake_the_due(executor);
        if (!run_one(executor))
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
    put_aside(executor, task, LK_TASK_SUSPENDED);
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
    } else if (task->state == LK_TASK_SUSPENDED ||
               task->state == LK_TASK_BLOCKED) {
        take_back(executor, task);
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
