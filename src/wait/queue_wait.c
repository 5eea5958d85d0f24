/*
 * queue_wait.c - wait in the database's queue
 *
 * A waiter reads from the row how long the lease lasts, and queues until the
 * lease's end, for a second at most.  If the waiter gets the queue lock, it
 * claims, and keeps the queue lock as long as its own lease; its release passes
 * the queue lock on.  Otherwise it reads the row again, and waits until the
 * lease's end.  A waiter that can subscribe sends nothing until then.  One that
 * queues reads the row now and then: when the lease of a stopped holder is
 * broken, that holder still keeps the queue lock.  If the row is free but the
 * queue lock did not come, the waiter claims without it.
 */
#include "wait/queue_wait.h"

#include <string.h>

#include "base/clock.h"
#include "lease/row.h"
#include "wait/peers.h"

#define FIRST_MS 1000
/* Longest single wait in a queue that does not keep places.  It is longer than
 * a second, because a waiter that reads the row between two waits is the last
 * in the queue afterwards. */
#define QUEUE_MS 5000

/* Numbers of pauses that a waiter with the queue lock makes while the row is
 * still taken.  They are of 0.5, 1, 2, ... ms, none longer than poll_ms; the
 * last one is of 4 ms where the wait goes on subscribed, of 1024 ms where it
 * would go on polling.  A release gives the queue lock away before its commit,
 * which a slow disk may delay. */
#define LOOKS_TO_SUBSCRIBE 4
#define LOOKS_TO_POLL 12
#define FIRST_LOOK_NS 500000

void lk_queue_begin(struct lk_queue_wait *wait, struct lk_part *part)
{
    const struct lk_store *store = part->entry->store;

    memset(wait, 0, sizeof *wait);
    wait->part = part;
    wait->number = lk_queue_number(store, part->entry->key);
    if (lk_wait_queue_of(store) == NULL ||
        store->options.waiting == SQLOCK_WAITING_POLL)
        wait->way = LK_QUEUE_OFF;
}

static struct lk_store *store_of(const struct lk_queue_wait *wait)
{
    return wait->part->entry->store;
}

static int64_t statement_deadline(const struct lk_queue_wait *wait)
{
    return lk_waiter_statement_deadline(wait->part->waiter, store_of(wait));
}

/* Return the deadline for opening a connection: the end of the wait, but at
 * least one statement's time from now. */
static int64_t open_until(const struct lk_queue_wait *wait)
{
    int64_t statement_ns = statement_deadline(wait);
    int64_t wait_ns = wait->part->waiter->deadline_ns;

    return wait_ns > statement_ns ? wait_ns : statement_ns;
}

/* End the session, and with it its queue lock, without a statement.  The server
 * notices the closed socket within a second, even while the session waits.
 * KILL would need another connection, which may lead to a different server,
 * where the session's number belongs to a stranger. */
static void drop(struct lk_queue_wait *wait)
{
    struct lk_connection *connection = wait->connection;

    wait->connection = NULL;
    wait->place = LK_QUEUE_NOWHERE;
    if (connection != NULL)
        lk_pool_discard(&store_of(wait)->db.waiting, connection);
}

/* Leave the queue or subscription, and give up the queue lock.  On an error the
 * connection is dropped and the wait queue is off. */
static int step_out(struct lk_queue_wait *wait)
{
    struct lk_store *store = store_of(wait);
    int rc;

    if (wait->place == LK_QUEUE_NOWHERE)
        return 0;
    wait->place = LK_QUEUE_NOWHERE;
    rc = lk_wait_queue_of(store)->leave(wait->connection->state, wait->number,
                                        statement_deadline(wait), NULL);
    if (rc < 0) {
        drop(wait);
        wait->way = LK_QUEUE_OFF;
    }
    return rc;
}

/* Continue the wait without the wait queue. */
static void turn_off(struct lk_queue_wait *wait)
{
    struct lk_connection *connection = wait->connection;

    wait->way = LK_QUEUE_OFF;
    if (connection == NULL)
        return;
    if (step_out(wait) < 0)
        return;
    wait->connection = NULL;
    lk_pool_return(&store_of(wait)->db.waiting, connection);
}

