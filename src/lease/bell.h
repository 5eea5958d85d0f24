/*
 * bell.h - doorbells: whether there are any here, and that of a lease, which is
 * rung when the lease ends
 */
#ifndef LK_BELL_H
#define LK_BELL_H

#include "lease/lease.h"

/* NULL: none with this database and layout. */
const sqlock_doorbells *lk_doorbells_of(const struct lk_store *store);

typedef int (*lk_bell_fn)(void *connection, int64_t bell, int64_t deadline_ns,
                          sqlock_error *err);

/* One call of a doorbell that is answered at once, until that deadline: on the
 * connections that wait nothing else ends it. */
int lk_bell_call(struct lk_store *store, struct lk_connection *connection,
                 lk_bell_fn function, int64_t bell, int64_t deadline_ns);

/* Whether this connection's session is its own; found out once, by asking, and
 * taken as not when that is not done by the deadline. */
bool lk_bell_has_own_sessions(struct lk_store *store,
                              struct lk_connection *connection,
                              int64_t deadline_ns);

/* A connection goes back to its pool, if it is still good. */
void lk_bell_put_back(struct lk_pool *pool, struct lk_connection *connection);

/* Whether the session of a claim is the one its lease is to be released on. */
bool lk_bell_is_of_claim(const struct lk_store *store);

/* A claim was granted on that session of the pool. */
void lk_bell_of_claim(const struct lk_store *store, struct lk_bell *bell,
                      uint64_t session);

/* The release of a lease that has a connection, on it.  As lk_db_run_on();
 * EUNREACHABLE: it is not to be sent there. */
int lk_bell_release(struct lk_store *store, const struct lk_bell *bell,
                    struct lk_run *run, sqlock_result *result,
                    sqlock_error *err);

/* The lease is over; `rang`: its release has given up the doorbell already.  In
 * an outage nothing is asked of the database, so that no second time passes, and
 * the doorbell ends with its session.  Whether there is an outage by now. */
bool lk_bell_end(struct lk_store *store, const char *key, struct lk_bell *bell,
                 bool rang, bool is_outage);

#endif
