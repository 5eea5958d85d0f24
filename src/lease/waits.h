/*
 * waits.h - who waits for whom, in all processes that use the region of a lock
 * table
 *
 * An owner is known by the mark in its CLIENT_IDs (store.h), of its leases and
 * of its tickets.
 */
#ifndef LK_WAITS_H
#define LK_WAITS_H

#include <stddef.h>

#include "lease/store.h"

struct lk_wait {
    uint32_t waiter, awaited; /* marks */
    int64_t since_us;         /* of the ticket, by the database's clock; 0: the
                                 waiter has none */
};

struct lk_waits {
    struct lk_wait *all;
    size_t count, room;
};

/* Add a wait.  Return false if out of memory. */
bool lk_waits_add(struct lk_waits *waits, const struct lk_wait *wait);

/* Read the waits of all tickets: each waits for the one before it, and the
 * first for the holder of the lock.  Return 0, ENOMEM or as
 * sqlock_lock_read(). */
int lk_waits_read(struct lk_store *store, struct lk_waits *waits,
                  sqlock_error *err);

void lk_waits_clear(struct lk_waits *waits);

/* Return whether `self` waits for itself, through others whose waits began
 * before its own: the one who came last has closed the circle. */
bool lk_waits_are_closed(const struct lk_waits *waits, uint32_t self);

#endif
