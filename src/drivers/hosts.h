/*
 * hosts.h - a URL that names several hosts: lists with ',' between, and which
 * host is connected to
 */
#ifndef LK_HOSTS_H
#define LK_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sqlock.h"

/* Return how many elements a list has; one, if it is NULL. */
size_t lk_hosts_count(const char *list);

/* Copy element `index` of a list to *out, or NULL if `list` is NULL; a single
 * element stands for all.  Return false if out of memory: NULL would mean
 * another server. */
bool lk_hosts_entry(char **out, const char *list, size_t index);

/* Return whether a server has refused the connection by a message of its own,
 * which any other server of the list would repeat. */
bool lk_hosts_is_refused(int rc, const sqlock_error *err);

/* Connect to the host of that number until the deadline.  Return 0, or a code,
 * and set *err. */
typedef int (*lk_host_fn)(void *context, size_t index, int64_t deadline_ns,
                          sqlock_error *err);

/* Try the hosts one by one, each with its share of the time, until one can be
 * connected to.  If none can, one that may do so later decides the result.
 * `err` is not NULL. */
int lk_hosts_try(size_t hosts, int64_t deadline_ns, lk_host_fn try_host,
                 void *context, sqlock_error *err);

#endif
