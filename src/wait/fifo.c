/*
 * fifo.c - a FIFO of threads, each with a condition of its own, so that a
 * release wakes exactly the one whose turn it is.
 */
#include "wait/fifo.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "sqlock_driver.h"

void lk_fifo_unlink(struct lk_fifo *fifo, struct lk_waiter *waiter)
{
    if (waiter->previous != NULL)
        waiter->previous->next = waiter->next;
    else
        fifo->first = waiter->next;
    if (waiter->next != NULL)
        waiter->next->previous = waiter->previous;
    else
        fifo->last = waiter->previous;
    waiter->is_queued = false;
}

void lk_fifo_append(struct lk_fifo *fifo, struct lk_waiter *waiter)
{
    waiter->reason = LK_WAKE_NONE;
    waiter->is_granting = false;
    waiter->is_queued = true;
    waiter->next = NULL;
    waiter->previous = fifo->last;
    if (fifo->last != NULL)
        fifo->last->next = waiter;
    else
        fifo->first = waiter;
    fifo->last = waiter;
}

void lk_fifo_wait(pthread_mutex_t *mutex, struct lk_waiter *waiter,
                  int64_t until_ns)
{
    struct timespec at = lk_timespec(until_ns);

    if (until_ns == LK_NEVER)
        (void)pthread_cond_wait(&waiter->fifo_woken, mutex);
    else
        (void)pthread_cond_timedwait(&waiter->fifo_woken, mutex, &at);
}

void lk_fifo_wake_first(const struct lk_fifo *fifo)
{
    struct lk_waiter *first = fifo->first;

    if (first != NULL && first->on_wake != NULL)
        first->on_wake(first);
    else if (first != NULL)
        pthread_cond_signal(&first->fifo_woken);
}

struct lk_waiter *lk_fifo_take(struct lk_fifo *fifo)
{
    struct lk_waiter *waiter = fifo->first;

    if (waiter != NULL)
        lk_fifo_unlink(fifo, waiter);
    return waiter;
}

void lk_fifo_wake(struct lk_waiter *waiter, enum lk_wake_reason reason)
{
    waiter->reason = reason;
    if (waiter->on_wake != NULL)
        waiter->on_wake(waiter);
    else
        pthread_cond_signal(&waiter->fifo_woken);
}

void lk_fifo_wake_all(struct lk_fifo *fifo, uint64_t owner,
                      enum lk_wake_reason reason)
{
    struct lk_waiter *waiter;
    struct lk_waiter *next;

    for (waiter = fifo->first; waiter != NULL; waiter = next) {
        next = waiter->next;
        if (owner != 0 && waiter->owner != owner)
            continue;
        lk_fifo_unlink(fifo, waiter);
        lk_fifo_wake(waiter, reason);
    }
}

bool lk_fifo_is_empty(const struct lk_fifo *fifo)
{
    return fifo->first == NULL;
}

bool lk_fifo_has_waiters(const struct lk_fifo *fifo, uint64_t owner)
{
    const struct lk_waiter *at = fifo->first;

    while (at != NULL &&
           (at->is_abandoned || (owner != 0 && at->owner != owner)))
        at = at->next;
    return at != NULL;
}
