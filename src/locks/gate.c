/*
 * gate.c - a FIFO of threads, each with a condition of its own, so that a
 * release wakes exactly the one whose turn it is.
 */
#include "locks/gate.h"

#include <errno.h>

#include "base/clock.h"

static void unlink_waiter(struct lk_gate *gate, struct lk_waiter *waiter)
{
    if (waiter->previous != NULL)
        waiter->previous->next = waiter->next;
    else
        gate->first = waiter->next;
    if (waiter->next != NULL)
        waiter->next->previous = waiter->previous;
    else
        gate->last = waiter->previous;
}

static void append_waiter(struct lk_gate *gate, struct lk_waiter *waiter)
{
    waiter->next = NULL;
    waiter->previous = gate->last;
    if (gate->last != NULL)
        gate->last->next = waiter;
    else
        gate->first = waiter;
    gate->last = waiter;
}

static void init_waiter(struct lk_waiter *waiter)
{
    pthread_condattr_t attributes;

    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&waiter->called, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    waiter->call = LK_CALL_NONE;
}

enum lk_call lk_gate_wait(struct lk_gate *gate, pthread_mutex_t *mutex,
                          int64_t deadline_ns)
{
    struct timespec at = lk_timespec(deadline_ns);
    struct lk_waiter waiter;
    int rc = 0;

    init_waiter(&waiter);
    append_waiter(gate, &waiter);
    while (waiter.call == LK_CALL_NONE && rc != ETIMEDOUT) {
        if (deadline_ns == LK_NEVER)
            rc = pthread_cond_wait(&waiter.called, mutex);
        else
            rc = pthread_cond_timedwait(&waiter.called, mutex, &at);
    }
    if (waiter.call == LK_CALL_NONE)
        unlink_waiter(gate, &waiter);
    (void)pthread_cond_destroy(&waiter.called);
    return waiter.call;
}

static bool call_first(struct lk_gate *gate, enum lk_call call)
{
    struct lk_waiter *waiter = gate->first;

    if (waiter == NULL)
        return false;
    unlink_waiter(gate, waiter);
    waiter->call = call;
    pthread_cond_signal(&waiter->called);
    return true;
}

bool lk_gate_pass(struct lk_gate *gate)
{
    return call_first(gate, LK_CALL_TURN);
}

void lk_gate_wake_all(struct lk_gate *gate)
{
    while (call_first(gate, LK_CALL_LOOK))
        ;
}

bool lk_gate_is_empty(const struct lk_gate *gate)
{
    return gate->first == NULL;
}
