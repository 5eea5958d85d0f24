/*
 * service.h - one thread of the library, and the handlers that it runs
 *
 * A handler is a member of the struct that it works for.  The thread runs it at
 * a point of CLOCK_BOOTTIME, which goes on while the machine is suspended
 * (F16), after a call of lk_handler_wake(), and when a descriptor that the
 * handler watches is ready.  Handlers of one service run one after another,
 * round-robin, so that none waits for more than one run of each of the others.
 *
 * The thread is started with the first handler, and ends in lk_service_stop().
 * It sleeps in epoll_wait() on a timerfd and the descriptors, and makes no
 * system call while nothing is due.  It has all signals blocked.
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
    pthread_cond_t done; /* signalled when a handler has finished */
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

/* Wait until the running handler has finished, and end the thread.  The caller
 * must not be a handler of the service.  No handler can be started afterwards.
 * A second call does nothing. */
void lk_service_stop(struct lk_service *service);

struct lk_handler {
    struct lk_service *service;
    void *owner; /* argument of both functions */
    /* Does the work.  Returns when it is to be called again (CLOCK_BOOTTIME),
     * or LK_NEVER; it is called earlier if the handler is woken.  NULL if the
     * handler only watches descriptors. */
    int64_t (*run)(void *owner);
    /* Called when a watched descriptor is readable, hung up or broken.  NULL if
     * the handler watches none. */
    void (*ready)(void *owner, int fd);
    /* Guarded by the service's mutex. */
    struct lk_handler *next, *previous;
    uint32_t number; /* in the service, from 1; 0: not started */
    int64_t due_ns;
};

void lk_handler_init(struct lk_handler *handler, struct lk_service *service,
                     int64_t (*run)(void *), void (*ready)(void *, int),
                     void *owner);

/* Start a handler, and the thread if it is the first one.  The handler runs
 * when it is woken.  A second call does nothing.  Return 0, or SQLOCK_ERESOURCE
 * if no thread or descriptor can be had, or the service was stopped. */
int lk_handler_start(struct lk_handler *handler, sqlock_error *err);

/* Stop a handler: wait until it is not running, after which it will not be run
 * and may be freed.  A handler may stop itself during its own run, which then
 * continues.  Any other caller must not hold a mutex that the run takes. */
void lk_handler_stop(struct lk_handler *handler);

/* Let the thread run the handler: lk_handler_wake() at once, and
 * lk_handler_wake_at() at the latest at boot_ns (CLOCK_BOOTTIME).  Both may be
 * called by any thread and with any mutex held, make a system call only if the
 * thread would sleep for longer, and ignore a handler that is not started. */
void lk_handler_wake(struct lk_handler *handler);
void lk_handler_wake_at(struct lk_handler *handler, int64_t boot_ns);

/* Watch a descriptor until it is ready, and then call `ready` once; to go on
 * watching, call this function again.  The handler must be started.  Return 0,
 * or SQLOCK_ERESOURCE if the kernel refuses. */
int lk_handler_watch(struct lk_handler *handler, int fd, sqlock_error *err);

/* Stop watching a descriptor, which may have been closed.  One more call of
 * `ready` for it may be under way or follow. */
void lk_handler_unwatch(struct lk_handler *handler, int fd);

#endif
