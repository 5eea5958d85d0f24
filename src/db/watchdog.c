/*
 * watchdog.c - the deadline thread.  Deadlines mostly rise from call to call,
 * so the thread is woken only for one that comes sooner than its next look;
 * arming costs a mutex otherwise.  `abort` runs under that mutex: a disarm that
 * comes meanwhile waits for it, so no connection is aborted after its call.
 */
#include "db/watchdog.h"

#include <string.h>

#include "base/clock.h"
#include "base/thread.h"

static void abort_overdue(struct lk_watchdog *dog)
{
    int64_t now = sqlock_monotonic_ns();

    dog->wakes_at_ns = LK_NEVER;
    for (struct lk_watch *watch = dog->watches; watch != NULL;
         watch = watch->next) {
        if (watch->deadline_ns <= now) {
            dog->driver->abort(watch->connection);
            watch->deadline_ns = LK_NEVER; /* once is enough */
        }
        dog->wakes_at_ns = lk_sooner(dog->wakes_at_ns, watch->deadline_ns);
    }
}

static void *watch_calls(void *argument)
{
    struct lk_watchdog *dog = argument;

    pthread_mutex_lock(&dog->mutex);
    while (!dog->is_stopping) {
        struct timespec at;

        abort_overdue(dog);
        if (dog->wakes_at_ns == LK_NEVER) {
            pthread_cond_wait(&dog->changed, &dog->mutex);
            continue;
        }
        at = lk_timespec(dog->wakes_at_ns);
        (void)pthread_cond_timedwait(&dog->changed, &dog->mutex, &at);
    }
    pthread_mutex_unlock(&dog->mutex);
    return NULL;
}

int lk_watchdog_start(struct lk_watchdog *dog, const sqlock_driver *driver,
                      sqlock_error *err)
{
    int rc;

    memset(dog, 0, sizeof *dog);
    dog->driver = driver;
    dog->wakes_at_ns = LK_NEVER;
    if ((driver->capabilities & SQLOCK_CAP_KEEPS_DEADLINE) != 0)
        return 0;
    (void)pthread_mutex_init(&dog->mutex, NULL);
    lk_condition_init(&dog->changed);
    rc = lk_thread_start(&dog->thread, watch_calls, dog, err);
    if (rc < 0) {
        (void)pthread_cond_destroy(&dog->changed);
        (void)pthread_mutex_destroy(&dog->mutex);
        return rc;
    }
    dog->is_running = true;
    return 0;
}

void lk_watchdog_stop(struct lk_watchdog *dog)
{
    if (!dog->is_running)
        return;
    pthread_mutex_lock(&dog->mutex);
    dog->is_stopping = true;
    pthread_cond_signal(&dog->changed);
    pthread_mutex_unlock(&dog->mutex);
    pthread_join(dog->thread, NULL);
    (void)pthread_cond_destroy(&dog->changed);
    (void)pthread_mutex_destroy(&dog->mutex);
    dog->is_running = false;
}

void lk_watchdog_arm(struct lk_watchdog *dog, struct lk_watch *watch,
                     void *connection, int64_t deadline_ns)
{
    if (!dog->is_running)
        return;
    pthread_mutex_lock(&dog->mutex);
    watch->connection = connection;
    watch->deadline_ns = deadline_ns;
    watch->previous = NULL;
    watch->next = dog->watches;
    if (dog->watches != NULL)
        dog->watches->previous = watch;
    dog->watches = watch;
    if (deadline_ns < dog->wakes_at_ns)
        pthread_cond_signal(&dog->changed);
    pthread_mutex_unlock(&dog->mutex);
}

void lk_watchdog_disarm(struct lk_watchdog *dog, struct lk_watch *watch)
{
    if (!dog->is_running)
        return;
    pthread_mutex_lock(&dog->mutex);
    if (watch->previous != NULL)
        watch->previous->next = watch->next;
    else
        dog->watches = watch->next;
    if (watch->next != NULL)
        watch->next->previous = watch->previous;
    pthread_mutex_unlock(&dog->mutex);
}
