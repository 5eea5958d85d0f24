/*
 * slot.h - a lock in this process: who has it, the part that has the turn, and
 * the FIFO behind it
 *
 * All handles of a name share one slot.  A part is the wish of one acquisition
 * for that lock.  Only the part that has the turn claims the row, so one
 * contender per process and key reaches the database.
 */
#ifndef LK_SLOT_H
#define LK_SLOT_H

#include <pthread.h>

#include "base/hash.h"
#include "lease/lease.h"
#include "lock/bell.h"
#include "lock/poller.h"
#include "lock/waiter.h"

struct lk_hold;
struct lk_renewal;

/* Guards whatever several threads use in src/lock, in all registries of the
 * process: slots, holds, parts, waiters, handles and requests.  It is held for
 * short steps and never during I/O.  "The caller holds the mutex" means this
 * one. */
extern pthread_mutex_t lk_mutex;

/* State of one part of an acquisition at its slot; part.c has the legal
 * transitions. */
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
    struct sqlock_lock *lock; /* the handle */
    uint64_t owner;           /* the future owner of the lock */
    uint64_t marked_as;       /* the owner whose mark its CLIENT_IDs have */
    struct lk_hold *hold;     /* for the grant, from lk_enter() on */
    uint32_t weight;          /* of the lease; 0: it has the lock alone */
    uint32_t permits;         /* that the lock had when it was last refused */
    bool may_be_given;        /* a release may hand its lease off to the part */
    bool may_join;            /* it may join a share of this process */
    /* guarded by the mutex */
    struct lk_part *next, *previous;
    bool is_listed;
    enum lk_part_state state;
    uint64_t grant; /* number of the hold that the part has, or nests in */
    bool asks;      /* it has joined, and is to ask whether others wait */
    int64_t looks_boot_ns; /* when a queued one will look at the holder's lease,
                              CLOCK_BOOTTIME */
    struct lk_subscription polled;
    struct {
        bool is_noted; /* it is in the table of deadlock.c */
        uint64_t actor;
        bool is_stuck; /* used there */
        UT_hash_handle hh;
    } waiting;
    /* used by the acquisition */
    int rc;
    struct lk_lease lease; /* during the claim */
    bool is_kept;          /* has the turn and the row: kept.h */
    struct lk_ear ear;     /* guarded by the bell's mutex */
};

#define LK_PEERS_MAX 8

/* A Spring service that was seen. */
struct lk_peer {
    uint64_t id;      /* how its CLIENT_ID begins */
    uint32_t opening; /* the last one to which it came, from 1 on; 0: none */
};

/* How a row was that is waited for, when it was seen last. */
enum lk_peers_last {
    LK_PEERS_NOTHING, /* not seen, or of ours */
    LK_PEERS_OPEN,    /* left free for services, or one has it: not looked at */
    LK_PEERS_TAKEN,   /* a service has it */
    LK_PEERS_GONE     /* a service has deleted it with its release */
};

/* Spring services: peers.h.  Times are CLOCK_MONOTONIC. */
struct lk_peers {
    char account[SQLOCK_KEY_SIZE]; /* CLIENT_ID of the account; "": none yet */
    int64_t account_ns; /* until when this process has it; 0: it has not */
    /* when services are due, or the account is to be claimed; 0: nobody else
     * wanted the lock yet */
    int64_t due_ns;
    /* turns of ours until they are due before that; UINT32_MAX: none came */
    uint32_t turns_left;
    int64_t pause_ns;  /* between two openings, if none comes to the next */
    uint32_t openings; /* so far */
    struct lk_peer seen[LK_PEERS_MAX];
    /* of the present wait */
    bool is_host; /* the part claims the lock for services, or watches them */
    enum lk_peers_last last;
    int64_t since_ns;      /* when it was seen like that first */
    int64_t mine_ns;       /* when the part may take the row back */
    uint32_t turns;        /* of services */
    int64_t turn_began_us; /* the row's CREATED_DATE in the last of them */
    char *queue; /* tickets of the row that a service may delete, or NULL */
};

/* Times in a row that threads of a registry hand a lock to each other, or share
 * it, before other processes get a chance. */
#define LK_HANDOFFS_MAX 16

