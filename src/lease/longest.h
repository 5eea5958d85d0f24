/*
 * longest.h - the longest TTL, for which a server that may have forgotten
 * leases grants nothing (grace.h)
 *
 * INT_LOCK_SERVER has two of them, so that a promoted standby never knows less
 * than was granted: for so long a grace lasts, which is raised first, and so
 * long may a new lease be.  When they are lowered, it is the other way round.
 */
#ifndef LK_LONGEST_H
#define LK_LONGEST_H

#include "lease/store.h"

/* Note that new leases may be as long, as the table says now. */
void lk_longest_note(struct lk_grace *grace, int64_t allowed_ms);

/* Before a claim of a lease of this TTL: raise the longest one of the table, if
 * that is shorter, and go on once the connected standbys have it.  The TTL that
 * was read counts for a minute.  is_reserved as in struct lk_run.
 * Return 0; EINVAL: a standby has not got it in time, or that cannot be seen;
 * ETIMEDOUT: the row is locked; or why it could not be raised. */
int lk_longest_raise(struct lk_store *store, int64_t ttl_ms,
                     int64_t deadline_ns, bool is_reserved, sqlock_error *err);

/* Do so before a statement that gives a lease another end, in half of its time.
 * The TTL that was read last counts for as long as it cannot be read again: the
 * lease would be lost.  So that the renewer gives a lease less instead, it gets
 * EINVAL also where the row is locked. */
int lk_longest_keep(struct lk_store *store, int64_t ttl_ms, int64_t deadline_ns,
                    bool is_reserved, sqlock_error *err);

/* Return the TTL for a lease of this one that may not be renewed for so long:
 * that which leases may have. */
uint32_t lk_longest_allowed(const struct lk_store *store, uint32_t ttl_ms);

/* If no lease is longer than what lk_longest_set() has set, 30 s at first,
 * lower the longest TTL of new leases to that; and five minutes later the time
 * of a grace. */
int lk_longest_lower(struct lk_store *store, sqlock_error *err);

/* Let leases be as long at once, and lk_longest_lower() lower to that.  Return
 * 0, or as lk_longest_missing(). */
int lk_longest_set(struct lk_store *store, int64_t ttl_ms, sqlock_error *err);

/* Say that there is no table INT_LOCK_SERVER, and return ENOTSUP. */
int lk_longest_missing(const struct lk_store *store, sqlock_error *err);

#endif
