/*
 * counter.h - threads that want one item at a time, the first of which is held
 * up in its statement
 */
#ifndef TESTS_STOCK_COUNTER_H
#define TESTS_STOCK_COUNTER_H

#include <semaphore.h>

#include "suite.h"
#include "support/tap.h"
#include "support/workers.h"

/* One thread's deduction. */
struct caller {
    int64_t quantity;
    int rc; /* out */
    sqlock_stock_answer answer;
};

/* An item, and the threads that deduct from it. */
struct counter {
    sqlock_registry *registry;
    sqlock_stock *stock;
    const char *item;
    sem_t go; /* lets the first statement go on */
    atomic_bool is_held;
};

/* The counter of the running test, used by its threads. */
extern struct counter *counter_at;

/* Open a stock that combines threads, with an item, of which so much is there.
 * The first write is held up. */
void counter_open(struct counter *counter, struct fixture *f, int64_t there);
void counter_close(struct counter *counter);

/* Deduct as worker->context, a caller, says. */
int counter_call(struct worker *worker);

#endif
