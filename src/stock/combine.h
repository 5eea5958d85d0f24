/*
 * combine.h - requests of several callers for one item, answered together
 */
#ifndef LK_COMBINE_H
#define LK_COMBINE_H

#include <semaphore.h>

#include "base/hash.h"
#include "stock/stock.h"

/* One caller's request, on its stack. */
struct lk_combined_request {
    struct lk_stock_operation *op; /* has one line */
    struct lk_combine_queue *queue;
    struct lk_combined_request *next;
    /* number of the round before the first that it can be in */
    uint64_t came_in;
    sem_t turn; /* posted when it is done, or is to lead */
    bool is_done;

    int rc;           /* out */
    sqlock_error err; /* out */
    /* used while a round runs */
    bool is_answered;
    uint64_t hash; /* of its order */
    /* an earlier request with its order */
    struct lk_combined_request *original;
    int64_t left;    /* if this attempt succeeds */
    bool is_refused; /* if this attempt succeeds */
};

/* The queue of an item. */
struct lk_combine_queue {
    char *name;
    UT_hash_handle hh;
    struct lk_combined_request *first, *last;
    uint64_t round; /* number of rounds that have begun */
    bool is_running;
    bool is_led;
    int64_t known_left; /* left after the last round; -1: unknown */
};

/* One round. */
struct lk_combine {
    /* must be first: callbacks get it as theirs */
    struct lk_stock_operation operation;
    struct lk_stock_line line;
    struct lk_combined_request **requests;
    size_t count;
    struct lk_combined_request *one; /* used instead of an array */
    uint64_t round;
    int64_t known_left;
    int64_t total;
};

/* Answer every request. */
void lk_combine_run(struct lk_combine *combine, sqlock_stock *stock);

#endif
