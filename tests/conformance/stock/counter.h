/*
 * counter.h - threads that want one item at a time, and are combined
 *
 * The first leader is held up in its statement until the other threads have
 * queued up, one after another.  So the first round has the first request only,
 * and later rounds have the others, in a known order.
 */
#ifndef TESTS_STOCK_COUNTER_H
#define TESTS_STOCK_COUNTER_H

#include <semaphore.h>

#include "suite.h"
#include "support/tap.h"
#include "support/workers.h"

#define CALLERS_MAX 24

/* One thread's deduction. */
struct caller {
    const char *order; /* NULL: none */
    int64_t quantity;
    int rc; /* out */
    sqlock_stock_answer answer;
    char message[200];
};

/* The fault in the rounds' statements. */
enum fault {
    NO_FAULT,
    REFUSE, /* each BEGIN and UPDATE of the second round gets EACCESS */
    LOSE    /* the answer to the second round's first commit is lost */
};

/* An item, and the threads that deduct from it. */
struct counter {
    sqlock_registry *registry;
    sqlock_stock *stock;
    const char *item;
    struct caller callers[CALLERS_MAX];
    struct worker workers[CALLERS_MAX];
    unsigned count;

    enum fault fault;
    sem_t go; /* lets the first round's statement go on */
    atomic_bool is_held;
    atomic_bool is_released;
    atomic_bool is_in_transaction;
    atomic_int commits;
    atomic_int writes; /* that were begun: transactions, and UPDATEs */
    atomic_bool is_lost;
};

/* The counter of the running test, used by its threads. */
extern struct counter *counter_at;

/* Open a stock of that strategy with an item, of which so much is there; with
 * BUCKETS in its buckets.  Rounds follow one another, since the registry has
 * one connection. */
void counter_open(struct counter *counter, struct fixture *f,
                  sqlock_stock_strategy strategy, int64_t there);
void counter_close(struct counter *counter);

/* Start the callers' threads: the first one leads, and is held up; each other
 * one waits before the next is started. */
void counter_queue(struct counter *counter, const struct caller *callers,
                   unsigned count);
/* Let the first round go on, and wait for all callers. */
void counter_let_go(struct counter *counter);
/* Assert the answer of a caller. */
void counter_expect(const struct counter *counter, unsigned which, int rc,
                    int64_t left);
sqlock_stock_stats counter_stats(struct counter *counter);

/* Hold up and disturb the statements of the rounds: hooks of the tap. */
int counter_before(void *context, const struct tap_event *event);
int counter_after(void *context, const struct tap_event *event, int rc);
/* Return whether a call writes, or begins a transaction that does. */
bool counter_is_write(const struct tap_event *event);

/* Deduct as worker->context, a caller, says. */
int counter_call(struct worker *worker);

/* Run what follows with each `strategy` that combines threads, also without
 * orders. */
#define each_combined(f)                                                       \
    for (sqlock_stock_strategy strategy = SQLOCK_STOCK_COALESCED;              \
         counter_is_strategy((f), strategy);                                   \
         strategy = (sqlock_stock_strategy)(strategy - 1))
bool counter_is_strategy(const struct fixture *f,
                         sqlock_stock_strategy strategy);

#endif
