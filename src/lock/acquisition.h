/*
 * acquisition.h - acquire one lock or many, from the call to the grant
 *
 * A thread runs an acquisition to its end, sleeping where it must wait.  A
 * request is suspended where a thread would sleep, and run again when it is
 * woken.
 */
#ifndef LK_ACQUISITION_H
#define LK_ACQUISITION_H

#include "lease/batch.h"
#include "lock/circle.h"
#include "lock/kept.h"
#include "lock/patience.h"
#include "lock/row_wait.h"
#include "lock/set.h"

/* State of an acquisition; README.md has the picture. */
enum lk_acquisition_state {
    /* takes the turns of its locks, or queues for that of the part `first` */
    LK_ENTERING,
    LK_QUEUED,   /* in the FIFO of `first` */
    LK_CLAIMING, /* has all turns: claims all rows in one statement */
    /* has the turn of `first`: claims its row, or gets a ticket in it */
    LK_ASKING,
    LK_WAITING, /* has a ticket in the row of `first`: waits for a ring */
    LK_POLLING, /* has the turn of `first`: the poller reads its row */
    /* has joined a share of this process: reads the row, whether others wait */
    LK_LOOKING,
    /* has the turn of `first`: pauses because the database is away */
    LK_PAUSED,
    LK_OVER /* granted or failed; rc has the result */
};

/* How a row is said to be that is to be claimed. */
enum lk_hint {
    LK_HINT_NONE,     /* nothing: the claim asks for a place */
    LK_HINT_RESERVED, /* it was rung, so the row is reserved for its ticket */
    LK_HINT_FREE      /* it may be free between two turns of services */
};

struct lk_acquisition {
    enum lk_acquisition_state state;
    struct lk_store *store;
    struct sqlock_registry *registry;
    struct lk_waiter self;
    int64_t began_ns;               /* CLOCK_MONOTONIC */
    sqlock_acquire_options options; /* with defaults filled in */
    struct lk_part *parts;          /* sorted by key */
    size_t count;
    struct lk_part *first; /* the part that is waited for */
    size_t reach;          /* the claim is of the parts before this one */
    struct lk_kept kept;   /* rows that stay claimed meanwhile */
    struct lk_circle circle;
    struct lk_batch batch;    /* of the parts that have the turn */
    struct lk_row_wait wait;  /* for the row of `first` */
    enum lk_hint hint;        /* how the row of `first` is */
    struct lk_retry patience; /* patience.h */
    int64_t until_ns;         /* end of the pause, CLOCK_MONOTONIC */
    bool may_block;           /* in the thread that runs it now */
    int rc;                   /* result, in state LK_OVER */
    struct lk_part one;       /* parts and batch.items, if count is 1 */
    struct lk_item one_item;
};

/* Begin an acquisition of the locks of a set for that owner (0: for the calling
 * owner of each).  The options are copied.  The struct must stay where it is
 * until lk_acquisition_end().  Return 0, or EINVAL or ENOMEM, after which there
 * is nothing to end. */
int lk_acquisition_begin(struct lk_acquisition *a, const struct lk_set *set,
                         int64_t wait_ms, const sqlock_acquire_options *options,
                         uint64_t owner, sqlock_error *err);

/* Take the turn of the first lock, or queue in its FIFO, without waiting.
 * Return true if lk_acquisition_run() is to be called at once, also after a
 * failure, whose text is then in err; false if the acquisition is in the FIFO.
 * After this call the wait can be cancelled. */
bool lk_acquisition_enter(struct lk_acquisition *a, sqlock_error *err);

/* Run the acquisition until it is over.  Return as sqlock_acquire_many(), with
 * each lock's own result in its part's rc; or, for a request, LK_SUSPENDED: run
 * the acquisition again when it is woken, or at self.until_ns. */
int lk_acquisition_run(struct lk_acquisition *a, sqlock_error *err);

/* Run the acquisition of a request as far as that needs no statement.  A wait
 * whose time is over ends without a last look at the row.  Return as
 * lk_acquisition_run(), or LK_BLOCKED: run it in another thread. */
int lk_acquisition_go_on(struct lk_acquisition *a, sqlock_error *err);

/* Give up turns and claims in doubt that are left, and free the memory.  Leases
 * that were granted stay.  Where the last run could send no statement, a ticket
 * is taken out in the background. */
void lk_acquisition_end(struct lk_acquisition *a);

#endif
