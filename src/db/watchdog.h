/*
 * watchdog.h - one thread that calls `abort` on the calls of drivers that
 * cannot keep a deadline by themselves, and does nothing else: no callback of
 * the application and no statement puts a deadline off
 */
#ifndef LK_WATCHDOG_H
#define LK_WATCHDOG_H

#include <pthread.h>

#include "base/service.h"
#include "sqlock/driver.h"

/* One call that is watched; embedded in whatever makes the call. */
struct lk_watch {
    struct lk_watch *next, *previous;
    void *connection;
    int64_t deadline_ns;
};

struct lk_watchdog {
    const sqlock_driver *driver;
    enum lk_watchdog_state {
        LK_WATCHDOG_NONE,    /* the driver keeps its deadlines; or stopped */
        LK_WATCHDOG_WATCHING /* the service's thread is there */
    } state;
    struct lk_service service;
    struct lk_handler handler;
    pthread_mutex_t mutex; /* of what follows */
    struct lk_watch *watches;
    int64_t looks_at_ns; /* when the handler looks next, CLOCK_MONOTONIC */
};

/* Start the watchdog.  For a driver that keeps deadlines itself this does
 * nothing, cheaply. 0, ENOMEM, ERESOURCE (no thread). */
int lk_watchdog_start(struct lk_watchdog *dog, const sqlock_driver *driver,
                      sqlock_error *err);
void lk_watchdog_stop(struct lk_watchdog *dog);

/* Begin to look after a call on a connection, or end it.  After
 * lk_watchdog_disarm() returns, `abort` is not running and will not be
 * called. */
void lk_watchdog_arm(struct lk_watchdog *dog, struct lk_watch *watch,
                     void *connection, int64_t deadline_ns);
void lk_watchdog_disarm(struct lk_watchdog *dog, struct lk_watch *watch);

#endif
