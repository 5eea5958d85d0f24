/*
 * queue.h - find out whether the database's wait queue can be used, and give up
 * the queue lock of a lease when the lease ends
 */
#ifndef LK_QUEUE_H
#define LK_QUEUE_H

#include "lease/lease.h"

/* Return the driver's wait queue, or NULL if it has none for this layout. */
const sqlock_wait_queue *lk_wait_queue_of(const struct lk_store *store);

/* Return whether each connection has a server session of its own, rather than
 * one that a proxy shares out.  `connection` is used to find this out once for
 * the store.  If that is not possible by the deadline, return false; the next
 * call tries again.  The store must have a wait queue. */
bool lk_queue_has_own_session(struct lk_store *store,
                              struct lk_connection *connection,
                              int64_t deadline_ns);

/* Store in *place the session of db.pool on which a claim was granted, if
 * claims take the queue lock. */
void lk_queue_of_claim(const struct lk_store *store, struct lk_place *place,
                       uint64_t session);

/* Send the release on place->connection, which has the lease's queue lock.  The
 * statement of `run` is set here.  Return a result of lk_db_run_on(), or
 * EUNREACHABLE, without sending, if the release is to be sent elsewhere. */
int lk_queue_release(struct lk_store *store, const struct lk_place *place,
                     struct lk_run *run, sqlock_result *result,
                     sqlock_error *err);

/* Give up the queue lock of a lease that is over, and clear *place.
 * has_notified: its release has already given the queue lock up.  is_outage:
 * nothing is sent to a server, which would only wait for another timeout; the
 * queue lock ends with its session.  Return whether there is an outage now. */
bool lk_queue_end(struct lk_store *store, const char *key,
                  struct lk_place *place, bool has_notified, bool is_outage);

#endif
