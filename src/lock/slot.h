/*
 * slot.h - a lock in this process: the part that has the turn, the FIFO behind
 * it, and the lease while it is held
 *
 * All handles of a name share one slot.  The slot's owner is the number of a
 * thread, handle, request or registry, according to the option `ownership`.
 */
#ifndef LK_SLOT_H
#define LK_SLOT_H

#include "base/hash.h"
#include "lease/lease.h"
#include "lock/bell.h"
#include "lock/slots.h"
#include "lock/renewal.h"
#include "lock/waiter.h"

struct lk_release_part;
struct lk_undo;

enum lk_phase {
    LK_FREE, /* nobody in this process has the turn or the lease */
    LK_BUSY, /* it is being claimed or released */
    /* acquired and not yet released, even if the lease is over */
    LK_OCCUPIED,
};

/* State of one part of an acquisition at its slot. */
enum lk_part_state {
    LK_PART_OUTSIDE, /* not in the FIFO: waits elsewhere, or not yet */
    LK_PART_QUEUED,  /* in the FIFO */
    LK_PART_CHOSEN,  /* the holder is handing its lease off to this part */
    LK_PART_TURN,    /* has the turn, and may claim the row */
    LK_PART_NESTED,  /* the owner holds the lock already: counted again */
    LK_PART_HELD     /* has the lease */
};

/* One lock of an acquisition.  While the acquisition is under way, the part is
 * in the slot's list `parts`, where a cancellation of the lock finds it. */
struct lk_part {
    struct lk_slot *slot;
    struct lk_waiter *waiter;
    uint64_t owner;           /* the future owner of the lock */
    struct sqlock_lock *lock; /* for the acquisition's `undo`; not used here */
    bool may_be_given;        /* a release may hand its lease off to the part */
    /* guarded by the slot's mutex */
    struct lk_part *next, *previous;
    bool is_listed;
    enum lk_part_state state;
    /* number of the acquisition whose lease the part has, or nests in */
    uint64_t grant;
    /* used by the acquisition */
    int rc;
    struct lk_lease lease; /* during the claim */
    bool is_kept;          /* has the turn and the row: kept.h */
    bool saw_peer;         /* the wait has seen a Spring service hold the row */
    struct lk_ear ear;     /* guarded by the bell's mutex */
    struct {
        bool is_noted; /* it is in the table, which deadlock.c guards */
        UT_hash_handle hh;
    } waiting;
};

struct lk_slot {
    struct lk_slots *all;
    struct lk_store *store; /* same as all->store */
    char key[SQLOCK_KEY_SIZE];
    char *name; /* copied from the first sqlock_obtain() */
    UT_hash_handle hh;
    uint32_t references; /* guarded by the slots' mutex */

    pthread_mutex_t mutex; /* guards the following fields */
    /* parts under way; the queued ones are the FIFO */
    struct lk_part *parts;
    struct lk_part *turn; /* the part that may claim; NULL: none */
    int outage;           /* code of an outage of the database; 0: none */
    enum lk_phase phase;
    uint32_t handoffs; /* hand-offs within this process, in a row */
    /* nobody of the application has the lease any more: the holder or releaser
     * is an abandoned request, or the last acquire was undone under a guard */
    bool is_left_behind;
    /* used without the mutex by the part that has the turn */
    /* other processes are known to wait */
    bool is_contended;
    /* the CLIENT_ID of the ticket that this process may have in the row; "":
     * none */
    char ticket[SQLOCK_KEY_SIZE];
    int place; /* of the ticket, when it was seen last; -1: in no row yet */
    /* the session that has the ticket's bell, where each has its own */
    struct lk_connection *session;
    struct { /* Spring services: peers.h */
        /* time of our leases between two pauses; 0: no service was seen */
        int64_t share_ns;
        int64_t used_ns; /* used part of share_ns */
        /* as share_ns, but without tickets, where other processes' waiters
         * cannot be seen; 0: not computed yet */
        int64_t poll_share_ns;
        int64_t token; /* token of the row when our pause began */
    } peers;
    /* valid while the lock is occupied */
    uint64_t owner;
    sqlock_acquire_options asked; /* of the first acquire, with defaults */
    uint64_t grant; /* number of the acquisition; only counts up */
    /* 0: the last acquire was undone under a guard; the lease is released when
     * the last guard ends */
    uint32_t hold_count;
    struct lk_lease lease;
    int64_t acquired_boot_ns;
    struct lk_renewal *renewals; /* under way */
    int lost;                    /* 0, ELOST, EEXPIRED; does not go back to 0 */
    /* the end of the lease is still to be reported, by on_lost or lost_fd */
    bool is_to_be_told;
    uint32_t guards; /* open transactions that guard the lease */

