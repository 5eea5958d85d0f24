/*
 * watchdog.h - end calls that are past their deadline
 *
 * For client libraries whose calls block without a limit: one thread calls
 * `abort` when a call is past its deadline.  It does nothing else, so that no
 * callback and no statement delays it.
 */
#ifndef LK_WATCHDOG_H
#define LK_WATCHDOG_H

#include <pthread.h>

#include "base/service.h"

/* One watched call: a member of the connection that makes the call. */
struct lk_watch {
    void (*abort)(void *connection); /* set by the caller, as is `connection` */
    void *connection;
    struct lk_watch *next, *previous;
    int64_t deadline_ns;
};

struct lk_watchdog {
    struct lk_service service; /* its thread starts with the first call */
    struct lk_handler handler;
    pthread_mutex_t mutex; /* guards the following fields */
    struct lk_watch *watches;
    int64_t looks_at_ns; /* next check, CLOCK_MONOTONIC */
};

void lk_watchdog_init(struct lk_watchdog *dog);
void lk_watchdog_stop(struct lk_watchdog *dog);

/* Begin, and end, to watch a call.  `watch` must exist meanwhile.  After
 * lk_watchdog_disarm() returns, `abort` is not running and will not be called.
 * Return 0, or SQLOCK_ERESOURCE if no thread can be started. */
int lk_watchdog_arm(struct lk_watchdog *dog, struct lk_watch *watch,
                    int64_t deadline_ns, sqlock_error *err);
void lk_watchdog_disarm(struct lk_watchdog *dog, struct lk_watch *watch);

#endif
