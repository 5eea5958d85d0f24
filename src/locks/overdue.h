/*
 * overdue.h - leases that are over, and whose holders have not released them:
 * they do not keep the lock from the others of the process
 *
 * All with the lock's mutex held, unless it says otherwise.
 */
#ifndef LK_OVERDUE_H
#define LK_OVERDUE_H

#include "lease/lease.h"
#include "locks/registry.h"

/* What its holder finds when it comes back; of the lock. */
struct lk_overdue {
    struct lk_overdue *next;
    uint64_t owner;
    uint32_t hold_count;
    int lost;            /* ELOST, EEXPIRED */
    bool is_left_behind; /* by an abandoned request: nobody comes back */
    struct lk_lease lease;
};

/* Whether whoever holds it has had its time, and has been told so. */
bool lk_is_overdue(const sqlock_lock *lock);

/* When to ask that again, CLOCK_MONOTONIC. */
int64_t lk_overdue_at(const sqlock_lock *lock);

/* The lock is free for the others of the process, and its lease is set aside
 * for its holder.  False: out of memory. */
bool lk_set_aside(sqlock_lock *lock);

/* Without the mutex, by whose turn it is, before it claims: end what went with
 * the lease that was set aside last. */
void lk_clear_aside(sqlock_lock *lock);

/* What was set aside for that owner; NULL: nothing. */
struct lk_overdue *lk_overdue_of(const sqlock_lock *lock, uint64_t owner);

/* Its holder gives it back for good. */
void lk_overdue_end(sqlock_lock *lock, struct lk_overdue *overdue);

/* Whether somebody who may come back has something set aside. */
bool lk_is_missed(const sqlock_lock *lock);

#endif
