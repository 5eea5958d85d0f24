/*
 * own_session.h - detect a proxy that shares the sessions of a server, such as
 * PgBouncer or ProxySQL in transaction mode
 */
#ifndef LK_OWN_SESSION_H
#define LK_OWN_SESSION_H

#include "db/driver.h"

/*
 * Compare the server sessions of two connections of `driver`, on which the
 * caller has no transaction open.  `query` returns one text that identifies the
 * session in the server, 63 bytes at most.  Return 0 if each connection has a
 * session of its own, EBUSY if a proxy lends them sessions, or any other code
 * if that is not known.
 */
int lk_own_session(const sqlock_driver *driver, const char *query, void *one,
                   void *other, int64_t deadline_ns, sqlock_error *err);

#endif
