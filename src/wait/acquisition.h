/*
 * acquisition.h - acquiring one lock or many, from the call to the grant
 *
 * A thread runs an acquisition to its end, sleeping where it must wait.  A
 * request is suspended there, and run again when it is woken.
 */
#ifndef LK_ACQUISITION_H
#define LK_ACQUISITION_H

#include "lease/batch.h"
#include "wait/entry.h"
#include "wait/patience.h"
#include "wait/queue_wait.h"

/* State of an acquisition; README.md has the picture. */
enum lk_acquisition_state {
    /* takes the turns of all its locks; waits for the first one's */
    LK_ENTERING,
    LK_QUEUED, /* in the FIFO of the first lock */
    /* has all turns: queues in the database behind other waiters */
    LK_DEFERRING,
    /* has all turns: leaves the row free for Spring services */
    LK_YIELDING,
    LK_CLAIMING, /* has all turns: claims all rows in one statement */
    /* has the first turn: waits for its row in the database's queue */
    LK_WAITING,
    LK_POLLING, /* has the first turn: the poller reads its row */
    /* has the first turn: pauses because the database is away */
    LK_PAUSED,
    LK_OVER /* granted, or failed: rc */
};

struct lk_acquisition {
    enum lk_acquisition_state state;
    struct lk_store *store;
    struct lk_entries *entries;
    struct lk_waiter self;
    int64_t began_ns;               /* CLOCK_MONOTONIC */
    sqlock_acquire_options options; /* with defaults filled in */
    struct lk_part *parts;          /* sorted by key */
    size_t count;
    bool is_partial;           /* acquire those that are free */
    struct lk_part *first;     /* the part that is waited for */
    struct lk_batch batch;     /* of the parts that have a turn */
    struct lk_queue_wait wait; /* in use if wait.part is not NULL */
    struct lk_retry patience;  /* patience.h */
    int64_t until_ns;          /* end of a pause, CLOCK_MONOTONIC */
    unsigned attempts;         /* since the beginning, or the last pause */
    unsigned refusals;         /* of claims, because a row was taken */
    int rc;                    /* result, in state LK_OVER */
    struct lk_part one;        /* used when count is 1, with its item */
    struct lk_item one_item;
};

/* Begin an acquisition of `count` locks; add each with lk_acquisition_add(), in
 * the order of the keys.  After EINVAL or ENOMEM there is nothing to end. */
int lk_acquisition_begin(struct lk_acquisition *a, struct lk_entries *entries,
                         size_t count, int64_t wait_ms,
                         const sqlock_acquire_options *options,
                         sqlock_error *err);
void lk_acquisition_add(struct lk_acquisition *a, size_t i,
                        struct lk_entry *entry, uint64_t owner);

/* Take the turn of the first lock, or queue in its FIFO, without waiting.
 * Return whether to run the acquisition at once.  It may be cancelled from here
 * on. */
bool lk_acquisition_enter(struct lk_acquisition *a, sqlock_error *err);

/* Run the acquisition until it is over.  Results as sqlock_acquire_many(); each
 * part's rc is its own.  LK_SUSPENDED: run it again when it is woken, or at
 * self.until_ns. */
int lk_acquisition_run(struct lk_acquisition *a, sqlock_error *err);

/* Give up unused turns and claims, and clear the waiter. */
void lk_acquisition_end(struct lk_acquisition *a);

#endif
