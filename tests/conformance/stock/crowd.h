/*
 * crowd.h - 8 processes of 8 threads each that sell the same items
 *
 * Each order's content follows from its number, and what became of it is kept
 * in memory that outlives its process: a process that was killed is followed by
 * one that sends again what had no answer.
 */
#ifndef TESTS_STOCK_CROWD_H
#define TESTS_STOCK_CROWD_H

#include <stdatomic.h>

#include "suite.h"

#define PROCESSES 8
#define THREADS 8
#define ORDERS_MAX 30000 /* of a thread */

enum { HOT, COLD, COLDER, ITEMS };

/* The state of an order. */
enum {
    NOT_SENT = 0,
    SENT, /* and no answer: whoever comes next sends it again */
    DONE,
    REFUSED,
    WRONG /* an answer that cannot be right */
};

/* In a file that every process maps. */
struct crowd {
    char url[1024];
    char prefix[32];
    char items[ITEMS][80];
    int strategy;
    bool is_careless; /* sends each order twice, without its id */
    uint32_t orders;  /* of a thread, at most */
    atomic_bool is_over;
    atomic_int selling; /* processes that have begun */
    char wrong[700];    /* about one of those */
    atomic_uchar answers[PROCESSES][THREADS][ORDERS_MAX];
};

#define ORDER "o/" /* an order's id begins so */

/* An order by its number. */
struct order {
    char id[64];
    bool is_return;
    size_t count; /* of lines */
    int items[2];
    int64_t quantities[2];
};
void order_read(struct order *order, int process, int thread, uint32_t number);

#endif
