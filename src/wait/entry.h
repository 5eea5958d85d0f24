/*
 * entry.h - a lock in this process: whose turn it is, who waits behind that
 * one, and the lease while one of them has it
 *
 * An entry is shared by all handles of a name.  Its owner is a number: of a
 * thread, a handle, a request or a registry, whichever owns locks here.
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
    LK_FREE,     /* nobody of this process is at it */
    LK_BUSY,     /* somebody is claiming or releasing it */
    LK_OCCUPIED, /* acquired and not yet released, whatever the lease says */
};

/* State of one part of an acquisition at its entry. */
enum lk_part_state {
    LK_PART_OUTSIDE, /* not in the FIFO: it waits elsewhere, or not yet */
    LK_PART_QUEUED,  /* in the FIFO */
    LK_PART_CHOSEN,  /* a holder hands its lease off to it */
    LK_PART_TURN,    /* it is this one's turn, to claim the row */
    LK_PART_NESTED,  /* held before by the same owner: counted once more */
    LK_PART_HELD     /* it has the lease */
};

/* One lock of an acquisition.  While the acquisition is under way the part is
 * in its entry's list, where a cancellation of the lock finds it.  */
struct lk_part {
    struct lk_entry *entry;
    struct lk_waiter *waiter;
    uint64_t owner;    /* the future owner of the lock */
    bool may_be_given; /* a releaser may hand its lease off to the part */
    /* under the entry's mutex */
    struct lk_part *next, *previous;
    bool is_listed;
    enum lk_part_state state;
    uint64_t grant; /* number of the lease that the part got, or nests in */
    /* of the acquisition */
    int rc;
    struct lk_lease lease;   /* while it claims */
    struct lk_observed seen; /* of the row */
};

struct lk_entry {
    struct lk_entries *all;
    struct lk_store *store; /* of all */
    char key[SQLOCK_KEY_SIZE];
    char *name; /* that of the first sqlock_obtain() */
    UT_hash_handle hh;
    uint32_t references; /* under the entries' mutex */

    pthread_mutex_t mutex; /* of what follows */
    struct lk_part *parts; /* all parts under way; those queued are the FIFO */
    struct lk_part *turn;  /* the part that may claim the row; NULL: none */
    int outage; /* result of the attempts while the database is away; 0 */
    enum lk_phase phase;
    uint32_t handoffs;   /* between waiters of this process, in a row */
    bool is_left_behind; /* the holder, or the releaser, is an abandoned
                            request */
    /* read and set by the part that has the turn */
    bool is_left_free;     /* the row, by us */
    uint32_t queue_first;  /* number of acquisitions that queue in the database
                          before they claim: others wait there */
    bool is_queue_stalled; /* the session with the queue lock does not claim */
    struct {               /* Spring services that contend: peers.h */
        int64_t share_ns;  /* time of ours before a pause; 0: none was seen */
        int64_t used_ns;   /* part of share_ns that has been used */
        int64_t poll_share_ns; /* the same where no wait queue tells of waiters;
                                  0: not computed yet */
        int64_t token;         /* token of the row when our pause began */
    } peers;
    /* while it is occupied */
    uint64_t owner;
    sqlock_acquire_options asked; /* complete, by the acquisition */
    uint64_t grant; /* number of the acquisition; only counts up */
    uint32_t hold_count;
    struct lk_place place;
    char client_id[SQLOCK_KEY_SIZE];
    int64_t token;
    uint32_t ttl_ms;
    uint32_t cap_ms; /* as in lease.h, both */
    bool is_claim_late;
    int64_t deadline_boot_ns; /* when the holder stops believing */
    int64_t acquired_boot_ns;
    struct lk_renewal *renewals; /* under way */
    int lost;                    /* 0, ELOST, EEXPIRED: sticky */
    bool is_to_be_told;          /* on_lost is due when the lease is over */
    uint32_t guards;             /* open transactions that guard the lease */

    struct lk_overdue *overdue;
    /* queue lock of the lease that was set aside last, to be given up by the
     * part that has the turn */
    bool is_aside;
    struct lk_place place_aside;
};

/* The functions down to lk_leave() are called with the entry's mutex held. */

/* Tell whether that owner has the lock. */
bool lk_is_owned_by(const struct lk_entry *entry, uint64_t owner);

/* Return the time for which the holder may still believe; 0: lost or over. */
int64_t lk_remaining_ns(const struct lk_entry *entry);

void lk_copy_lease(const struct lk_entry *entry, struct lk_lease *out);

/* Note that the lease is over before its release, by that code; return it. */
int lk_lose(struct lk_entry *entry, int code);

/* Make the part's turn a lease: one that it claimed, or was handed off to
 * it. */
void lk_hold(struct lk_part *part, const struct lk_lease *lease);

/* End the present turn, and give it to the first one in the FIFO. */
void lk_leave(struct lk_entry *entry);

/* The functions below are called without the mutex. */

/* Tell whether that owner, or (0) any owner, has a part at the entry, holds it,
 * or may come back to it.  Abandoned requests do not count. */
bool lk_entry_is_in_use(struct lk_entry *entry, uint64_t owner);

/* Undo one acquire of that owner's, as far as no database is needed
 * (release.h). A part whose lease is to be ended has the turn until
 * lk_end_release(). */
void lk_begin_release(struct lk_release_part *part, uint64_t owner,
                      sqlock_error *err);
void lk_end_release(struct lk_entry *entry);

/* Begin to hand off instead of lk_end_release(): return the next part in the
 * FIFO; NULL: release the row.  The end gives that part the new lease, or
 * (NULL) the turn.  */
struct lk_part *lk_begin_hand_off(struct lk_entry *entry);
void lk_end_hand_off(struct lk_part *next, const struct lk_lease *lease);

/* Note that the request which acquires, or releases this lease, is abandoned:
 * from here on it does not keep the lock in use. */
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