bool lk_queue_is_there(struct lk_queue_wait *wait)
{
    struct lk_store *store = store_of(wait);
    const struct lk_wish at_once = {.latest_ns = open_until(wait)};

    if (wait->part->waiter->may_not_block)
        return false;
    if (wait->way == LK_QUEUE_OFF || wait->connection != NULL)
        return wait->way != LK_QUEUE_OFF;
    if (lk_pool_take_as(&store->db.waiting, &at_once, &wait->connection, NULL) <
        0) {
        wait->connection = NULL;
        wait->way = LK_QUEUE_OFF;
    } else if (!lk_queue_has_own_session(store, wait->connection,
                                         statement_deadline(wait))) {
        turn_off(wait);
    }
    return wait->way != LK_QUEUE_OFF;
}

/* Block in `function` of the wait queue until until_ns, so that a cancellation
 * can end the call.  Return 0, EBUSY if the time is over, ECANCELED if the wait
 * was cancelled, or EUNREACHABLE after any other failure: then the wait queue
 * is off. */
static int block(struct lk_queue_wait *wait,
                 int (*function)(void *, int64_t, int64_t, sqlock_error *),
                 int64_t until_ns, sqlock_error *err)
{
    struct lk_waiter *self = wait->part->waiter;
    struct lk_connection *connection = wait->connection;
    bool cancelled;
    int rc = SQLOCK_ECANCELED;

    if (connection == NULL) {
        wait->way = LK_QUEUE_OFF;
        return SQLOCK_EUNREACHABLE;
    }
    pthread_mutex_lock(&self->mutex);
    cancelled = self->is_cancelled;
    if (!cancelled)
        self->waits_on = connection;
    pthread_mutex_unlock(&self->mutex);
    if (!cancelled)
        rc = function(connection->state, wait->number, until_ns, NULL);
    pthread_mutex_lock(&self->mutex);
    self->waits_on = NULL;
    cancelled = self->is_cancelled;
    pthread_mutex_unlock(&self->mutex);
    if (cancelled) {
        drop(wait);
        return lk_canceled(err);
    }
    if (rc < 0 && rc != SQLOCK_EBUSY) {
        /* ECANCELED of the statement does not mean that the wait was
         * cancelled. */
        drop(wait);
        wait->way = LK_QUEUE_OFF;
        rc = SQLOCK_EUNREACHABLE;
    }
    return rc;
}

/* Wait in the queue, without being subscribed.  Return 0 if the session has got
 * the queue lock; otherwise as block(). */
static int queue(struct lk_queue_wait *wait, int64_t until_ns,
                 sqlock_error *err)
{
    const sqlock_wait_queue *wait_queue = lk_wait_queue_of(store_of(wait));
    int rc;

    if (wait->place == LK_QUEUE_SUBSCRIBED && step_out(wait) < 0)
        return SQLOCK_EUNREACHABLE;
    rc = block(wait, wait_queue->enqueue, until_ns, err);
    if (rc == 0)
        wait->place = LK_QUEUE_FIRST;
    else if (rc == SQLOCK_EBUSY && wait_queue->keeps_place)
        wait->place = LK_QUEUE_BEHIND;
    /* Some databases count in whole seconds, and return early: sleep until the
     * deadline, a second at most. */
    else if (rc == SQLOCK_EBUSY &&
             lk_waiter_sleep(wait->part->waiter,
                             lk_sooner(until_ns, sqlock_monotonic_ns() +
                                                     1000 * LK_NS_PER_MS),
                             err) < 0)
        rc = SQLOCK_ECANCELED;
    return rc;
}

static int subscribe(struct lk_queue_wait *wait)
{
    struct lk_store *store = store_of(wait);
    int rc;

    if (wait->connection == NULL ||
        lk_wait_queue_of(store)->subscribe == NULL ||
        wait->place == LK_QUEUE_SUBSCRIBED)
        return 0;
    rc = lk_wait_queue_of(store)->subscribe(
        wait->connection->state, wait->number, statement_deadline(wait), NULL);
    wait->place = LK_QUEUE_SUBSCRIBED;
    if (rc < 0)
        turn_off(wait);
    return rc;
}

