/*
 * queue_wait.h - waiting in the database's queue for another process
 *
 * Where there is none, or none is left for this wait, the row is polled
 * (row.h).  The lease's row decides in any case.
 */
#ifndef LK_QUEUE_WAIT_H
#define LK_QUEUE_WAIT_H

#include "lease/queue.h"
#include "wait/entry.h"

/* What a session has of the wait queue. */
enum lk_queue_place {
    LK_QUEUE_NOWHERE,
    LK_QUEUE_SUBSCRIBED, /* it is notified of a release */
    LK_QUEUE_FIRST       /* the queue lock is this session's */
};

/* How to wait. */
enum lk_queue_way {
    LK_QUEUE_SHORT, /* in the queue, for a second */
    LK_QUEUE_LONG,  /* until the lease's end, as often as it is renewed */
    LK_QUEUE_OFF    /* without: there is no wait queue for this wait */
};

/* Instead of a result: the row is to be polled now, until it is free, or
 * (LK_QUEUE_POLL_CHANGE) has another holder, who will notify. */
#define LK_QUEUE_POLL 2
#define LK_QUEUE_POLL_CHANGE 3

/* The wait of one part of an acquisition. */
struct lk_queue_wait {
    struct lk_part *part;
    int64_t number;
    struct lk_connection *connection; /* NULL: none was needed yet */
    enum lk_queue_place place;
    enum lk_queue_way way;
    bool is_silent; /* the holder has no queue lock, and will not notify: it is
                       to be polled once */
    unsigned looks; /* with the queue lock, at a row that is taken all the
                       same */
};

void lk_queue_begin(struct lk_queue_wait *wait, struct lk_part *part);

/* Whether there is a queue to wait in, with a connection for it. */
bool lk_queue_is_there(struct lk_queue_wait *wait);

/* Until it makes sense to claim: 0; LK_QUEUE_POLL, LK_QUEUE_POLL_CHANGE;
 * ETIMEDOUT, ECANCELED, or as lk_row_read(). */
int lk_queue_await(struct lk_queue_wait *wait, sqlock_error *err);

/* That claim was refused. */
void lk_queue_refused(struct lk_queue_wait *wait);

/* The wait is over, with that result: 0 grants a lease, whose queue lock is
 * *place. */
void lk_queue_finish(struct lk_queue_wait *wait, struct lk_place *place,
                     int rc);

#endif
