/*
 * queue_wait.h - wait in the database's queue for another process
 *
 * Without a wait queue, or a connection for it, the row is polled (poller.h).
 * Only the row decides who has the lock; the queue is a hint when to claim.
 */
#ifndef LK_QUEUE_WAIT_H
#define LK_QUEUE_WAIT_H

#include "lease/queue.h"
#include "wait/entry.h"

/* Place of a session in the wait queue. */
enum lk_queue_place {
    LK_QUEUE_NOWHERE,
    LK_QUEUE_SUBSCRIBED, /* is notified of a release */
    LK_QUEUE_BEHIND,     /* queued, without the queue lock, and keeps its place
                            while the row is read */
    LK_QUEUE_FIRST       /* has the queue lock */
};

/* How to wait. */
enum lk_queue_way {
    /* in the queue, until the lease's end but for a second at most */
    LK_QUEUE_SHORT,
    /* until the lease's end, and on if the lease was renewed meanwhile */
    LK_QUEUE_LONG,
    LK_QUEUE_OFF /* without the wait queue */
};

/* The wait of one part of an acquisition. */
struct lk_queue_wait {
    struct lk_part *part;
    int64_t number;
    struct lk_connection *connection; /* NULL: none was needed yet */
    enum lk_queue_place place;
    enum lk_queue_way way;
    /* the holder has no queue lock and will not notify: poll the row until the
     * holder changes */
    bool is_silent;
};

/* Begin a wait of that part, without sending anything. */
void lk_queue_begin(struct lk_queue_wait *wait, struct lk_part *part);

/* Return whether the wait queue can be used, after taking a connection for it,
 * which may open one.  False for a request that must not block. */
bool lk_queue_is_there(struct lk_queue_wait *wait);

/* Wait until a claim may succeed.  Return 0: claim; a value of enum
 * lk_poll_until: wait by lk_poller_begin() instead, until the row is as that
 * value says; or ETIMEDOUT, ECANCELED, or an error of lk_row_read(). */
int lk_queue_await(struct lk_queue_wait *wait, sqlock_error *err);

/* End the wait.  rc 0 means that a lease was granted: then *place gets the
 * queue lock, if this session has it.  With any other rc the queue lock is
 * given up. */
void lk_queue_finish(struct lk_queue_wait *wait, struct lk_place *place,
                     int rc);

#endif
