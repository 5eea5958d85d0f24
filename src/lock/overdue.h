/*
 * overdue.h - leases that are over although their holders have not released
 * them
 *
 * Such a lease does not keep other threads of the process from the lock.  The
 * caller of each function except lk_clear_aside() holds the slot's mutex.
 */
#ifndef LK_OVERDUE_H
#define LK_OVERDUE_H

#include "lease/lease.h"
#include "lock/slot.h"

/* An overdue lease, kept for its holder in the slot's list. */
struct lk_overdue {
    struct lk_overdue *next;
    uint64_t owner;
    uint64_t grant;
    uint32_t hold_count;
    int lost;            /* ELOST, EEXPIRED */
    bool is_left_behind; /* its holder is an abandoned request */
    struct lk_lease lease;
};

/* Return whether the lease is over and its holder no longer blocks the FIFO: no
 * guard is open, no callback is due, and the owner is not the registry. */
bool lk_is_overdue(const struct lk_slot *slot);

/* Return when to ask lk_is_overdue() again, CLOCK_MONOTONIC. */
int64_t lk_overdue_at(const struct lk_slot *slot);

/* Keep the overdue lease for its holder, and free the lock for other threads of
 * the process.  Return false, with nothing changed, if out of memory. */
bool lk_set_aside(struct lk_slot *slot);

/* Give up the bell of the lease that was set aside last.  The part that
 * has the turn calls this, without the mutex, before it claims the lock or
 * gives the turn up. */
void lk_clear_aside(struct lk_slot *slot);

/* Return that owner's overdue lease, which the application has yet to release;
 * or the overdue lease of a grant.  NULL: none. */
struct lk_overdue *lk_overdue_of(const struct lk_slot *slot, uint64_t owner);
struct lk_overdue *lk_overdue_by_grant(const struct lk_slot *slot,
                                       uint64_t grant);

/* Remove and free an overdue lease, when its holder releases it. */
void lk_overdue_end(struct lk_slot *slot, struct lk_overdue *overdue);

/* Return whether that owner (0: any) has an overdue lease and may still come
 * back to release it: not a thread that has ended, nor an abandoned request. */
bool lk_is_missed(const struct lk_slot *slot, uint64_t owner);

#endif
