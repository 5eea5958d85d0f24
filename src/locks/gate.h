/*
 * gate.h - the queue of a process's own threads in front of a lock: first come,
 * first served
 */
#ifndef LK_GATE_H
#define LK_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "sqlock.h"

enum lk_call {
    LK_CALL_NONE,   /* the deadline came first */
    LK_CALL_TURN,   /* it is this thread's turn, and nobody else's */
    LK_CALL_LOOK,   /* something changed: look again */
    LK_CALL_GRANTED /* the lock was handed over to it */
};

/* A thread that wants a lock; on its own stack, for the whole acquisition. */
struct lk_waiter {
    struct lk_waiter *next, *previous;
    pthread_cond_t called;
    enum lk_call call;
    bool is_served;  /* the lock is being handed over to it */
    uint64_t thread; /* lk_thread_id() of who will own it */
    int64_t wait_ms;
    int64_t deadline_ns;                   /* CLOCK_MONOTONIC */
    const sqlock_acquire_options *options; /* complete; NULL: a hand-over is not
                                              for it */
};

struct lk_gate {
    struct lk_waiter *first, *last;
};

void lk_waiter_init(struct lk_waiter *waiter, int64_t wait_ms,
                    const sqlock_acquire_options *options);
void lk_waiter_clear(struct lk_waiter *waiter);

/* All that follows with the lock's mutex held. */

/* Wait at the end of the queue until called or the deadline; who is being served
 * then waits for what comes of it. */
enum lk_call lk_gate_wait(struct lk_gate *gate, pthread_mutex_t *mutex,
                          struct lk_waiter *waiter);

/* The first one leaves the queue; NULL: nobody waits. */
struct lk_waiter *lk_gate_take(struct lk_gate *gate);

/* Let one go on that has left the queue. */
void lk_gate_call(struct lk_waiter *waiter, enum lk_call call);

/* Let everybody look again. */
void lk_gate_wake_all(struct lk_gate *gate);

bool lk_gate_is_empty(const struct lk_gate *gate);

#endif
