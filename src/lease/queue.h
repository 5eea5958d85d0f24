/*
 * queue.h - the database's wait queue: whether it can be used, and the queue
 * lock of a lease, which is given up when the lease ends
 */
#ifndef LK_QUEUE_H
#define LK_QUEUE_H

#include "lease/lease.h"

/* Return the driver's wait queue; NULL: it has none for this layout. */
const sqlock_wait_queue *lk_wait_queue_of(const struct lk_store *store);

typedef int (*lk_queue_fn)(void *connection, int64_t queue, int64_t deadline_ns,
                           sqlock_error *err);

/* Call a function of the wait queue that does not wait, with a deadline.  The
 * watchdog enforces it, because these connections have no other time limit. */
int lk_queue_call(struct lk_store *store, struct lk_connection *connection,
                  lk_queue_fn function, int64_t queue, int64_t deadline_ns);

/* Tell whether this connection has a server session of its own.  This is found
 * out once; if not by the deadline, the answer is false. */
bool lk_queue_has_own_session(struct lk_store *store,
                              struct lk_connection *connection,
                              int64_t deadline_ns);

/* Tell whether the session of a claim has the queue lock, so that the lease is
 * to be released on it. */
bool lk_queue_is_of_claim(const struct lk_store *store);

/* Note on which session of the pool a claim was granted. */
void lk_queue_of_claim(const struct lk_store *store, struct lk_place *place,
                       uint64_t session);

/* Send the release on the connection that has the lease's queue lock. Results
 * as lk_db_run_on(); EUNREACHABLE: do not send it there. */
int lk_queue_release(struct lk_store *store, const struct lk_place *place,
                     struct lk_run *run, sqlock_result *result,
                     sqlock_error *err);

/* Give up the queue lock of a lease that is over.  `has_notified`: its release
 * has already done so.  In an outage the database is not asked, which would
 * wait for another timeout, and the queue lock ends with its session.  Return
 * whether there is an outage now. */
bool lk_queue_end(struct lk_store *store, const char *key,
                  struct lk_place *place, bool has_notified, bool is_outage);

#endif
