/*
 * queue.h - wait queues: whether there are any here, and the queue lock of a
 * lease, given up when the lease ends
 */
#ifndef LK_QUEUE_H
#define LK_QUEUE_H

#include "lease/lease.h"

/* NULL: none with this database and layout. */
const sqlock_wait_queue *lk_wait_queue_of(const struct lk_store *store);

typedef int (*lk_queue_fn)(void *connection, int64_t queue, int64_t deadline_ns,
                           sqlock_error *err);

/* One call of a queue lock that is answered at once, until that deadline: on
 * the connections that wait nothing else ends it. */
int lk_queue_call(struct lk_store *store, struct lk_connection *connection,
                  lk_queue_fn function, int64_t queue, int64_t deadline_ns);

/* Whether this connection's session is its own; found out once, by asking, and
 * taken as not when that is not done by the deadline. */
bool lk_queue_has_own_sessions(struct lk_store *store,
                               struct lk_connection *connection,
                               int64_t deadline_ns);

/* A connection goes back to its pool, if it is still good. */
void lk_queue_put_back(struct lk_pool *pool, struct lk_connection *connection);

/* Whether the session of a claim is the one its lease is to be released on. */
bool lk_queue_is_of_claim(const struct lk_store *store);

/* A claim was granted on that session of the pool. */
void lk_queue_of_claim(const struct lk_store *store, struct lk_place *place,
                       uint64_t session);

/* The release of a lease that has a connection, on it.  As lk_db_run_on();
 * EUNREACHABLE: it is not to be sent there. */
int lk_queue_release(struct lk_store *store, const struct lk_place *place,
                     struct lk_run *run, sqlock_result *result,
                     sqlock_error *err);

/* The lease is over; `has_notified`: its release has given up the queue lock
 * already.  In an outage nothing is asked of the database, so that no second
 * time passes, and the queue lock ends with its session.  Whether there is an
 * outage by now. */
bool lk_queue_end(struct lk_store *store, const char *key,
                  struct lk_place *place, bool has_notified, bool is_outage);

#endif
