/*
 * watchdog.h - end the calls of drivers that do not keep deadlines themselves
 *
 * One thread calls the driver's `abort` when a call is past its deadline.  It
 * does nothing else, so that no callback and no statement delays it.
 */
#ifndef LK_WATCHDOG_H
#define LK_WATCHDOG_H

#include <pthread.h>

#include "base/service.h"
#include "db/driver.h"

/* One watched call: a member of the connection that makes the call. */
struct lk_watch {
    struct lk_watch *next, *previous;
    void *connection;
    int64_t deadline_ns;
};

struct lk_watchdog {
    const sqlock_driver *driver;
    /* the thread is running; false if the driver keeps deadlines itself, or the
     * watchdog is stopped */
    bool is_watching;
    struct lk_service service;
    struct lk_handler handler;
    pthread_mutex_t mutex; /* guards the following fields */
    struct lk_watch *watches;
    int64_t looks_at_ns; /* next check, CLOCK_MONOTONIC */
};

/* Start the watchdog; for a driver that keeps deadlines itself, without a
 * thread.  Return 0, or SQLOCK_ERESOURCE if no thread can be started. */
int lk_watchdog_start(struct lk_watchdog *dog, const sqlock_driver *driver,
                      sqlock_error *err);
void lk_watchdog_stop(struct lk_watchdog *dog);

/* Begin, and end, to watch a call on a connection, which is `state` of struct
 * lk_connection.  `watch` must exist meanwhile.  After lk_watchdog_disarm()
 * returns, `abort` is not running and will not be called. */
void lk_watchdog_arm(struct lk_watchdog *dog, struct lk_watch *watch,
                     void *connection, int64_t deadline_ns);
void lk_watchdog_disarm(struct lk_watchdog *dog, struct lk_watch *watch);

#endif
