/*
 * watchdog.c - end calls that are past their deadline (see watchdog.h)
 *
 * The deadline of a call is mostly later than those of calls before, so arming
 * only takes the mutex, and sets the timer only if the deadline comes before
 * the next check.  `abort` runs with the mutex held: lk_watchdog_disarm() waits
 * for it, so no connection is aborted after its call has ended.
 */
#include "base/watchdog.h"

#include <string.h>
#include <utlist.h>

#include "base/clock.h"

/* Convert a point of CLOCK_MONOTONIC to CLOCK_BOOTTIME, the service's clock.
 * If the host is suspended later, CLOCK_BOOTTIME gets ahead; then the watchdog
 * checks too early, and once more. */
static int64_t boottime_of(int64_t monotonic_ns)
{
    if (monotonic_ns == LK_NEVER)
        return LK_NEVER;
    return lk_after_ns(lk_boottime_ns(), monotonic_ns - sqlock_monotonic_ns());
}

/* Handler: abort the calls that are past their deadline. */
static int64_t abort_overdue(void *owner)
{
    struct lk_watchdog *dog = owner;
    int64_t now = sqlock_monotonic_ns();
    int64_t next;

    pthread_mutex_lock(&dog->mutex);
    dog->looks_at_ns = LK_NEVER;
    for (struct lk_watch *watch = dog->watches; watch != NULL;
         watch = watch->next) {
        if (watch->deadline_ns <= now) {
            watch->abort(watch->connection);
            watch->deadline_ns = LK_NEVER; /* once is enough */
        }
        dog->looks_at_ns = lk_sooner(dog->looks_at_ns, watch->deadline_ns);
    }
    next = boottime_of(dog->looks_at_ns);
    pthread_mutex_unlock(&dog->mutex);
    return next;
}

void lk_watchdog_init(struct lk_watchdog *dog)
{
    memset(dog, 0, sizeof *dog);
    dog->looks_at_ns = LK_NEVER;
    (void)pthread_mutex_init(&dog->mutex, NULL);
    lk_service_init(&dog->service);
    lk_handler_init(&dog->handler, &dog->service, abort_overdue, NULL, dog);
}

void lk_watchdog_stop(struct lk_watchdog *dog)
{
    lk_service_stop(&dog->service);
}

int lk_watchdog_arm(struct lk_watchdog *dog, struct lk_watch *watch,
                    int64_t deadline_ns, sqlock_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&dog->mutex);
    if (dog->handler.number == 0)
        rc = lk_handler_start(&dog->handler, err);
    if (rc == 0) {
        watch->deadline_ns = deadline_ns;
        DL_APPEND2(dog->watches, watch, previous, next);
    }
    if (rc == 0 && deadline_ns < dog->looks_at_ns) {
        dog->looks_at_ns = deadline_ns;
        lk_handler_wake_at(&dog->handler, boottime_of(deadline_ns));
    }
    pthread_mutex_unlock(&dog->mutex);
    return rc;
}

void lk_watchdog_disarm(struct lk_watchdog *dog, struct lk_watch *watch)
{
    pthread_mutex_lock(&dog->mutex);
    DL_DELETE2(dog->watches, watch, previous, next);
    pthread_mutex_unlock(&dog->mutex);
}
