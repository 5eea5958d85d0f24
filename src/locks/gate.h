/*
 * gate.h - the queue of a process's own threads in front of a lock: first come,
 * first served
 */
#ifndef LK_GATE_H
#define LK_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum lk_call {
    LK_CALL_NONE, /* the deadline came first */
    LK_CALL_TURN, /* it is this thread's turn, and nobody else's */
    LK_CALL_LOOK  /* something changed: look again */
};

/* A thread that waits; on its own stack. */
struct lk_waiter {
    struct lk_waiter *next, *previous;
    pthread_cond_t called;
    enum lk_call call;
};

struct lk_gate {
    struct lk_waiter *first, *last;
};

/* All with the lock's mutex held. */

/* Wait at the end of the queue until called or the deadline. */
enum lk_call lk_gate_wait(struct lk_gate *gate, pthread_mutex_t *mutex,
                          int64_t deadline_ns);

/* Give the turn to the first one, who is then out of the queue; false: nobody
 * waits. */
bool lk_gate_pass(struct lk_gate *gate);

/* Let everybody look again. */
void lk_gate_wake_all(struct lk_gate *gate);

bool lk_gate_is_empty(const struct lk_gate *gate);

#endif
