/*
 * fifo.h - the queue of a process's own threads in front of a lock: first come,
 * first served
 */
#ifndef LK_FIFO_H
#define LK_FIFO_H

#include <pthread.h>
#include <stdbool.h>

#include "wait/waiter.h"

struct lk_fifo {
    struct lk_waiter *first, *last;
};

/* All that follows with the lock's mutex held. */

void lk_fifo_append(struct lk_fifo *fifo, struct lk_waiter *waiter);
void lk_fifo_unlink(struct lk_fifo *fifo, struct lk_waiter *waiter);

/* In the queue, wait until called or that point of CLOCK_MONOTONIC, and perhaps
 * not as long. */
void lk_fifo_wait(pthread_mutex_t *mutex, struct lk_waiter *waiter,
                  int64_t until_ns);

/* Let the first one look, which stays in the queue. */
void lk_fifo_wake_first(const struct lk_fifo *fifo);

/* The first one leaves the queue; NULL: nobody waits. */
struct lk_waiter *lk_fifo_take(struct lk_fifo *fifo);

/* Let one go on that has left the queue. */
void lk_fifo_wake(struct lk_waiter *waiter, enum lk_wake_reason reason);

/* Let all of that owner, or (0) everybody, go on. */
void lk_fifo_wake_all(struct lk_fifo *fifo, uint64_t owner,
                      enum lk_wake_reason reason);

bool lk_fifo_is_empty(const struct lk_fifo *fifo);

/* Whether that owner, or (0) anybody, waits there and has not abandoned it. */
bool lk_fifo_has_waiters(const struct lk_fifo *fifo, uint64_t owner);

#endif
