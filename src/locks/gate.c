/*
 * gate.c - a FIFO of threads, each with a condition of its own, so that a
 * release wakes exactly the one whose turn it is.
 */
#include "locks/gate.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "sqlock_driver.h"

void lk_waiter_init(struct lk_waiter *waiter, int64_t wait_ms,
                    const sqlock_acquire_options *options)
{
    pthread_condattr_t attributes;

    memset(waiter, 0, sizeof *waiter);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&waiter->called, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    waiter->wait_ms = wait_ms;
    waiter->deadline_ns = wait_ms == SQLOCK_FOREVER
                              ? LK_NEVER
                              : lk_after_ms(sqlock_monotonic_ns(), wait_ms);
    waiter->options = options;
}

void lk_waiter_clear(struct lk_waiter *waiter)
{
    (void)pthread_cond_destroy(&waiter->called);
}

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

enum lk_call lk_gate_wait(struct lk_gate *gate, pthread_mutex_t *mutex,
                          struct lk_waiter *waiter)
{
    struct timespec at = lk_timespec(waiter->deadline_ns);
    int rc = 0;

    waiter->call = LK_CALL_NONE;
    waiter->is_served = false;
    append_waiter(gate, waiter);
    while (waiter->call == LK_CALL_NONE &&
           (rc != ETIMEDOUT || waiter->is_served)) {
        if (waiter->deadline_ns == LK_NEVER || waiter->is_served)
            rc = pthread_cond_wait(&waiter->called, mutex);
        else
            rc = pthread_cond_timedwait(&waiter->called, mutex, &at);
    }
    if (waiter->call == LK_CALL_NONE)
        unlink_waiter(gate, waiter);
    return waiter->call;
}

struct lk_waiter *lk_gate_take(struct lk_gate *gate)
{
    struct lk_waiter *waiter = gate->first;

    if (waiter != NULL)
        unlink_waiter(gate, waiter);
    return waiter;
}

void lk_gate_call(struct lk_waiter *waiter, enum lk_call call)
{
    waiter->call = call;
    pthread_cond_signal(&waiter->called);
}

void lk_gate_wake_all(struct lk_gate *gate)
{
    struct lk_waiter *waiter;

    while ((waiter = lk_gate_take(gate)) != NULL)
        lk_gate_call(waiter, LK_CALL_LOOK);
}

bool lk_gate_is_empty(const struct lk_gate *gate)
{
    return gate->first == NULL;
}