struct lk_slot {
    /* constant */
    struct sqlock_registry *registry;
    struct lk_store *store;
    char key[SQLOCK_KEY_SIZE];
    char *name; /* copied from the first sqlock_obtain() */
    /* guarded by the mutex */
    UT_hash_handle hh;
    uint32_t references;
    struct lk_slot *next, *previous; /* in registry->idle, without references */
    struct lk_hold *holds;           /* hold.h */
    uint64_t grants;                 /* how many holds there were */
    /* readers that have joined a share since the database said last that nobody
     * else waits; and whether one of them is asking it again */
    uint32_t joined;
    bool is_asked;
    struct lk_renewal *renewals; /* of its holds, under way */
    /* parts under way; the queued ones are the FIFO */
    struct lk_part *parts;
    struct lk_part *turn; /* the part that may claim; NULL: none */
    int outage;           /* code of an outage of the database; 0: none */
    uint32_t handoffs;    /* hand-offs within this process, in a row */
    /* used without the mutex by the part that has the turn */
    /* other processes are known to wait */
    bool is_contended;
    /* the last release left the row free and without tickets, and no claim was
     * sent since */
    bool is_unqueued;
    /* the CLIENT_ID of the ticket that this process may have in the row; "":
     * none */
    char ticket[SQLOCK_KEY_SIZE];
    int64_t began_ns; /* when the wait of its first part began,
                         CLOCK_MONOTONIC */
    /* until when a statement with the ticket may arrive that was not answered,
     * CLOCK_BOOTTIME */
    int64_t late_until_ns;
    int64_t look_ns; /* claims that end refused look no sooner at the row */
    int place; /* of the ticket, when it was seen last; -1: in no row yet */
    /* until when the lease of sqlock's lasts that was last seen in the row, and
     * until when the row, which is gone, is not to be claimed; CLOCK_MONOTONIC,
     * 0: none, or it is there (seen.h) */
    int64_t seen_ns;
    int64_t gone_ns;
    /* the session that has the ticket's bell, where each has its own */
    struct lk_connection *session;
    struct lk_peers peers;
};

/* --- turns; the caller does not hold the mutex --- */

/* List the parts of an acquisition, which is before its first lk_enter(), in
 * their slots: from here on a cancellation finds each of them, also behind one
 * that must be waited for.  Return 0; or EINUSE, which is then also in the
 * part's rc, if its handle holds the lock or is acquiring it already: no part
 * is listed. */
int lk_parts_begin(struct lk_part *parts, size_t count, sqlock_error *err);

/* Take the turn, or nest in the owner's lease; otherwise, if may_queue, queue
 * in the FIFO.  Return 0, and in *state LK_PART_TURN, LK_PART_NESTED or
 * LK_PART_QUEUED; or LK_PART_OUTSIDE, if another part has the turn and
 * may_queue is false.  Or return EBUSY, ELOST, EEXPIRED, EINUSE, EINVAL,
 * ENOMEM, or the code of an outage that the waiters share.  Once a part is
 * queued, other threads may change part->state. */
int lk_enter(struct lk_part *part, bool may_queue, enum lk_part_state *state,
             sqlock_error *err);

/* Wait in the FIFO for the turn or a lease.  Return 0, and in *state
 * LK_PART_TURN, LK_PART_HELD or LK_PART_OUTSIDE (enter again); or ETIMEDOUT,
 * ECANCELED, EDEADLOCK, or the code of an outage; or LK_SUSPENDED, if a request
 * must wait, or LK_ALARM: call again. */
int lk_await_turn(struct lk_part *part, enum lk_part_state *state,
                  sqlock_error *err);

/* Return ETIMEDOUT with its text, or the code of an outage that the waiters
 * share: the part has waited for too long. */
int lk_part_not_in_time(const struct lk_part *part, sqlock_error *err);

/* Give up the turn if the part has it.  A nested acquire is undone before, by
 * lk_undo(). */
void lk_step_back(struct lk_part *part);

/* Give up the turn, and remove the part from its slot. */
void lk_part_end(struct lk_part *part);

/* Note that an attempt gave rc, the code of an outage, which the waiters of
 * this process for the slot share; rc 0 ends the outage.  Wake the waiters that
 * set fail_fast. */
void lk_note_outage(struct lk_slot *slot, int rc);

/* --- turns; the caller holds the mutex --- */

/* Choose the first part in the FIFO to get the holder's lease, if that may be
 * handed off; NULL: there is none. */
struct lk_part *lk_choose(struct lk_slot *slot);

/* End the present turn.  Give it to a part that was chosen and got no lease, or
 * to the first in the FIFO. */
void lk_pass_turn(struct lk_slot *slot);

/* Do what lk_step_back() does. */
void lk_leave(struct lk_part *part);

/* Make the part the holder of a lease that was claimed for it or handed off to
 * it.  The lease is copied. */
void lk_slot_grant(struct lk_part *part, const struct lk_lease *lease);

/* Note the answer to whether others wait (or that there is none) of a part that
 * joined with `asks` (part.h), and let the next part begin. */
void lk_joined(struct lk_part *part, bool is_alone);

#endif
