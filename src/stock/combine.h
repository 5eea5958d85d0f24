/*
 * combine.h - what queue.c, which queues threads and chooses who leads, and
 * combine.c, which answers a round of them, have in common
 */
#ifndef LK_COMBINE_H
#define LK_COMBINE_H

#include "base/crew.h"
#include "base/hash.h"
#include "stock/stock.h"

/* One thread's request, on the stack of that thread. */
struct lk_combined_request {
    struct lk_crew_member member;  /* the first, which is cast to the request */
    struct lk_stock_operation *op; /* has one line */

    int rc;           /* out */
    sqlock_error err; /* out */
    /* The following fields are used while a round runs. */
    bool is_answered;
    uint64_t hash; /* of the order id */
    /* an earlier request of the round with the same order id */
    struct lk_combined_request *original;
    /* the answer, if this attempt of the round succeeds */
    int64_t left;
    bool is_refused;
};

/* The queue of an item, while a request for it is under way. */
struct lk_combine_queue {
    char *name; /* of the item */
    UT_hash_handle hh;
    size_t users;
    struct lk_crew crew; /* of one place: a round is under way */
    /* left after the last round, for who leads the next one; -1: unknown */
    int64_t known_left;
};

/* One round. */
struct lk_combine {
    /* must be first: an lk_stock_body gets it, and casts it to the round */
    struct lk_stock_operation operation;
    struct lk_stock_line line; /* the item, and the sum to be deducted */
    struct lk_combined_request **requests;
    size_t count;
    struct lk_combined_request *one; /* replaces the array without memory */
    int64_t known_left;              /* in and out: as in the queue */
    int64_t total;                   /* sum of the requested quantities */
};

/* Answer every request of a round.  The caller has set requests, count and
 * known_left. */
void lk_combine_run(struct lk_combine *combine, sqlock_stock *stock);

#endif
