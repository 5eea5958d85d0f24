/*
 * hold.h - a lease that this process has, from its grant until its holder has
 * released it
 *
 * The slot of a lock has a list of holds.  At most one is the present one: an
 * exclusive lease, which its owner has or is releasing.  Beside it there are
 * those whose leases are over and whose holders have not come back to release
 * them, which does not keep others from the lock; or shares, which keep nobody
 * of this process from asking the database.
 *
 * The owner is the number of a thread, handle, request or registry, according
 * to the option `ownership`.
 */
#ifndef LK_HOLD_H
#define LK_HOLD_H

#include "lock/renewal.h"
#include "lock/slot.h"

enum lk_hold_state {
    LK_HOLD_NEW,  /* not in the slot: a part has allocated it */
    LK_HOLD_HELD, /* its owner has the lock, even if the lease is over */
    /* its owner gave it up, and the database has yet to answer; or it is handed
     * off meanwhile */
    LK_HOLD_RELEASING,
    /* the lease is over and the owner has not released it */
    LK_HOLD_ASIDE,
    LK_HOLD_OVER /* not in the slot any more */
};

/* The mutex guards all fields. */
struct lk_hold {
    struct lk_hold *next, *previous; /* of the slot */
    enum lk_hold_state state;
    struct lk_slot *slot;     /* a reference, from the grant on */
    struct sqlock_lock *lock; /* the handle by which it was acquired */
    uint64_t owner;
    uint64_t grant; /* its number in the slot, from 1 */
    sqlock_acquire_options asked;
    /* acquires that are not undone; 0: the last one was undone under a guard,
     * and the lease is released when the last guard ends */
    uint32_t count;
    /* nobody of the application has the lease any more: the holder or releaser
     * is an abandoned request, or the last acquire was undone under a guard */
    bool is_left_behind;
    /* no reader joins its share: its id was told, by which others may renew or
     * release it; or others wait for the lock, or it has permits now */
    bool is_closed;
    /* its share was released when its lease was over already */
    bool has_no_share;
    struct lk_lease lease;
    int64_t acquired_boot_ns;
    int lost; /* 0, ELOST, EEXPIRED; does not go back to 0 */
    /* the end of the lease is still to be reported, by on_lost or lost_fd */
    bool is_to_be_told;
    /* an event has told the end of the lease */
    bool is_reported;
    uint32_t guards; /* open transactions that guard the lease */
    /* calls about the lease that are under way (call.h) */
    uint32_t calls;
    bool is_downgrading; /* one of them is a downgrade, which waits, or is the
                            only one */
    uint32_t pins;       /* who uses it beside its slot */
    struct {             /* in the list of the expiry */
        struct lk_hold *next, *previous;
        bool is_listed;
    } expiring;
    struct { /* in the list of the renewer */
        struct lk_hold *next, *previous;
        bool is_listed;
        /* When the last attempt ended, CLOCK_BOOTTIME; 0: there was none.  Each
         * lease pauses by its own period, so this is kept per lease. */
        int64_t tried_ns;
        struct lk_renewal renewal;
    } renewing;
};

/* The caller of all functions holds the mutex. */

/* Return whether the hold shares the lock with others. */
bool lk_is_share(const struct lk_hold *hold);

/* Return the present hold; NULL: nobody has the lock for himself. */
struct lk_hold *lk_present(const struct lk_slot *slot);

/* Return the hold by which that owner has the lock, even if the lease is over;
 * of several shares, which an owner has from requests, the one granted last;
 * NULL: none.  Nobody has what an abandoned request got and has yet to
 * release. */
struct lk_hold *lk_hold_of(const struct lk_slot *slot, uint64_t owner);

/* Return that owner's lease that is over, which the application has yet to
 * release; NULL: none. */
struct lk_hold *lk_aside_of(const struct lk_slot *slot, uint64_t owner);

/* Return the hold that the owner's next release is about: one that is over, so
 * that its loss is told before anything else is given up; otherwise as
 * lk_hold_of(). */
struct lk_hold *lk_hold_to_release(const struct lk_slot *slot, uint64_t owner);

/* Return how often that owner has acquired the lock and not released it, also
 * by leases that are over. */
uint32_t lk_hold_count(const struct lk_slot *slot, uint64_t owner);

/* Return the hold of that number, unless it is being released; NULL: it is. */
struct lk_hold *lk_hold_by_grant(const struct lk_slot *slot, uint64_t grant);

/* Return how long the holder may still rely on the lease; 0: it is lost or
 * over. */
int64_t lk_remaining_ns(const struct lk_hold *hold);

/* Note that the lease ended before its release, by `code`: ELOST or EEXPIRED.
 * Return that code. */
int lk_lose(struct lk_hold *hold, int code);

/* Make a hold of the part's lease, which is copied. */
void lk_hold_begin(struct lk_part *part, const struct lk_lease *lease);

/* Take the hold out of its slot: it is over. */
void lk_hold_end(struct lk_hold *hold);

/* Begin to release: the slot is not free before lk_hold_end(). */
void lk_hold_begin_release(struct lk_hold *hold);

/* Drop a pin; free a hold that is over and has no pins. */
void lk_hold_unpin(struct lk_hold *hold);

/* --- readers of this process, which share a share --- */

/* Return whether the holds have the same lease: they are one, or readers. */
bool lk_is_same_lease(const struct lk_hold *a, const struct lk_hold *b);

/* Return whether another holder relies on the share of the hold: then its
 * release is none of the row. */
bool lk_is_joined(const struct lk_hold *hold);

/* --- leases that are over, and not released --- */

/* Return whether the lease of the present hold is over and does not block the
 * FIFO any more: no guard is open, no callback is due, and the owner is not the
 * registry. */
bool lk_is_overdue(const struct lk_slot *slot);

/* Return whether the lease of the hold is over and nobody waits for its
 * release any more, as above. */
bool lk_hold_is_overdue(const struct lk_hold *hold);

/* Return from when on the present hold is overdue as it is now, CLOCK_BOOTTIME;
 * LK_NEVER: not by time alone.  After a change that makes this earlier, call
 * lk_wake_in_time(). */
int64_t lk_overdue_at(const struct lk_slot *slot);

/* Set the overdue hold aside for its holder, and free the lock for others. */
void lk_set_aside(struct lk_slot *slot);

/* Take the bell's session from the leases that were set aside; the part that
 * has the turn gives it up before it claims the lock or gives up the turn. */
struct lk_place lk_place_aside(struct lk_slot *slot);

/* Find the hold of that owner, and whether it may use its lease: to renew or
 * guard it, to publish a text, to downgrade it or take it over.  *out is the
 * hold, or NULL.  Return 0; EOWNER; ELOST or EEXPIRED: it is over, and to be
 * released; or EINUSE: a transaction guards it, and not may_be_guarded.  The
 * caller holds the mutex. */
int lk_hold_usable(const struct lk_slot *slot, uint64_t owner,
                   bool may_be_guarded, struct lk_hold **out,
                   sqlock_error *err);

/* Set the error of a lease that is over, and return `lost`. */
int lk_hold_over(int lost, sqlock_error *err);

/* Set the error of a caller that is not the owner, and return EOWNER. */
int lk_not_owner(sqlock_error *err);

#endif
