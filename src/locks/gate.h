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

struct lk_connection;

enum lk_call {
    LK_CALL_NONE,    /* the deadline came first */
    LK_CALL_TURN,    /* it is this one's turn, and nobody else's */
    LK_CALL_LOOK,    /* something changed: look again */
    LK_CALL_GRANTED, /* the lock was handed over to it */
    LK_CALL_CANCELED
};

/* A place in the lookout's list (lookout.h). */
struct lk_post {
    struct lk_waiter *next, *previous;
    struct sqlock_lock *lock;
    int64_t due_ns; /* when to look next, CLOCK_MONOTONIC */
    bool is_listed;
    bool tells_change; /* of holder, too */
    char holder[SQLOCK_KEY_SIZE];
    /* an expired row as it was first seen */
    char client_id[SQLOCK_KEY_SIZE];
    int64_t expires_at_us;
    int64_t since_ns; /* 0: none yet */
};

/* What a wait returns instead of waiting, to who is woken by a call. */
#define LK_PARKED 1

/* Who wants a lock, for the whole acquisition: a thread, which sleeps on the
 * conditions, or a request, which is woken by a call. */
struct lk_waiter {
    struct lk_waiter *next, *previous;
    pthread_cond_t called;
    /* NULL: a thread.  With any mutexes held; takes the runner's only. */
    void (*on_wake)(struct lk_waiter *waiter);
    enum lk_call call;
    bool is_queued;
    bool may_not_block; /* at a doorbell: no thread would be left for others */
    bool is_served;     /* the lock is being handed over to it */
    uint64_t owner;     /* who will own it: lk_owner_id() */
    int64_t wait_ms;
    int64_t deadline_ns;                   /* CLOCK_MONOTONIC */
    const sqlock_acquire_options *options; /* complete; NULL: a hand-over is not
                                              for it */

    pthread_mutex_t mutex; /* of what follows; behind a lock's */
    pthread_cond_t woken;
    bool is_cancelled;
    struct sqlock_lock *queued_at;  /* or about to be */
    struct lk_connection *waits_on; /* blocked in the database; NULL */
    bool is_looking; /* parked: begun at the lookout, and not ended */
    bool is_told;    /* by the lookout: told_rc */
    int told_rc;
    sqlock_error told;

    struct lk_post post; /* under the lookout's mutex */
    bool
        has_cancel_fd; /* never changes; the rest under the canceller's mutex */
    struct {
        struct lk_waiter *next, *previous;
        int fd; /* the caller's; 0: none, or it was cancelled */
    } cancel;
};

struct lk_gate {
    struct lk_waiter *first, *last;
};

void lk_waiter_init(struct lk_waiter *waiter, int64_t wait_ms,
                    const sqlock_acquire_options *options);
void lk_waiter_clear(struct lk_waiter *waiter);

/* Called with the waiter's mutex held: something has changed for it. */
void lk_waiter_wake(struct lk_waiter *waiter);

/* All that follows with the lock's mutex held. */

void lk_gate_append(struct lk_gate *gate, struct lk_waiter *waiter);
void lk_gate_unlink(struct lk_gate *gate, struct lk_waiter *waiter);

/* Wait at the end of the queue until called or the deadline; who is being served
 * then waits for what comes of it. */
enum lk_call lk_gate_wait(struct lk_gate *gate, pthread_mutex_t *mutex,
                          struct lk_waiter *waiter);

/* The first one leaves the queue; NULL: nobody waits. */
struct lk_waiter *lk_gate_take(struct lk_gate *gate);

/* Let one go on that has left the queue. */
void lk_gate_call(struct lk_waiter *waiter, enum lk_call call);

/* Let everybody go on. */
void lk_gate_call_all(struct lk_gate *gate, enum lk_call call);

bool lk_gate_is_empty(const struct lk_gate *gate);
size_t lk_gate_count(const struct lk_gate *gate);

#endif
