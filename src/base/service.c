/*
 * service.c - run handlers in a thread
 *
 * The thread sleeps in epoll on a timerfd, because a condition variable cannot
 * wait on CLOCK_BOOTTIME.  Other threads wake it by setting the timer to the
 * shortest time.
 */
#include "base/service.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

#define EVENTS_AT_ONCE 64

void lk_service_init(struct lk_service *service)
{
    memset(service, 0, sizeof *service);
    service->epoll = -1;
    service->timer = -1;
    (void)pthread_mutex_init(&service->mutex, NULL);
    (void)pthread_cond_init(&service->done, NULL);
}

/* --- the thread; callers hold the mutex, except where stated --- */

/* Set the timer to a point of CLOCK_BOOTTIME, which may be past, or disarm it
 * (LK_NEVER).  The kernel is given the time that is left, since libfaketime,
 * under which applications are tested, would shift a point in time. */
static void set_timer(struct lk_service *service, int64_t at_ns)
{
    struct itimerspec at;
    int64_t left_ns = at_ns - lk_boottime_ns();

    memset(&at, 0, sizeof at);
    if (at_ns != LK_NEVER) /* all zero would disarm the timer */
        at.it_value = lk_timespec(left_ns > 0 ? left_ns : 1);
    (void)timerfd_settime(service->timer, 0, &at, NULL);
    service->wakes_ns = at_ns;
}

/* Note that a handler is going to be called, and release the mutex for the
 * call. */
static void begin_call(struct lk_service *service, struct lk_handler *handler)
{
    service->running = handler;
    pthread_mutex_unlock(&service->mutex);
}

/* Take the mutex again, and note the end of a call.  Return false if the
 * handler stopped itself during the call: it may have been freed since. */
static bool end_call(struct lk_service *service,
                     const struct lk_handler *handler)
{
    bool is_there;

    pthread_mutex_lock(&service->mutex);
    is_there = service->running == handler;
    service->running = NULL;
    pthread_cond_broadcast(&service->done);
    return is_there;
}

static void run_due(struct lk_service *service, struct lk_handler *handler)
{
    int64_t next_ns;

    handler->due_ns = LK_NEVER;
    /* To the end of the list, for round-robin. */
    DL_DELETE2(service->listed, handler, previous, next);
    DL_APPEND2(service->listed, handler, previous, next);
    begin_call(service, handler);
    next_ns = handler->run(handler->owner);
    if (end_call(service, handler))
        handler->due_ns = lk_sooner(handler->due_ns, next_ns);
}

/* Return the due handler that was run longest ago.  If none is due, return
 * NULL, and the time of the next one in *soonest_ns. */
static struct lk_handler *next_due(const struct lk_service *service,
                                   int64_t *soonest_ns)
{
    struct lk_handler *handler;
    int64_t now = lk_boottime_ns();

    *soonest_ns = LK_NEVER;
    DL_FOREACH(service->listed, handler)
    {
        if (handler->due_ns <= now)
            return handler;
        *soonest_ns = lk_sooner(*soonest_ns, handler->due_ns);
    }
    return NULL;
}

/* Pack the handler's number and the descriptor into an event's tag.  The tag is
 * no pointer, since the handler may be freed before the event arrives. */
static uint64_t tag_of(uint32_t number, int fd)
{
    return (uint64_t)number << 32 | (uint32_t)fd;
}

static void tell_ready(struct lk_service *service, uint64_t tag)
{
    uint32_t number = (uint32_t)(tag >> 32);
    int fd = (int)(uint32_t)tag;
    struct lk_handler *handler;

    if (number == 0) { /* the timer */
        uint64_t count;

        (void)!read(fd, &count, sizeof count);
        return;
    }
    DL_SEARCH_SCALAR(service->listed, handler, number, number);
    if (handler == NULL)
        return;
    begin_call(service, handler);
    handler->ready(handler->owner, fd);
    (void)end_call(service, handler);
}

/* Process the events that epoll reports; sleep until there are some if
 * `may_sleep`. */
static void take_events(struct lk_service *service, bool may_sleep)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int count;

    pthread_mutex_unlock(&service->mutex);
    count =
        epoll_wait(service->epoll, events, EVENTS_AT_ONCE, may_sleep ? -1 : 0);
    pthread_mutex_lock(&service->mutex);
    service->wakes_ns = 0;
    for (int i = 0; i < count && service->state == LK_SERVICE_RUNNING; i++)
        tell_ready(service, events[i].data.u64);
}

static void *serve(void *argument)
{
    struct lk_service *service = argument;

    pthread_mutex_lock(&service->mutex);
    while (service->state == LK_SERVICE_RUNNING) {
        int64_t soonest_ns;
        struct lk_handler *handler = next_due(service, &soonest_ns);

        if (handler != NULL)
            run_due(service, handler);
        else
            set_timer(service, soonest_ns);
        take_events(service, handler == NULL);
    }
    pthread_mutex_unlock(&service->mutex);
    return NULL;
}

