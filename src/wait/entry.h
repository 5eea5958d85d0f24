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
#include "wait/fifo.h"
#include "wait/renewal.h"

enum lk_phase {
    LK_FREE,     /* nobody of this process is at it */
    LK_BUSY,     /* somebody is claiming or releasing it */
    LK_OCCUPIED, /* acquired and not yet released, whatever the lease says */
};

struct lk_entry {
    struct lk_entries *all;
    struct lk_store *store; /* of all */
    char key[SQLOCK_KEY_SIZE];
    char *name; /* by which it was obtained first */
    UT_hash_handle hh;
    uint32_t references; /* under the entries' mutex */

    pthread_mutex_t mutex; /* of what follows */
    struct lk_fifo fifo;
    struct lk_waiter *turn; /* whose it is while it claims; NULL */
    int outage; /* what its attempts give while the database is away; 0 */
    enum lk_phase phase;
    uint32_t handoffs;   /* between waiters of this process, in a row */
    bool is_left_behind; /* whoever is at it: an abandoned request */
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
    } peers;
    /* while it is occupied */
    uint64_t owner;
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

/* Whether that one has it. */
bool lk_is_owned_by(const struct lk_entry *entry, uint64_t owner);

/* How long the holder may still believe; 0 when lost or over. */
int64_t lk_remaining_ns(const struct lk_entry *entry);

/* Whether one of them, or (0) anybody, is at the entry, waits or may come back
 * to it; requests that were abandoned are not counted.  Without the mutex. */
bool lk_entry_is_in_use(struct lk_entry *entry, uint64_t owner);

enum lk_entering {
    LK_ENTRY_AGAIN,    /* nested: counted, nothing to send */
    LK_ENTRY_CLAIM,    /* the lock's phase is LK_BUSY, for the caller */
    LK_ENTRY_GRANTED,  /* handed off by the holder: it is the caller's */
    LK_ENTRY_SUSPENDED /* in the queue, to be woken by a call */
};

/* Wait for the threads that came before.  lk_entry, or as sqlock_acquire(). */
int lk_enter(struct lk_entry *entry, struct lk_waiter *self, sqlock_error *err);

/* The same for who was suspended and has been woken, or whose deadline has
 * come. */
int lk_enter_on(struct lk_entry *entry, struct lk_waiter *self,
                sqlock_error *err);

/* When who is suspended is to go on unless it is woken before, CLOCK_MONOTONIC.
 * Who is being served is called in any case: no deadline ends that. */
int64_t lk_suspended_until(struct lk_entry *entry,
                           const struct lk_waiter *self);

/* With the mutex held: the caller's turn is over; the first one that waits is
 * next. */
void lk_leave(struct lk_entry *entry);

/* With the mutex held: the caller's turn became a lease.  Its grant. */
uint64_t lk_hold(struct lk_entry *entry, const struct lk_lease *lease,
                 const sqlock_acquire_options *options, uint64_t owner);

/* Whose turn it is has met an outage of the database, which waiters of this
 * process share: what it was told; 0: it is over. */
void lk_note_outage(struct lk_entry *entry, int rc);

/* What lk_begin_release() gives of a lease that was set aside (overdue.h): it
 * is to be released, and the lock is another's by now. */
#define LK_RELEASE_OVERDUE 2

/* Count one less of that owner's.  0: nested, all done; 1: the outermost one,
 * whose lease is copied and whose turn it is, until lk_end_release();
 * LK_RELEASE_OVERDUE; EOWNER, EINUSE. */
int lk_begin_release(struct lk_entry *entry, uint64_t owner,
                     struct lk_lease *lease, uint64_t *grant, int *lost,
                     sqlock_error *err);
void lk_end_release(struct lk_entry *entry);

/* In place of a release: who is next, to be served by the caller, who has the
 * lock's turn; NULL: release it.  Then it holds what it was given, or (NULL)
 * has the turn itself. */
struct lk_waiter *lk_begin_hand_off(struct lk_entry *entry);
void lk_end_hand_off(struct lk_entry *entry, struct lk_waiter *next,
                     const struct lk_lease *lease);

/* Nobody waits any more for the request that acquires, or that releases this
 * lease: whatever it is at, it does not keep the lock in use. */
void lk_abandon_entry(struct lk_entry *entry, struct lk_waiter *self);
void lk_abandon_release(struct lk_entry *entry, const struct lk_lease *lease);

/* That owner's lease to renew, with that TTL (0: its own, which is filled in),
 * until lk_renewal_end().  0, EOWNER, EEXPIRED, ELOST, EBUSY, EINVAL. */
int lk_begin_renew(struct lk_entry *entry, uint64_t owner, uint32_t *ttl_ms,
                   struct lk_renewal *renewal, struct lk_lease *lease,
                   sqlock_error *err);

/* With the mutex held. */
void lk_copy_lease(const struct lk_entry *entry, struct lk_lease *out);

/* EOWNER. */
int lk_not_owner(sqlock_error *err);

/* An acquire call's options, completed.  EINVAL. */
int lk_check_acquire(const struct lk_store *store, int64_t wait_ms,
                     const sqlock_acquire_options *options,
                     sqlock_acquire_options *complete, sqlock_error *err);

#endif
