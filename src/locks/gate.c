/*
 * gate.c - a FIFO of threads, each with a condition of its own, so that a
 * release wakes exactly the one whose turn it is.
 */
#include "locks/gate.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "sqlock_driver.h"

void lk_gate_unlink(struct lk_gate *gate, struct lk_waiter *waiter)
{
    if (waiter->previous != NULL)
        waiter->previous->next = waiter->next;
    else
        gate->first = waiter->next;
    if (waiter->next != NULL)
        waiter->next->previous = waiter->previous;
    else
        gate->last = waiter->previous;
    waiter->is_queued = false;
}

void lk_gate_append(struct lk_gate *gate, struct lk_waiter *waiter)
{
    waiter->call = LK_CALL_NONE;
    waiter->is_served = false;
    waiter->is_queued = true;
    waiter->next = NULL;
    waiter->previous = gate->last;
    if (gate->last != NULL)
        gate->last->next = waiter;
    else
        gate->first = waiter;
    gate->last = waiter;
}

void lk_gate_wait(pthread_mutex_t *mutex, struct lk_waiter *waiter,
                  int64_t until_ns)
{
    struct timespec at = lk_timespec(until_ns);

    if (until_ns == LK_NEVER)
        (void)pthread_cond_wait(&waiter->called, mutex);
    else
        (void)pthread_cond_timedwait(&waiter->called, mutex, &at);
}

void lk_gate_stir(const struct lk_gate *gate)
{
    struct lk_waiter *first = gate->first;

    if (first != NULL && first->on_wake != NULL)
        first->on_wake(first);
    else if (first != NULL)
        pthread_cond_signal(&first->called);
}

struct lk_waiter *lk_gate_take(struct lk_gate *gate)
{
    struct lk_waiter *waiter = gate->first;

    if (waiter != NULL)
        lk_gate_unlink(gate, waiter);
    return waiter;
}

void lk_gate_call(struct lk_waiter *waiter, enum lk_call call)
{
    waiter->call = call;
    if (waiter->on_wake != NULL)
        waiter->on_wake(waiter);
    else
        pthread_cond_signal(&waiter->called);
}

void lk_gate_call_all(struct lk_gate *gate, enum lk_call call)
{
    struct lk_waiter *waiter;

    while ((waiter = lk_gate_take(gate)) != NULL)
        lk_gate_call(waiter, call);
}

bool lk_gate_is_empty(const struct lk_gate *gate)
{
    return gate->first == NULL;
}

bool lk_gate_is_waited_at(const struct lk_gate *gate)
{
    const struct lk_waiter *at = gate->first;

    while (at != NULL && at->is_abandoned)
        at = at->next;
    return at != NULL;
}
