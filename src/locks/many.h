/*
 * many.h - a call about several locks; for many.c and many_take.c
 */
#ifndef LK_MANY_H
#define LK_MANY_H

#include "lease/batch.h"
#include "locks/registry.h"
#include "wait/queue_wait.h"

/* A lock of the call, and where it stands. */
struct lk_part {
    sqlock_lock *lock;
    struct lk_entry *entry; /* of the lock */
    size_t place;           /* in the caller's array */
    bool is_mine;           /* this call has its turn: LK_BUSY */
    bool is_nested;
    bool is_overdue; /* to be released: the lock is another's by now */
    int lost;
    int rc;
    uint64_t grant;
    struct lk_renewal renewal;
    struct lk_observed seen; /* what was observed of its row */
    struct lk_concern concern;
};

struct lk_many {
    sqlock_registry *registry;
    struct lk_part *parts; /* by key */
    size_t count;
    struct lk_batch batch; /* of the parts that are mine */
    int *results;
    const sqlock_acquire_options *options;
    struct lk_part *missing; /* what the last attempt failed by */
    bool is_row_taken;       /* ... its row; else its turn is another's */
    struct lk_waiter probe;  /* takes turns without waiting */
    struct lk_part *at_row;  /* whose row is waited for, with its turn; NULL */
    struct lk_queue_wait wait;
};

/* A lease of that part goes with the next statement. */
void lk_many_add(struct lk_many *call, struct lk_part *part,
                 const struct lk_lease *lease);

/* The rows of all, and the turns; as sqlock_acquire_many().  After a failure
 * lk_many_step_back() is to be called. */
int lk_many_take(struct lk_many *call, struct lk_waiter *self,
                 sqlock_error *err);

/* The turns that were not used, and the counts that are not wanted; of one only
 * what it waits for is kept (NULL: none). */
void lk_many_step_back(struct lk_many *call, const struct lk_part *kept);

#endif
