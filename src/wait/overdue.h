/*
 * overdue.h - leases that are over, and whose holders have not released them:
 * they do not keep the lock from the others of the process
 *
 * All with the entry's mutex held, unless it says otherwise.
 */
#ifndef LK_OVERDUE_H
#define LK_OVERDUE_H

#include "lease/lease.h"
#include "wait/entry.h"

/* What its holder finds when it comes back; in the entry's list. */
struct lk_overdue {
    struct lk_overdue *next;
    uint64_t owner;
    uint64_t grant;
    uint32_t hold_count;
    int lost;            /* ELOST, EEXPIRED */
    bool is_left_behind; /* by an abandoned request: nobody comes back */
    struct lk_lease lease;
};

/* Whether whoever holds it has had its time, and has been told so. */
bool lk_is_overdue(const struct lk_entry *entry);

/* When to ask that again, CLOCK_MONOTONIC. */
int64_t lk_overdue_at(const struct lk_entry *entry);

/* The lock is free for the others of the process, and its lease is set aside
 * for its holder.  False: out of memory. */
bool lk_set_aside(struct lk_entry *entry);

/* Without the mutex, by whose turn it is, before it claims: end what went with
 * the lease that was set aside last. */
void lk_clear_aside(struct lk_entry *entry);

/* What was set aside for that owner; NULL: nothing. */
struct lk_overdue *lk_overdue_of(const struct lk_entry *entry, uint64_t owner);

/* Its holder gives it back for good. */
void lk_overdue_end(struct lk_entry *entry, struct lk_overdue *overdue);

/* Whether that owner, or (0) anybody who may come back, has something set
 * aside. */
bool lk_is_missed(const struct lk_entry *entry, uint64_t owner);

#endif