    struct lk_overdue *overdue;
    /* is_aside: place_aside has the bell of the lease that was set aside last.
     * The next part that claims gives that bell up. */
    bool is_aside;
    struct lk_place place_aside;
};

/* The caller of the functions down to lk_leave() holds the slot's mutex. */

/* Return whether that owner holds the lock, even if the lease is over.
 * Nobody holds what an abandoned request has got and has yet to release. */
bool lk_is_owned_by(const struct lk_slot *slot, uint64_t owner);

/* Return whether the lock is held by the acquisition of that number. */
bool lk_is_granted(const struct lk_slot *slot, uint64_t grant);

/* Return how long the holder may still rely on the lease; 0: the lease is lost
 * or over. */
int64_t lk_remaining_ns(const struct lk_slot *slot);

/* Note that the lease ended before its release, by `code`: ELOST or EEXPIRED.
 * Return that code. */
int lk_lose(struct lk_slot *slot, int code);

/* Clear the lease when the lock has no holder. */
void lk_forget_lease(struct lk_slot *slot);

/* Make the part the holder of a lease that was claimed for it or handed off to
 * it.  The lease is copied. */
void lk_hold(struct lk_part *part, const struct lk_lease *lease);

/* Let all queued parts enter again, to nest in the lease, which the whole
 * registry shares. */
void lk_let_all_in(struct lk_slot *slot);

/* End the present turn, and give it to the first part in the FIFO. */
void lk_leave(struct lk_slot *slot);

/* The caller of the functions below does not hold the mutex. */

/* Give up the session of the part that has the turn, if it has one. */
void lk_slot_drop_session(struct lk_slot *slot);

/* Return whether that owner (0: any) holds the lock, is acquiring or releasing
 * it, or may still release an overdue lease of it.  Abandoned requests do not
 * count. */
bool lk_slot_is_in_use(struct lk_slot *slot, uint64_t owner);

/* Undo one acquire, as far as possible without the database, and fill in the
 * part (release.h).  part->rc becomes 0, EOWNER or EINUSE.  With the state
 * LK_RELEASE_TURN the part has the turn until lk_end_release(). */
void lk_begin_release(struct lk_release_part *part, struct lk_slot *slot,
                      const struct lk_undo *undo, sqlock_error *err);
void lk_end_release(struct lk_slot *slot);

/* Begin a hand-off: return the part in the FIFO that is to get the lease; NULL:
 * release the row instead.  After that, lk_end_hand_off() makes this part the
 * holder of the new lease; or, if the hand-off failed, lk_end_release() gives
 * it the turn. */
struct lk_part *lk_begin_hand_off(struct lk_slot *slot);
void lk_end_hand_off(struct lk_part *next, const struct lk_lease *lease);

/* Note that the application has finished with the request that acquires by this
 * part, or that releases the part's lease, before that was done: the request no
 * longer keeps the application from dropping the lock, and on_lost of its
 * acquisition is not called any more. */
void lk_abandon_part(struct lk_part *part);
void lk_abandon_release(struct lk_slot *slot, const struct lk_lease *lease);

/* Begin a renewal of that owner's lease, and copy the lease to *lease with that
 * TTL (0: its own).  *renewal is in use until lk_renewal_end().  Return 0, or
 * EOWNER, EEXPIRED, ELOST, EBUSY (an open transaction guards the lease) or
 * EINVAL (the TTL): then nothing has begun. */
int lk_begin_renew(struct lk_slot *slot, uint64_t owner, uint32_t ttl_ms,
                   struct lk_renewal *renewal, struct lk_lease *lease,
                   sqlock_error *err);

/* Set the error of a caller that is not the owner, and return EOWNER. */
int lk_not_owner(sqlock_error *err);

#endif
