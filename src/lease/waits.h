/*
 * waits.h - who waits for whom, in all processes that use the region of a lock
 * table
 *
 * Each lock for which others wait has *parties*: those who have it, and those
 * who wait for it.  Their owner is known by the mark in its CLIENT_IDs
 * (store.h), of its leases and of its tickets.
 */
#ifndef LK_WAITS_H
#define LK_WAITS_H

#include <stddef.h>

#include "lease/store.h"

struct lk_party {
    size_t lock;      /* its number */
    int64_t most;     /* the permits of the lock, or what stands for no limit */
    uint32_t owner;   /* mark */
    uint32_t weight;  /* 0: the owner has, or wants, the lock alone */
    bool is_waiting;  /* otherwise it has the lock */
    int64_t since_us; /* of its ticket, by the database's clock; 0: none */
    /* used by lk_waits_are_closed(): the owner waits, and nobody would ever let
     * it in */
    bool is_stuck;
};

/* The parties of a lock stand together: first those who have it, then those who
 * wait, in order. */
struct lk_waits {
    struct lk_party *all;
    size_t count, room, locks;
};

/* Add a wait for an owner that has a lock.  Return false if out of memory. */
bool lk_waits_add(struct lk_waits *waits, uint32_t waiter, uint32_t awaited);

/* Read the parties of all locks that have tickets, until latest_ns
 * (CLOCK_MONOTONIC) at most.  Return 0, ENOMEM or as sqlock_lock_read(). */
int lk_waits_read(struct lk_store *store, int64_t latest_ns,
                  struct lk_waits *waits, sqlock_error *err);

/* Add the parties of one lock, from the columns of its row: sharers and queue
 * may be NULL.  Whose lease or ticket was over at `now_us` is left out.  Return
 * false if out of memory. */
bool lk_waits_add_lock(struct lk_waits *waits, const char *client_id,
                       const char *sharers, const char *queue, int64_t now_us);

void lk_waits_clear(struct lk_waits *waits);

/* Return whether `self` waits for itself, through others whose waits began
 * before its own: the one who came last has closed the circle.
 *
 * A party that waits is let in when there is room for it beside those before it
 * that do not leave.  So who wants the lock alone waits for each of them, and
 * one that shares it only where so many are in the circle that the others leave
 * too little when they go. */
bool lk_waits_are_closed(struct lk_waits *waits, uint32_t self);

#endif
