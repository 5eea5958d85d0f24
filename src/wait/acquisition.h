/*
 * acquisition.h - acquiring one lock or many, from the call to the grant
 *
 * A thread runs an acquisition to its end, asleep where there is nothing to do;
 * a request leaves it where a thread would sleep, and runs it again when it is
 * woken.
 */
#ifndef LK_ACQUISITION_H
#define LK_ACQUISITION_H

#include "lease/batch.h"
#include "wait/entry.h"
#include "wait/patience.h"
#include "wait/queue_wait.h"

/* State of an acquisition; README.md has the picture. */
enum lk_acquisition_state {
    LK_ENTERING,  /* get the turns at all its locks; waits for the first one */
    LK_QUEUED,    /* in the FIFO of the first one */
    LK_DEFERRING, /* with all turns: queue in the database behind those that
                     wait there */
    LK_YIELDING,  /* with all turns: leave the row free for Spring services */
    LK_CLAIMING,  /* with all turns: claim all rows in one statement */
    LK_WAITING,   /* with the first one's turn, for its row: in the database's
                     queue */
    LK_POLLING,   /* with the first one's turn: the poller reads its row */
    LK_PAUSED,    /* with the first one's turn: the database is away */
    LK_OVER       /* granted, or failed: rc */
};

struct lk_acquisition {
    enum lk_acquisition_state state;
    struct lk_store *store;
    struct lk_entries *entries;
    struct lk_waiter self;
    int64_t began_ns;               /* CLOCK_MONOTONIC */
    sqlock_acquire_options options; /* complete */
    struct lk_part *parts;          /* by key */
    size_t count;
    bool is_partial;           /* those that are free are enough */
    struct lk_part *first;     /* the one that it waits for */
    struct lk_batch batch;     /* of the parts with a turn */
    struct lk_queue_wait wait; /* where wait.part is not NULL */
    struct lk_patience patience;
    int64_t until_ns;   /* of a pause, CLOCK_MONOTONIC */
    unsigned attempts;  /* since it began, or since the last pause */
    unsigned refusals;  /* of claims, because a row was taken */
    int rc;             /* once it is over */
    struct lk_part one; /* of a single one, and its item */
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
 * True: there is more to do at once.  The acquisition may be cancelled from
 * here on.  */
bool lk_acquisition_enter(struct lk_acquisition *a, sqlock_error *err);

/* Run the acquisition until it is over, with the results of
 * sqlock_acquire_many(); each part's rc tells its own.  LK_SUSPENDED: run it
 * again when it is woken, or at self.until_ns.  */
int lk_acquisition_run(struct lk_acquisition *a, sqlock_error *err);

/* Give up turns and claims that were not used, and clear the waiter. */
void lk_acquisition_end(struct lk_acquisition *a);

#endif
