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

/* Where one part of an acquisition stands at its entry. */
enum lk_part_state {
    LK_PART_OUTSIDE, /* not in the FIFO: it waits elsewhere, or not yet */
    LK_PART_QUEUED,  /* in the FIFO */
    LK_PART_CHOSEN,  /* a holder hands its lease off to it */
    LK_PART_TURN,    /* it is this one's turn, to claim the row */
    LK_PART_NESTED,  /* held before by the same owner: counted once more */
    LK_PART_HELD     /* it has the lease */
};

/* One lock of an acquisition.  While the acquisition is under way it is in the
 * entry's list, so that whoever cancels the lock finds it. */
struct lk_part {
    struct lk_entry *entry;
    struct lk_waiter *waiter;
    uint64_t owner;    /* that will have it */
    bool may_be_given; /* a lease by a hand-off */
    /* under the entry's mutex */
    struct lk_part *next, *previous;
    bool is_listed;
    enum lk_part_state state;
    uint64_t grant; /* of the lease that it got, or counts once more */
    /* of the acquisition */
    int rc;
    struct lk_lease lease;   /* while it claims */
    struct lk_observed seen; /* of the row */
};

struct lk_entry {
    struct lk_entries *all;
    struct lk_store *store; /* of all */
    char key[SQLOCK_KEY_SIZE];
    char *name; /* by which it was obtained first */
    UT_hash_handle hh;
    uint32_t references; /* under the entries' mutex */

    pthread_mutex_t mutex; /* of what follows */
    struct lk_part *parts; /* all that are at it; those in the FIFO in order */
    struct lk_part *turn;  /* whose it is while it claims; NULL */
    int outage; /* what its attempts give while the database is away; 0 */
    enum lk_phase phase;
    uint32_t handoffs;   /* between waiters of this process, in a row */
    bool is_left_behind; /* the holder, or who releases it, is a request that
                            was abandoned */
    /* read and set by whose turn it is */
    bool is_left_free; /* the row, by us */
    uint32_t
        queue_first; /* so many acquisitions go to the queue lock first: others
                          wait there */
    bool is_queue_stalled; /* somebody keeps the queue lock and does not come */
    struct {               /* Spring services that want it, too: peers.h */
        int64_t share_ns;  /* how long it is ours in turn; 0: none was seen */
        int64_t used_ns;   /* of that */
        int64_t poll_share_ns; /* where no wait queue tells who waits: how long
                                  it is ours until the next look; 0: not
                                  reckoned yet */
        int64_t token;         /* of the row, when a pause of ours began */
    } peers;
    /* while it is occupied */
    uint64_t owner;
    sqlock_acquire_options asked; /* complete, by the acquisition */
    uint64_t grant; /* which acquisition's: counts up, and never goes back */
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
    bool is_to_be_told;          /* the holder, that the lease is over */
    uint32_t guards;             /* open transactions that keep it as it is */

    struct lk_overdue *overdue;
    /* of whose turn it is: the queue lock that went with the lease that was set
     * aside last */
    bool is_aside;
    struct lk_place place_aside;
};

/* All that follows with the entry's mutex held, unless it says otherwise. */

/* Whether that one has it. */
bool lk_is_owned_by(const struct lk_entry *entry, uint64_t owner);

/* How long the holder may still believe; 0 when lost or over. */
int64_t lk_remaining_ns(const struct lk_entry *entry);

void lk_copy_lease(const struct lk_entry *entry, struct lk_lease *out);

/* The lease is over before its release, by that code, which is returned. */
int lk_lose(struct lk_entry *entry, int code);

/* The part's turn became a lease, or that of a hand-off. */
void lk_hold(struct lk_part *part, const struct lk_lease *lease);

/* Whose turn it was is done with it; the first one that waits is next. */
void lk_leave(struct lk_entry *entry);

/* Without the mutex, all that follows. */

/* Whether that owner, or (0) anybody, is at the entry, or may come back to it;
 * requests that were abandoned are not counted. */
bool lk_entry_is_in_use(struct lk_entry *entry, uint64_t owner);

/* Count one less of that owner's, as far as that can be done here (release.h).
 * It is the part's turn, if its lease is to be ended, until
 * lk_end_release(). */
void lk_begin_release(struct lk_release_part *part, uint64_t owner,
                      sqlock_error *err);
void lk_end_release(struct lk_entry *entry);

/* In place of the end of a release: who is next, to be served by the caller,
 * who has the turn; NULL: release the row.  Then that one holds what it was
 * given, or (NULL) has the turn itself. */
struct lk_part *lk_begin_hand_off(struct lk_entry *entry);
void lk_end_hand_off(struct lk_part *next, const struct lk_lease *lease);

/* Nobody waits any more for the request that acquires, or that releases this
 * lease: whatever it is at, it does not keep the lock in use. */
void lk_abandon_part(struct lk_part *part);
void lk_abandon_release(struct lk_entry *entry, const struct lk_lease *lease);

/* That owner's lease to renew, with that TTL (0: its own), which is then the
 * copy's, until lk_renewal_end().  0, EOWNER, EEXPIRED, ELOST, EBUSY,
 * EINVAL. */
int lk_begin_renew(struct lk_entry *entry, uint64_t owner, uint32_t ttl_ms,
                   struct lk_renewal *renewal, struct lk_lease *lease,
                   sqlock_error *err);

/* EOWNER. */
int lk_not_owner(sqlock_error *err);

#endif
