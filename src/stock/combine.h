/*
 * combine.h - several callers' requests for one item, answered together
 */
#ifndef LK_COMBINE_H
#define LK_COMBINE_H

#include <semaphore.h>

#include "base/hash.h"
#include "stock/stock.h"

/* One caller; on its stack. */
struct lk_combined_request {
    struct lk_stock_operation *op; /* of one line */
    struct lk_combine_queue *queue;
    struct lk_combined_request *next;
    uint64_t came_in; /* the round before the first that it waits for */
    sem_t turn;       /* posted when it is done, or else leads */
    bool is_done;

    int rc;           /* out */
    sqlock_error err; /* out */
    /* while a round runs */
    bool is_answered;
    uint64_t hash;                        /* of its order */
    struct lk_combined_request *original; /* an earlier one of its order */
    int64_t left;                         /* if this try succeeds */
    bool is_refused;                      /* likewise */
};

/* An item that somebody waits for. */
struct lk_combine_queue {
    char *name;
    UT_hash_handle hh;
    struct lk_combined_request *first, *last;
    uint64_t round; /* so many have begun */
    bool is_running;
    bool is_led;
    int64_t known_left; /* by the last round; -1: not known */
};

/* One round. */
struct lk_combine {
    struct lk_stock_operation operation; /* first: bodies get it as theirs */
    struct lk_stock_line line;
    struct lk_combined_request **requests;
    size_t count;
    struct lk_combined_request *one; /* in place of an array */
    uint64_t round;
    int64_t known_left;
    int64_t total;
};

/* Answer every request. */
void lk_combine_run(struct lk_combine *combine, sqlock_stock *stock);

#endif
