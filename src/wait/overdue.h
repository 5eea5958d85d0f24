/*
 * overdue.h - leases that are over although their holders have not released
 * them.  Such a lease does not keep other threads of the process from the lock.
 *
 * All functions but lk_clear_aside() are called with the entry's mutex held.
 */
#ifndef LK_OVERDUE_H
#define LK_OVERDUE_H

#include "lease/lease.h"
#include "wait/entry.h"

/* A lease that was set aside for its holder, in the entry's list. */
struct lk_overdue {
    struct lk_overdue *next;
    uint64_t owner;
    uint64_t grant;
    uint32_t hold_count;
    int lost;            /* ELOST, EEXPIRED */
    bool is_left_behind; /* its holder is an abandoned request */
    struct lk_lease lease;
};

/* Tell whether the lease is over and its holder does not block the FIFO any
 * more: no guard is open, no callback is due, and the owner is not the
 * registry.  */
bool lk_is_overdue(const struct lk_entry *entry);

/* Return when lk_is_overdue() may change, CLOCK_MONOTONIC. */
int64_t lk_overdue_at(const struct lk_entry *entry);

/* Set the lease aside for its holder, and free the lock for other threads of
 * the process.  False: out of memory.  */
bool lk_set_aside(struct lk_entry *entry);

/* Give up the queue lock of the lease that was set aside last.  Called without
 * the mutex, by the part that has the turn, before it claims. */
void lk_clear_aside(struct lk_entry *entry);

/* Return the lease that was set aside for that owner; NULL: none. */
struct lk_overdue *lk_overdue_of(const struct lk_entry *entry, uint64_t owner);

/* Free a lease that its holder releases at last. */
void lk_overdue_end(struct lk_entry *entry, struct lk_overdue *overdue);

/* Tell whether a lease is set aside for that owner, or (0) for any owner that
 * may come back.  */
bool lk_is_missed(const struct lk_entry *entry, uint64_t owner);

#endif