/* Read how much longer the row is taken, into *left_ns (0: it is free); and set
 * is_silent if the holder will not notify.  Return as lk_row_read(). */
static int read_left(struct lk_queue_wait *wait, int64_t *left_ns,
                     sqlock_error *err)
{
    struct lk_store *store = store_of(wait);
    struct lk_row row;
    int rc;

    rc = lk_row_read(store, wait->part->entry->key, statement_deadline(wait),
                     &row, err);
    if (rc == SQLOCK_EBUSY) /* a time limit ended the read */
        turn_off(wait);
    if (rc < 0)
        return rc;
    *left_ns = lk_peers_look(wait->part, &row);
    if (*left_ns > 0 && !row.is_sqlocks)
        wait->is_silent = true; /* a peer does not notify */
    return 0;
}

/* Return how to go on by polling: for good, or until the row's holder
 * changes. */
static int poll_row(struct lk_queue_wait *wait)
{
    bool is_once = wait->is_silent && wait->way != LK_QUEUE_OFF;

    wait->is_silent = false;
    return is_once ? LK_POLL_UNTIL_CHANGED : LK_POLL_UNTIL_FREE;
}

static bool is_to_be_polled(const struct lk_queue_wait *wait)
{
    return wait->way == LK_QUEUE_OFF || wait->is_silent;
}

/* Wait for a notification, or in the queue, until the row is to be read again.
 * Return as block(). */
static int block_long(struct lk_queue_wait *wait, int64_t until_ns,
                      sqlock_error *err)
{
    const sqlock_wait_queue *wait_queue = lk_wait_queue_of(store_of(wait));

    if (wait_queue->subscribe != NULL)
        return block(wait, wait_queue->await, until_ns, err);
    if (!wait_queue->keeps_place)
        until_ns =
            lk_sooner(until_ns, lk_after_ms(sqlock_monotonic_ns(), QUEUE_MS));
    return queue(wait, until_ns, err);
}

/* Wait until the end of the holder's lease that the row shows.  If the row then
 * shows a later end, because the holder has renewed the lease, go on until
 * that.  Return as lk_queue_await(); 0 with `way` LK_QUEUE_SHORT: queue
 * again. */
static int await_long(struct lk_queue_wait *wait, sqlock_error *err)
{
    struct lk_waiter *self = wait->part->waiter;
    int rc = 0;

    while (rc == 0 && !is_to_be_polled(wait)) {
        int64_t left_ns = 0;
        int64_t until_ns;

        if (subscribe(wait) < 0)
            break;
        rc = read_left(wait, &left_ns, err);
        if (rc < 0 || wait->is_silent)
            break;
        if (left_ns == 0 && wait->place != LK_QUEUE_BEHIND)
            break;
        if (sqlock_monotonic_ns() >= self->deadline_ns)
            return lk_not_in_time(self->wait_ms, err);
        until_ns = lk_sooner(lk_later(sqlock_monotonic_ns(), left_ns),
                             self->deadline_ns);
        rc = block_long(wait, until_ns, err);
        if (rc == 0) { /* notified: queue again */
            if (wait->place != LK_QUEUE_FIRST)
                wait->way = LK_QUEUE_SHORT;
            return 0;
        }
        if (rc == SQLOCK_EBUSY)
            rc = 0;
        if (left_ns == 0)
            break;
    }
    if (rc < 0 && wait->way != LK_QUEUE_OFF)
        return rc;
    return is_to_be_polled(wait) ? poll_row(wait) : 0;
}

/* Give up the queue lock, which this wait cannot use any more, and go on as one
 * without it. */
static void give_up_queue_lock(struct lk_queue_wait *wait)
{
    wait->way = LK_QUEUE_LONG;
    wait->is_silent = lk_wait_queue_of(store_of(wait))->subscribe == NULL;
    (void)step_out(wait);
}

