/*
 * queue_wait.h - wait in the database's queue for another process
 *
 * Without a wait queue, or a connection for it, the row is polled (poller.h).
 * The row decides in any case; the queue is a hint.
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

/* Way to wait. */
enum lk_queue_way {
    LK_QUEUE_SHORT, /* in the queue, for a second or the lease's rest */
    /* until the lease's end, again whenever it is renewed */
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
    /* the holder has no queue lock and will not notify: poll the row once */
    bool is_silent;
};

void lk_queue_begin(struct lk_queue_wait *wait, struct lk_part *part);

/* Tell whether there is a wait queue, with a connection for it. */
bool lk_queue_is_there(struct lk_queue_wait *wait);

/* Wait until a claim may succeed.  0; enum lk_poll_until: poll the row instead,
 * until it is free, or has another holder, which will notify; ETIMEDOUT,
 * ECANCELED, or a result of lk_row_read(). */
int lk_queue_await(struct lk_queue_wait *wait, sqlock_error *err);

/* End the wait with that result.  0: a lease was granted; *place gets its queue
 * lock. */
void lk_queue_finish(struct lk_queue_wait *wait, struct lk_place *place,
                     int rc);

#endif
