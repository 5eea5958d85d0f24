/*
 * combine.h - what queue.c, which queues threads and chooses who leads, and
 * combine.c, which answers a round of them, have in common
 */
#ifndef LK_COMBINE_H
#define LK_COMBINE_H

#include <semaphore.h>

#include "base/hash.h"
#include "stock/stock.h"

/* One thread's request, on the stack of that thread. */
struct lk_combined_request {
    struct lk_stock_operation *op; /* has one line */
    struct lk_combine_queue *queue;
    struct lk_combined_request *next;
    /* number of the last round that was over when the request came */
    uint64_t came_in;
    uint64_t round; /* number of the round that its thread leads */
    sem_t turn;     /* posted when it is answered, or its thread is to lead */
    bool is_done;   /* answered, by another thread */

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

/* The queue of an item, where a thread leads, or was chosen to. */
struct lk_combine_queue {
    char *name; /* of the item */
    UT_hash_handle hh;
    struct lk_combined_request *first, *last;
    uint64_t round;     /* number of rounds that have begun */
    int64_t known_left; /* left after the last round; -1: unknown */
};

/* One round. */
struct lk_combine {
    /* must be first: an lk_stock_body gets it, and casts it to the round */
    struct lk_stock_operation operation;
    struct lk_stock_line line; /* the item, and the sum to be deducted */
    struct lk_combined_request **requests;
    size_t count;
    struct lk_combined_request *one; /* replaces the array without memory */
    uint64_t round;                  /* number of this round */
    int64_t known_left;              /* in and out: as in the queue */
    int64_t total;                   /* sum of the requested quantities */
};

/* Answer every request of a round.  The caller has set requests, count, round
 * and known_left. */
void lk_combine_run(struct lk_combine *combine, sqlock_stock *stock);

#endif
