/*
 * entry.h - a lock in this process: the part that has the turn, the FIFO behind
 * it, and the lease while it is held
 *
 * An entry is shared by all handles of a name.  Its owner is the number of a
 * thread, handle, request or registry, according to the ownership.
 */
#ifndef LK_ENTRY_H
#define LK_ENTRY_H

#include "base/hash.h"
#include "lease/lease.h"
#include "wait/entries.h"
#include "wait/renewal.h"
#include "wait/waiter.h"

struct lk_release_part;

enum lk_phase {
    LK_FREE, /* no one in this process uses it */
    LK_BUSY, /* it is being claimed or released */
    /* acquired and not yet released, even if the lease is over */
    LK_OCCUPIED,
};

/* State of one part of an acquisition at its entry. */
enum lk_part_state {
    LK_PART_OUTSIDE, /* not in the FIFO: it waits elsewhere, or not yet */
    LK_PART_QUEUED,  /* in the FIFO */
    LK_PART_CHOSEN,  /* the holder is handing its lease off to this part */
    LK_PART_TURN,    /* has the turn, and may claim the row */
    LK_PART_NESTED,  /* its owner holds the lock already: counted again */
    LK_PART_HELD     /* has the lease */
};

/* One lock of an acquisition.  While the acquisition is under way, the part is
 * in its entry's list, where a cancellation of the lock finds it. */
struct lk_part {
    struct lk_entry *entry;
    struct lk_waiter *waiter;
    uint64_t owner;    /* the future owner of the lock */
    bool may_be_given; /* a release may hand its lease off to the part */
    /* guarded by the entry's mutex */
    struct lk_part *next, *previous;
    bool is_listed;
    enum lk_part_state state;
    /* number of the lease that the part got, or nests in */
    uint64_t grant;
    /* used by the acquisition */
    int rc;
    struct lk_lease lease;   /* during the claim */
    struct lk_observed seen; /* of the row */
};

struct lk_entry {
    struct lk_entries *all;
    struct lk_store *store; /* same as all->store */
    char key[SQLOCK_KEY_SIZE];
    char *name; /* as in the first sqlock_obtain() */
    UT_hash_handle hh;
    uint32_t references; /* guarded by the entries' mutex */

    pthread_mutex_t mutex; /* guards the following fields */
    /* parts under way; the queued ones are the FIFO */
    struct lk_part *parts;
    struct lk_part *turn; /* may claim the row; NULL: none */
    int outage;           /* result of attempts while the database is away; 0 */
    enum lk_phase phase;
    uint32_t handoffs; /* hand-offs within this process, in a row */
    /* the holder or releaser is an abandoned request */
    bool is_left_behind;
    /* used by the part that has the turn */
    bool is_left_free; /* the row was left free by this process */
    /* number of acquisitions that queue in the database first, because others
     * wait there */
    uint32_t queue_first;
    /* the session with the queue lock does not claim */
    bool is_queue_stalled;
    struct { /* contending Spring services: peers.h */
        /* our time before a pause; 0: no service was seen */
        int64_t share_ns;
        int64_t used_ns; /* used part of share_ns */
        /* share_ns where waiters cannot be seen for lack of a wait queue; 0:
         * not computed yet */
        int64_t poll_share_ns;
        int64_t token; /* token of the row when our pause began */
    } peers;
    /* valid while the lock is occupied */
    uint64_t owner;
    sqlock_acquire_options asked; /* of the first acquire, complete */
    uint64_t grant; /* number of the acquisition; only counts up */
    uint32_t hold_count;
    struct lk_lease lease;
    int64_t acquired_boot_ns;
    struct lk_renewal *renewals; /* under way */
    int lost;                    /* 0, ELOST, EEXPIRED; does not go back to 0 */
    /* on_lost is still to be called when the lease is over */
    bool is_to_be_told;
    uint32_t guards; /* open transactions that guard the lease */

    struct lk_overdue *overdue;
    /* Queue lock of the lease that was set aside last; the part that has the
     * turn gives it up. */
    bool is_aside;
    struct lk_place place_aside;
};

/* The functions down to lk_leave() are called with the entry's mutex held. */

/* Tell whether that owner has the lock. */
bool lk_is_owned_by(const struct lk_entry *entry, uint64_t owner);

/* Tell whether the lock is held by that grant. */
bool lk_is_granted(const struct lk_entry *entry, uint64_t grant);

/* Return how long the holder may still rely on the lease; 0: lost or over. */
int64_t lk_remaining_ns(const struct lk_entry *entry);

/* Note that the lease is over before its release, with that code; return it. */
int lk_lose(struct lk_entry *entry, int code);

/* Clear the lease when the lock has no holder. */
void lk_forget_lease(struct lk_entry *entry);

/* Give the part the lease that it claimed or that was handed off to it. */
void lk_hold(struct lk_part *part, const struct lk_lease *lease);

/* End the present turn, and give it to the first part in the FIFO. */
void lk_leave(struct lk_entry *entry);

/* The functions below are called without the mutex. */

/* Tell whether that owner, or (0) any owner, holds the lock, is acquiring it,
 * or may still release an overdue lease of it.  Abandoned requests do not
 * count. */
bool lk_entry_is_in_use(struct lk_entry *entry, uint64_t owner);

/* Undo one acquire of that owner, as far as possible without the database
 * (release.h).  If the lease is to be released, the part keeps the turn until
 * lk_end_release().  The part's rc: 0, EOWNER, EINUSE. */
void lk_begin_release(struct lk_release_part *part, struct lk_entry *entry,
                      uint64_t owner, sqlock_error *err);
void lk_end_release(struct lk_entry *entry);

/* Begin a hand-off: return the next part in the FIFO; NULL: release the row.
 * The end gives that part the new lease; lk_end_release(), the turn. */
struct lk_part *lk_begin_hand_off(struct lk_entry *entry);
void lk_end_hand_off(struct lk_part *next, const struct lk_lease *lease);

/* Note that the request acquiring, or releasing, this lease is abandoned: it no
 * longer keeps the lock in use. */
void lk_abandon_part(struct lk_part *part);
void lk_abandon_release(struct lk_entry *entry, const struct lk_lease *lease);

/* Copy that owner's lease for a renewal with that TTL (0: its own), which lasts
 * until lk_renewal_end().  0, EOWNER, EEXPIRED, ELOST, EBUSY, EINVAL. */
int lk_begin_renew(struct lk_entry *entry, uint64_t owner, uint32_t ttl_ms,
                   struct lk_renewal *renewal, struct lk_lease *lease,
                   sqlock_error *err);

/* Set the error of a caller that is not the owner, and return EOWNER. */
int lk_not_owner(sqlock_error *err);

#endif
