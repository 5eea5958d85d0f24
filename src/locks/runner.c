/*
 * runner.c - threads for those who wait without one.
 *
 * There is always one that neither runs a job that may wait for long nor is
 * about to: it runs those that are ready and keeps the deadlines.  So a job may
 * wait only when another thread is idle, or can be started.
 */
#include "locks/runner.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "sqlock_driver.h"

void lk_runner_init(struct lk_runner *runner)
{
    memset(runner, 0, sizeof *runner);
    runner->due_ns = LK_NEVER;
    (void)pthread_mutex_init(&runner->mutex, NULL);
    lk_condition_init(&runner->changed);
    (void)pthread_cond_init(&runner->emptied, NULL);
}

/* All that follows, unless it says otherwise, with the mutex held. */

static void make_ready(struct lk_runner *runner, struct lk_job *job)
{
    job->state = LK_JOB_READY;
    DL_APPEND2(runner->ready, job, previous, next);
    pthread_cond_signal(&runner->changed);
}

static void park(struct lk_runner *runner, struct lk_job *job)
{
    if (job->state == LK_JOB_WOKEN) {
        make_ready(runner, job);
        return;
    }
    job->state = LK_JOB_PARKED;
    DL_APPEND2(runner->parked, job, previous, next);
    if (job->due_ns < runner->due_ns) {
        runner->due_ns = job->due_ns;
        pthread_cond_signal(&runner->changed); /* who sleeps for longer */
    }
}

static void wake_the_due(struct lk_runner *runner)
{
    int64_t now = sqlock_monotonic_ns();
    struct lk_job *job;
    struct lk_job *next;

    if (now < runner->due_ns)
        return;
    runner->due_ns = LK_NEVER;
    DL_FOREACH_SAFE(runner->parked, job, next)
    {
        if (job->due_ns > now) {
            runner->due_ns = lk_sooner(runner->due_ns, job->due_ns);
            continue;
        }
        DL_DELETE2(runner->parked, job, previous, next);
        make_ready(runner, job);
    }
}

/* Until something changes, or is due. */
static void idle(struct lk_runner *runner)
{
    struct timespec at = lk_timespec(runner->due_ns);

    runner->idle++;
    if (runner->due_ns == LK_NEVER)
        (void)pthread_cond_wait(&runner->changed, &runner->mutex);
    else
        (void)pthread_cond_timedwait(&runner->changed, &runner->mutex, &at);
    runner->idle--;
}

static void *run_jobs(void *argument);

static int start_one(struct lk_runner *runner, sqlock_error *err)
{
    int rc;

    if (runner->running == runner->threads_max)
        return lk_error(err, SQLOCK_ERESOURCE, "no thread is left");
    rc = lk_thread_start(&runner->threads[runner->running], run_jobs, runner,
                         err);
    if (rc == 0) {
        runner->running++;
        runner->idle++; /* until it has begun */
    }
    return rc;
}

static void run_one(struct lk_runner *runner)
{
    struct lk_job *job = runner->ready;
    bool may_wait = runner->idle > 0 || start_one(runner, NULL) == 0;
    bool is_parked;

    DL_DELETE2(runner->ready, job, previous, next);
    job->state = LK_JOB_RUNNING;
    pthread_mutex_unlock(&runner->mutex);
    is_parked = job->run(job, may_wait);
    pthread_mutex_lock(&runner->mutex);
    if (is_parked)
        park(runner, job);
}

static void *run_jobs(void *argument)
{
    struct lk_runner *runner = argument;

    pthread_mutex_lock(&runner->mutex);
    runner->idle--;
    while (!runner->is_stopping) {
        wake_the_due(runner);
        if (runner->ready != NULL)
            run_one(runner);
        else
            idle(runner);
    }
    pthread_mutex_unlock(&runner->mutex);
    return NULL;
}

/* --- from outside, without the mutex --- */

int lk_runner_add(struct lk_runner *runner, struct lk_job *job,
                  size_t threads_max, sqlock_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&runner->mutex);
    if (runner->threads == NULL) {
        runner->threads_max = threads_max;
        runner->threads = calloc(threads_max, sizeof *runner->threads);
    }
    if (runner->threads == NULL)
        rc = lk_error_nomem(err);
    else if (runner->running == 0)
        rc = start_one(runner, err);
    if (rc == 0) {
        job->state = LK_JOB_RUNNING;
        runner->jobs++;
    }
    pthread_mutex_unlock(&runner->mutex);
    return rc;
}

void lk_runner_remove(struct lk_runner *runner)
{
    pthread_mutex_lock(&runner->mutex);
    runner->jobs--;
    pthread_cond_signal(&runner->emptied);
    pthread_mutex_unlock(&runner->mutex);
}

void lk_runner_park(struct lk_runner *runner, struct lk_job *job)
{
    pthread_mutex_lock(&runner->mutex);
    park(runner, job);
    pthread_mutex_unlock(&runner->mutex);
}

void lk_runner_settle(struct lk_runner *runner, struct lk_job *job)
{
    pthread_mutex_lock(&runner->mutex);
    job->state = LK_JOB_SETTLED;
    pthread_mutex_unlock(&runner->mutex);
}

void lk_runner_wake(struct lk_runner *runner, struct lk_job *job)
{
    pthread_mutex_lock(&runner->mutex);
    if (job->state == LK_JOB_RUNNING) {
        job->state = LK_JOB_WOKEN;
    } else if (job->state == LK_JOB_PARKED) {
        DL_DELETE2(runner->parked, job, previous, next);
        make_ready(runner, job);
    } else if (job->state == LK_JOB_SETTLED) {
        make_ready(runner, job);
    }
    pthread_mutex_unlock(&runner->mutex);
}

void lk_runner_stop(struct lk_runner *runner)
{
    pthread_mutex_lock(&runner->mutex);
    while (runner->jobs > 0)
        pthread_cond_wait(&runner->emptied, &runner->mutex);
    runner->is_stopping = true; /* and nobody starts another one */
    pthread_cond_broadcast(&runner->changed);
    pthread_mutex_unlock(&runner->mutex);
    for (; runner->running > 0; runner->running--)
        pthread_join(runner->threads[runner->running - 1], NULL);
    free(runner->threads);
    runner->threads = NULL;
}
