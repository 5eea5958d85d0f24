/*
 * own_session.h - detect a proxy that shares the sessions of a server, such as
 * PgBouncer or ProxySQL in transaction mode
 */
#ifndef LK_OWN_SESSION_H
#define LK_OWN_SESSION_H

#include <sqlock/driver.h>

/*
 * Compare the sessions of two connections, neither in a transaction.  `query`
 * returns one text that names the session in the server.  Results as of
 * `has_own_session` of a wait queue.
 */
int lk_own_session(const sqlock_driver *driver, const char *query, void *one,
                   void *other, int64_t deadline_ns, sqlock_error *err);

#endif
