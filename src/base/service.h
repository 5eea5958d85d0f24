/*
 * service.h - one thread of the library, and the handlers that it runs
 *
 * A handler is run at a point of CLOCK_BOOTTIME, which goes on while the
 * machine is suspended (F16), when it is woken, and when a descriptor that it
 * watches is ready.  It is embedded in its owner.  Handlers of one service run
 * one after another, in turns, so that none waits for more than one run of
 * each of the others.
 *
 * The thread is started with the first handler and sleeps in epoll_wait() on a
 * timerfd and the descriptors; with nothing due it makes no system call.  It
 * has all signals blocked.
 *
 * The service's mutex is the innermost one: no other is taken within it, and
 * handlers run without it.
 */
#ifndef LK_SERVICE_H
#define LK_SERVICE_H

#include <pthread.h>
#include <stdint.h>

#include "sqlock.h"

enum lk_service_state {
    LK_SERVICE_IDLE,    /* no thread: no handler has been started */
    LK_SERVICE_RUNNING, /* the thread runs handlers, or sleeps */
    LK_SERVICE_STOPPED  /* no handler is run; the thread ends, or has ended */
};

struct lk_handler;

struct lk_service {
    pthread_mutex_t mutex;
    pthread_cond_t done; /* a handler has finished */
    enum lk_service_state state;
    pthread_t thread;
    int epoll;
    int timer;         /* timerfd */
    int64_t wakes_ns;  /* when the thread wakes next; 0: it is awake */
    uint32_t handlers; /* number of handlers started so far */
    struct lk_handler *listed;
    struct lk_handler *running;
};

void lk_service_init(struct lk_service *service);

/* Let the running handler finish, and end the thread.  Called from another
 * thread; may be called again.  No handler can be started afterwards. */
void lk_service_stop(struct lk_service *service);

struct lk_handler {
    struct lk_service *service;
    void *owner; /* argument of both functions */
    /* Returns when to run next at the latest (CLOCK_BOOTTIME); it runs earlier
     * if it was woken during the run.  LK_NEVER: when woken.  NULL: it is never
     * run. */
    int64_t (*run)(void *owner);
    /* Called when a watched descriptor is readable, hung up or broken; NULL:
     * none is watched. */
    void (*ready)(void *owner, int fd);
    /* Guarded by the service's mutex. */
    struct lk_handler *next, *previous;
    uint32_t number; /* in the service, from 1; 0: not started */
    int64_t due_ns;
};

void lk_handler_init(struct lk_handler *handler, struct lk_service *service,
                     int64_t (*run)(void *), void (*ready)(void *, int),
                     void *owner);

/* Start a handler: it runs when it is woken.  Starting it again does nothing.
 * 0, ERESOURCE (no thread, no descriptor, or the service was stopped). */
int lk_handler_start(struct lk_handler *handler, sqlock_error *err);

/* Stop a handler: when this returns it is not running and will not be run.  A
 * handler may stop itself during its own run, which then continues.  Any other
 * caller must not hold a mutex that the run takes. */
void lk_handler_stop(struct lk_handler *handler);

/* Run the handler soon, or at the latest at that point of CLOCK_BOOTTIME.  This
 * makes a system call only if the thread would sleep for longer.  Called from
 * any thread, with any mutex held; ignored for a handler that is not
 * started. */
void lk_handler_wake(struct lk_handler *handler);
void lk_handler_wake_at(struct lk_handler *handler, int64_t boot_ns);

/* Call `ready` once when the descriptor is ready; call this again to go on
 * watching.  The handler must be started.  0, ERESOURCE. */
int lk_handler_watch(struct lk_handler *handler, int fd, sqlock_error *err);

/* Stop watching a descriptor, which may have been closed.  One call of `ready`
 * may still be under way. */
void lk_handler_unwatch(struct lk_handler *handler, int fd);

#endif
