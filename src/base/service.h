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
    LK_SERVICE_IDLE,    /* no thread: no handler has been started yet */
    LK_SERVICE_RUNNING, /* the thread runs handlers, or sleeps */
    LK_SERVICE_STOPPED  /* no handler is run; the thread ends, or has ended */
};

struct lk_handler;

struct lk_service {
    pthread_mutex_t mutex;
    pthread_cond_t done; /* a handler is not running any more */
    enum lk_service_state state;
    pthread_t thread;
    int epoll;
    int timer;         /* timerfd */
    int64_t wakes_ns;  /* when the thread looks next; 0: it is awake */
    uint32_t handlers; /* how many there have been */
    struct lk_handler *listed;
    struct lk_handler *running;
};

void lk_service_init(struct lk_service *service);

/* Let the running handler finish, and end the thread.  Called from another
 * thread, once or more.  No handler can be started afterwards. */
void lk_service_stop(struct lk_service *service);

struct lk_handler {
    struct lk_service *service;
    void *owner; /* what both functions are called with */
    /* Returns when to run next (CLOCK_BOOTTIME), at the latest: it is run
     * sooner when it was woken during the run.  LK_NEVER: when woken.  NULL:
     * nobody wakes it. */
    int64_t (*run)(void *owner);
    /* A descriptor is readable, hung up or broken; or NULL: it has none. */
    void (*ready)(void *owner, int fd);
    /* Under the service's mutex. */
    struct lk_handler *next, *previous;
    uint32_t number; /* in the service, from 1 on; 0: not started */
    int64_t due_ns;
};

void lk_handler_init(struct lk_handler *handler, struct lk_service *service,
                     int64_t (*run)(void *), void (*ready)(void *, int),
                     void *owner);

/* Let the handler be run when it is woken.  Starting it again does nothing.
 * 0, ERESOURCE (no thread, no descriptor, or the service was stopped). */
int lk_handler_start(struct lk_handler *handler, sqlock_error *err);

/* Stop a handler: it is not run any more, and not running when this
 * returns.  A handler may stop itself in its own run, which then goes on.
 * Any other caller holds no mutex that the run takes. */
void lk_handler_stop(struct lk_handler *handler);

/* Run the handler soon, or at that point of CLOCK_BOOTTIME at the latest.  A
 * system call is made only where the thread would sleep for longer.  From
 * any thread, with any mutex held; does nothing to a handler that is not
 * started. */
void lk_handler_wake(struct lk_handler *handler);
void lk_handler_wake_at(struct lk_handler *handler, int64_t boot_ns);

/* Call `ready`, once, when the descriptor is ready; watch it again after
 * that.  The handler is started. 0, ERESOURCE. */
int lk_handler_watch(struct lk_handler *handler, int fd, sqlock_error *err);

/* Watch a descriptor no more; it may have been closed meanwhile.  One call
 * of `ready` may still be under way. */
void lk_handler_unwatch(struct lk_handler *handler, int fd);

#endif