/* Return when to read the row again, after that many looks at it. */
static int64_t next_look(const struct lk_queue_wait *wait, unsigned looks)
{
    int64_t now = sqlock_monotonic_ns();

    return lk_sooner(lk_after_ms(now, store_of(wait)->options.poll_ms),
                     now + ((int64_t)FIRST_LOOK_NS << looks));
}

/* Wait while this session has the queue lock but the row is taken, which is
 * usually brief: the release is not committed yet, or another process barged
 * past.  Return 0 if the row is free, or was still taken at the end and the
 * queue lock was given up; otherwise as lk_queue_await(). */
static int await_as_first(struct lk_queue_wait *wait, sqlock_error *err)
{
    struct lk_waiter *self = wait->part->waiter;
    bool may_subscribe = lk_wait_queue_of(store_of(wait))->subscribe != NULL;
    unsigned most = may_subscribe ? LOOKS_TO_SUBSCRIBE : LOOKS_TO_POLL;
    int64_t left_ns = 1;
    int rc = 0;

    for (unsigned looks = 0; rc == 0 && left_ns > 0 && looks < most; looks++) {
        if (sqlock_monotonic_ns() >= self->deadline_ns)
            return lk_not_in_time(self->wait_ms, err);
        rc = lk_waiter_sleep(
            self, lk_sooner(next_look(wait, looks), self->deadline_ns), err);
        if (rc == 0)
            rc = read_left(wait, &left_ns, err);
    }
    if (rc == 0 && left_ns > 0)
        give_up_queue_lock(wait);
    return rc;
}

/* Wait in the queue for FIRST_MS at most, and no longer than the lease lasts: a
 * holder that has stopped may keep the queue lock.  Return 0 if this session
 * has got the queue lock; EBUSY if not, or if the queue failed: `way` says how
 * to go on; otherwise as lk_queue_await(). */
static int await_short(struct lk_queue_wait *wait, sqlock_error *err)
{
    int64_t until_ns = lk_sooner(lk_after_ms(sqlock_monotonic_ns(), FIRST_MS),
                                 wait->part->waiter->deadline_ns);
    int64_t left_ns = 0;
    int rc = read_left(wait, &left_ns, err);

    if (rc < 0)
        return rc;
    if (wait->is_silent)
        return SQLOCK_EBUSY;
    if (left_ns > 0) /* else a session with the queue lock is about to claim */
        until_ns =
            lk_sooner(until_ns, lk_later(sqlock_monotonic_ns(), left_ns));
    rc = queue(wait, until_ns, err);
    if (rc == 0 || rc == SQLOCK_ECANCELED)
        return rc;
    if (wait->way != LK_QUEUE_OFF)
        wait->way = LK_QUEUE_LONG;
    return SQLOCK_EBUSY;
}

int lk_queue_await(struct lk_queue_wait *wait, sqlock_error *err)
{
    int rc;

    if (wait->place == LK_QUEUE_FIRST) {
        rc = await_as_first(wait, err);
        if ((rc < 0 && wait->way != LK_QUEUE_OFF) ||
            wait->place == LK_QUEUE_FIRST)
            return rc;
    }
    for (;;) {
        if (wait->is_silent || !lk_queue_is_there(wait))
            return poll_row(wait);
        if (wait->way == LK_QUEUE_SHORT) {
            rc = await_short(wait, err);
            if (rc != SQLOCK_EBUSY)
                return rc;
            if (wait->way == LK_QUEUE_OFF)
                continue;
        }
        rc = await_long(wait, err);
        if (rc != 0 || wait->way != LK_QUEUE_SHORT)
            return rc;
    }
}

void lk_queue_finish(struct lk_queue_wait *wait, struct lk_place *place, int rc)
{
    if (rc == 0 && wait->place == LK_QUEUE_FIRST) {
        place->connection = wait->connection;
        place->session = 0;
        lk_pool_keep(&store_of(wait)->db.waiting, wait->connection);
    } else if (lk_is_outage(rc)) {
        drop(wait);
    } else {
        turn_off(wait);
    }
}
