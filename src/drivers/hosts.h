/*
 * hosts.h - connect to one of the hosts that a URL names
 */
#ifndef LK_HOSTS_H
#define LK_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sqlock.h"

/* Return whether a server has refused the connection by a message of its own,
 * which any other server of the list would repeat. */
bool lk_hosts_is_refused(int rc, const sqlock_error *err);

/* Connect to the host of that number until the deadline.  Return 0, or a code,
 * and set *err. */
typedef int (*lk_host_fn)(void *context, size_t index, int64_t deadline_ns,
                          sqlock_error *err);

/* Try the hosts one by one, each with its share of the time, until one can be
 * connected to.  If none can, one that may do so later decides the result; one
 * that had no time (ECANCELED) only where it is the first.
 * `err` is not NULL. */
int lk_hosts_try(size_t hosts, int64_t deadline_ns, lk_host_fn try_host,
                 void *context, sqlock_error *err);

#endif