/* --- starting and stopping --- */

static void close_descriptors(struct lk_service *service)
{
    if (service->epoll >= 0)
        (void)close(service->epoll);
    if (service->timer >= 0)
        (void)close(service->timer);
    service->epoll = -1;
    service->timer = -1;
}

static int open_descriptors(struct lk_service *service, sqlock_error *err)
{
    struct epoll_event event = {.events = EPOLLIN};

    service->epoll = epoll_create1(EPOLL_CLOEXEC);
    service->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    event.data.u64 = tag_of(0, service->timer);
    if (service->epoll < 0 || service->timer < 0 ||
        epoll_ctl(service->epoll, EPOLL_CTL_ADD, service->timer, &event) < 0)
        return lk_error_limit(err, "cannot open a timer", errno);
    return 0;
}

/* Start the thread, unless it is running.  The caller holds the mutex. */
static int start(struct lk_service *service, sqlock_error *err)
{
    int rc;

    if (service->state == LK_SERVICE_RUNNING)
        return 0;
    if (service->state == LK_SERVICE_STOPPED)
        return lk_error(err, SQLOCK_ERESOURCE, "the registry is closing");
    rc = open_descriptors(service, err);
    if (rc == 0)
        rc = lk_thread_start(&service->thread, serve, service, err);
    if (rc == 0)
        service->state = LK_SERVICE_RUNNING;
    else
        close_descriptors(service);
    return rc;
}

void lk_service_stop(struct lk_service *service)
{
    bool was_running;

    pthread_mutex_lock(&service->mutex);
    was_running = service->state == LK_SERVICE_RUNNING;
    service->state = LK_SERVICE_STOPPED;
    if (was_running)
        set_timer(service, 0);
    pthread_mutex_unlock(&service->mutex);
    if (was_running) {
        pthread_join(service->thread, NULL);
        close_descriptors(service);
    }
}

/* --- handlers --- */

void lk_handler_init(struct lk_handler *handler, struct lk_service *service,
                     int64_t (*run)(void *), void (*ready)(void *, int),
                     void *owner)
{
    memset(handler, 0, sizeof *handler);
    handler->service = service;
    handler->run = run;
    handler->ready = ready;
    handler->owner = owner;
}

int lk_handler_start(struct lk_handler *handler, sqlock_error *err)
{
    struct lk_service *service = handler->service;
    int rc;

    pthread_mutex_lock(&service->mutex);
    rc = start(service, err);
    if (rc == 0 && handler->number == 0) {
        handler->number = ++service->handlers;
        handler->due_ns = LK_NEVER;
        DL_APPEND2(service->listed, handler, previous, next);
    }
    pthread_mutex_unlock(&service->mutex);
    return rc;
}

void lk_handler_stop(struct lk_handler *handler)
{
    struct lk_service *service = handler->service;

    pthread_mutex_lock(&service->mutex);
    if (handler->number != 0) {
        DL_DELETE2(service->listed, handler, previous, next);
        handler->number = 0;
    }
    if (service->running == handler &&
        pthread_equal(service->thread, pthread_self()))
        service->running = NULL;
    while (service->running == handler)
        pthread_cond_wait(&service->done, &service->mutex);
    pthread_mutex_unlock(&service->mutex);
}

void lk_handler_wake_at(struct lk_handler *handler, int64_t boot_ns)
{
    struct lk_service *service = handler->service;

    pthread_mutex_lock(&service->mutex);
    if (handler->number != 0 && boot_ns < handler->due_ns) {
        handler->due_ns = boot_ns;
        if (service->state == LK_SERVICE_RUNNING && boot_ns < service->wakes_ns)
            set_timer(service, boot_ns);
    }
    pthread_mutex_unlock(&service->mutex);
}

void lk_handler_wake(struct lk_handler *handler)
{
    lk_handler_wake_at(handler, 0);
}

int lk_handler_watch(struct lk_handler *handler, int fd, sqlock_error *err)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
    int epoll = handler->service->epoll;

    event.data.u64 = tag_of(handler->number, fd);
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0)
        return 0;
    /* The descriptor is being watched, or was until it was ready. */
    if (errno == EEXIST && epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) == 0)
        return 0;
    return lk_error_limit(err, "cannot watch a descriptor", errno);
}

void lk_handler_unwatch(struct lk_handler *handler, int fd)
{
    /* This fails if the descriptor has been closed. */
    (void)epoll_ctl(handler->service->epoll, EPOLL_CTL_DEL, fd, NULL);
}
