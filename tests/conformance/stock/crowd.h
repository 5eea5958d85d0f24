/*
 * crowd.h - 8 processes of 8 threads each that sell the same items
 *
 * An order's content follows from its number.  Its state is kept in a mapped
 * file: the process that replaces a killed one sends the orders without an
 * answer again.
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
    SENT, /* without an answer: to be sent again */
    DONE,
    REFUSED,
    WRONG /* an answer that cannot be right */
};

/* The contents of the file that every process maps. */
struct crowd {
    char url[1024];
    char prefix[32];
    char items[ITEMS][80];
    int strategy;
    bool is_careless; /* sends each order twice, without its id */
    uint32_t orders;  /* of a thread, at most */
    atomic_bool is_over;
    atomic_int selling; /* how many times a process has opened the stock */
    char wrong[700];    /* a WRONG answer, or why a process has ended */
    atomic_uchar answers[PROCESSES][THREADS][ORDERS_MAX];
};

#define ORDER "o/" /* each order id begins with this */

/* The content of an order. */
struct order {
    char id[64];
    bool is_return;
    size_t count; /* of lines */
    int items[2];
    int64_t quantities[2];
};
/* Compute the content of a thread's order from its number. */
void order_read(struct order *order, int process, int thread, uint32_t number);

#endif
