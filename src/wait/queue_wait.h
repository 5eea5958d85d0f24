/*
 * queue_wait.h - waiting in a queue for another process
 *
 * Where there is none, or none is left for this wait, the row is looked at
 * (wait.h).  The lease's row decides in any case.
 */
#ifndef LK_QUEUE_WAIT_H
#define LK_QUEUE_WAIT_H

#include "lease/queue.h"
#include "wait/entry.h"

/* One acquisition that waits. */
struct lk_queue_wait {
    struct lk_entry *entry;
    struct lk_waiter *self;
    int64_t number;
    struct lk_connection *connection; /* NULL: none was needed yet */
    bool has_turn;                    /* the queue lock is this session's */
    bool is_subscribed;
    bool is_slow;   /* the lock is held for long */
    bool is_off;    /* there is no wait queue for this wait */
    bool may_look;  /* who has the lock has no queue lock: once */
    unsigned looks; /* with the turn, at a row that is taken all the same */
};

void lk_queue_begin(struct lk_queue_wait *wait, struct lk_entry *entry,
                    struct lk_waiter *self);

/* Whether there is a queue to wait in, with a connection for it. */
bool lk_queue_is_there(struct lk_queue_wait *wait);

/* Until it makes sense to claim: 0; or as lk_wait_for_row(), which is called
 * again after LK_SUSPENDED. */
int lk_queue_await(struct lk_queue_wait *wait, sqlock_error *err);

/* That claim was refused. */
void lk_queue_refused(struct lk_queue_wait *wait);

/* The acquisition is over, with that result: 0 grants a lease, whose queue lock
 * is *place. */
void lk_queue_finish(struct lk_queue_wait *wait, struct lk_place *place,
                     int rc);

#endif
