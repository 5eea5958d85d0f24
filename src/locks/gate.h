/*
 * gate.h - the queue of a process's own threads in front of a lock: first come,
 * first served
 */
#ifndef LK_GATE_H
#define LK_GATE_H

#include <pthread.h>
#include <stdbool.h>

#include "locks/waiter.h"

struct lk_gate {
    struct lk_waiter *first, *last;
};

/* All that follows with the lock's mutex held. */

void lk_gate_append(struct lk_gate *gate, struct lk_waiter *waiter);
void lk_gate_unlink(struct lk_gate *gate, struct lk_waiter *waiter);

/* In the queue, wait until called or that point of CLOCK_MONOTONIC, and perhaps
 * not as long. */
void lk_gate_wait(pthread_mutex_t *mutex, struct lk_waiter *waiter,
                  int64_t until_ns);

/* Let the first one look, which stays in the queue. */
void lk_gate_stir(const struct lk_gate *gate);

/* The first one leaves the queue; NULL: nobody waits. */
struct lk_waiter *lk_gate_take(struct lk_gate *gate);

/* Let one go on that has left the queue. */
void lk_gate_call(struct lk_waiter *waiter, enum lk_call call);

/* Let everybody go on. */
void lk_gate_call_all(struct lk_gate *gate, enum lk_call call);

bool lk_gate_is_empty(const struct lk_gate *gate);

/* By somebody who has not abandoned it. */
bool lk_gate_is_waited_at(const struct lk_gate *gate);

#endif
